//! LeastRequests: the destination with the fewest requests in flight for its weight.
//!
//! Signal: requests in flight for the weight. Ties: drawn by weight, since the earliest would get all of a quiet
//! cluster's traffic; under `compat: yarp` the earliest, as there. Cold start: all are tied.

use model::id::DestinationIndex;
use model::random::Random;

use super::Burden;
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
    let mut best: Option<(DestinationIndex, Burden)> = None;
    // The tied ones' weights so far: each newcomer takes the lead with its share of them.
    let mut tied = 0u64;
    for (index, member) in candidates.iter() {
        let burden = Burden::of(index, candidates, loads);
        let order = best.map_or(std::cmp::Ordering::Less, |(_, least)| burden.cmp(&least));
        let weight = u64::from(member.weight);
        if order.is_lt() {
            tied = weight;
            best = Some((index, burden));
        } else if order.is_eq() && ties == Ties::Drawn {
            tied += weight;
            let drawn = random.below(usize::try_from(tied).unwrap_or(usize::MAX)) as u64;
            if drawn < weight {
                best = Some((index, burden));
            }
        }
    }
    best.map(|(index, _)| index)
}
