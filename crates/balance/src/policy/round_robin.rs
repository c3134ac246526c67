//! RoundRobin: destinations in turn, smooth by weight.
//!
//! Rule: each candidate's counter grows by its weight, the greatest counter serves (the first of equals) and pays the
//! sum of all weights back. Over any stretch each gets its share to within one or two requests, and never all of it in
//! a row; one that is out neither collects nor passes its turns to a neighbour, since the others go on among
//! themselves. Signal: none. Cold start: counters start at a random phase, so that neither workers nor restarts begin
//! at the same destination. Source: nginx's smooth weighted round robin.
//!
//! `compat: nginx` starts at zero and keeps an effective weight that a counted failure lowers by weight / max_fails (in
//! whole numbers) and each pick raises by one. `compat: yarp` has one counter from 0 on, taken modulo the number of
//! candidates, so that each change of their number shifts the phase; weights mean nothing there.

use model::id::DestinationIndex;

use crate::candidates::Candidates;
use crate::turns::{Seat, Turn};

/// Smooth weighted round robin.
pub(crate) fn smooth(candidates: &Candidates<'_>, turn: &mut Turn) -> Option<DestinationIndex> {
    let mut total = 0i64;
    let mut best: Option<(DestinationIndex, i64)> = None;
    for (index, member) in candidates.iter() {
        let seat = turn.seats.get_mut(index.index())?;
        let weight = i64::from(member.weight);
        seat.current += seat.effective;
        total += seat.effective;
        if seat.effective < weight {
            seat.effective += 1;
        }
        if best.is_none_or(|(_, most)| seat.current > most) {
            best = Some((index, seat.current));
        }
    }
    let (index, _) = best?;
    if let Some(Seat { current, .. }) = turn.seats.get_mut(index.index()) {
        *current -= total;
    }
    Some(index)
}

/// YARP's counter.
pub(crate) fn counter(candidates: &Candidates<'_>, turn: &mut Turn) -> Option<DestinationIndex> {
    let n = candidates.count();
    let value = turn.counter & 0x7fff_ffff;
    turn.counter = turn.counter.wrapping_add(1);
    candidates.nth((value as usize).checked_rem(n)?)
}
