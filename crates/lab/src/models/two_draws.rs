//! Balancing of HAProxy (`random(2)`) and Envoy (`LEAST_REQUEST`): of two draws the one with fewer requests in flight.
//!
//! Signal and rule: those of PowerOfTwoChoices. The draws know nothing of each other, so both may be the same: a busy
//! destination still gets every request that draws it twice, of three destinations one in nine. (Measured on 2.6 and
//! 1.40: a destination that hangs goes on getting them until it is out.) nginx's `random two` draws two distinct ones.
//! Weights: both draws are by weight. Cold start: with nothing in flight it is the first draw.

use balance::{Candidates, Loads, Policy};
use model::id::DestinationIndex;
use model::random::Random;

/// The policy.
#[derive(Debug)]
pub struct TwoDraws;

impl Policy for TwoDraws {
    fn pick(&self, candidates: &Candidates<'_>, loads: &dyn Loads, random: &mut Random) -> Option<DestinationIndex> {
        let first = draw(candidates, random)?;
        let second = draw(candidates, random)?;
        // In flight for the weight, without a division.
        let burden = |one, other| u64::from(loads.in_flight(one)) * u64::from(candidates.weight(other));
        Some(if burden(second, first) < burden(first, second) { second } else { first })
    }
}

fn draw(candidates: &Candidates<'_>, random: &mut Random) -> Option<DestinationIndex> {
    if candidates.has_equal_weights() {
        return candidates.nth(random.below(candidates.count()));
    }
    let total: u64 = candidates.iter().map(|(_, member)| u64::from(member.weight)).sum();
    let mut left = random.below(usize::try_from(total).unwrap_or(usize::MAX)) as u64;
    for (index, member) in candidates.iter() {
        match left.checked_sub(u64::from(member.weight)) {
            None => return Some(index),
            Some(rest) => left = rest,
        }
    }
    None
}
