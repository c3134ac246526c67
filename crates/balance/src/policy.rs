//! The policies, one file each, and the trait of those that are registered in code.

pub(crate) mod consistent_hash;
pub(crate) mod least_requests;
pub(crate) mod peak_ewma;
pub(crate) mod power_of_two;
pub(crate) mod random;
pub(crate) mod round_robin;

use model::id::DestinationIndex;
use model::random::Random;

use crate::candidates::{Candidates, Loads};

/// A balancing policy registered in code (`lazaret::Builder::load_balancing_policy`). Called once for each attempt, on a
/// worker's thread: it must neither wait nor lock. With one candidate it is not asked.
pub trait Policy: Send + Sync {
    /// One of the candidates; `None` counts as "none available".
    fn pick(&self, candidates: &Candidates<'_>, loads: &dyn Loads, random: &mut Random) -> Option<DestinationIndex>;
}

/// Draws one by weight, leaving out `without`; `None` when there is nothing to draw from.
pub(crate) fn draw(
    candidates: &Candidates<'_>,
    without: Option<DestinationIndex>,
    random: &mut Random,
) -> Option<DestinationIndex> {
    let rest = || candidates.iter().filter(|&(index, _)| Some(index) != without);
    let total: u64 = rest().map(|(_, member)| u64::from(member.weight)).sum();
    let mut left = random.below(usize::try_from(total).unwrap_or(usize::MAX)) as u64;
    rest()
        .find(|(_, member)| {
            let weight = u64::from(member.weight);
            let is_here = left < weight;
            left = left.saturating_sub(weight);
            is_here
        })
        .map(|(index, _)| index)
}

/// A destination's requests in flight against its weight, in whole units of the lightest weight: 8 in flight at weight
/// 100 and none at weight 1 are equal. A finer measure would send the light one a request whenever it is idle, which at
/// low load is far more than its share; equals are settled by a draw, which keeps the shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Burden(u64);

impl Burden {
    pub(crate) fn of(index: DestinationIndex, candidates: &Candidates<'_>, loads: &dyn Loads) -> Self {
        let in_flight = u64::from(loads.in_flight(index));
        if candidates.has_equal_weights() {
            return Self(in_flight);
        }
        let units = in_flight * u64::from(candidates.lightest());
        // Candidates have a weight above 0.
        Self(units.checked_div(u64::from(candidates.weight(index))).unwrap_or(u64::MAX))
    }
}
