//! LeastRequests: the destination with the fewest requests in flight for its weight.
//!
//! Signal: requests in flight for the weight. Rule: the least busy, which is whom no other is less busy than (`is_less_busy`).
//! Ties: drawn by weight, since the earliest would get all of a quiet cluster's traffic; under `compat: yarp` the earliest,
//! as there. Cold start: all are tied.

use model::id::DestinationIndex;
use model::random::Random;

use crate::candidates::{Candidates, Loads};

/// Who wins among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ties {
    Drawn,
    Earliest,
}

pub(crate) fn pick(
    candidates: &Candidates<'_>,
    loads: &dyn Loads,
    ties: Ties,
    random: &mut Random,
) -> Option<DestinationIndex> {
    if candidates.has_equal_weights() {
        fewest(candidates, loads, ties, random)
    } else {
        fewest_by_weight(candidates, loads, ties, random)
    }
}

fn fewest(candidates: &Candidates<'_>, loads: &dyn Loads, ties: Ties, random: &mut Random) -> Option<DestinationIndex> {
    let mut best: Option<(Tied, u32)> = None;
    for (index, member) in candidates.iter() {
        let requests = loads.in_flight(index);
        match &mut best {
            Some((_, fewest)) if requests > *fewest => {}
            Some((tied, fewest)) if requests == *fewest => tied.join(index, member.weight, ties, random),
            Some(_) | None => best = Some((Tied::new(index, member.weight), requests)),
        }
    }
    best.map(|(tied, _)| tied.picked)
}

/// Being less busy is no order (two may be equal to a third, and one of them less busy than the other), so the least busy are
/// found first by what each would have with one request more.
fn fewest_by_weight(
    candidates: &Candidates<'_>,
    loads: &dyn Loads,
    ties: Ties,
    random: &mut Random,
) -> Option<DestinationIndex> {
    let with_one_more = candidates.iter().map(|(index, member)| (index, load(index, loads) + 1, member.weight));
    let (first, most, weight) = with_one_more.reduce(|least, one| {
        let is_less = one.1 * u64::from(least.2) < least.1 * u64::from(one.2);
        if is_less { one } else { least }
    })?;
    let mut best: Option<Tied> = None;
    for (index, member) in candidates.iter() {
        if load(index, loads) * u64::from(weight) < most * u64::from(member.weight) {
            match &mut best {
                Some(tied) => tied.join(index, member.weight, ties, random),
                None => best = Some(Tied::new(index, member.weight)),
            }
        }
    }
    // Nobody only where others have filled all of them meanwhile.
    Some(best.map_or(first, |tied| tied.picked))
}

fn load(index: DestinationIndex, loads: &dyn Loads) -> u64 {
    u64::from(loads.in_flight(index))
}

/// Equals so far, and the one of them that leads: each newcomer takes the lead with its share of all their weights.
struct Tied {
    picked: DestinationIndex,
    weights: u64,
}

impl Tied {
    fn new(picked: DestinationIndex, weight: u32) -> Self {
        Self { picked, weights: u64::from(weight) }
    }

    fn join(&mut self, index: DestinationIndex, weight: u32, ties: Ties, random: &mut Random) {
        if ties == Ties::Earliest {
            return;
        }
        self.weights += u64::from(weight);
        let drawn = random.below(usize::try_from(self.weights).unwrap_or(usize::MAX)) as u64;
        if drawn < u64::from(weight) {
            self.picked = index;
        }
    }
}
