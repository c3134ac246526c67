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

/// Whether one is less busy than another: with one request more it would be no busier for its weight than the other is now.
/// Where neither is less busy than the other they are equals, which a draw by weight settles: a measure that tells them
/// apart would send a light one a request whenever it is idle, or none before the heavy ones are laden. Only the two weights
/// count, so that a light destination blurs nothing between two heavy ones.
pub(crate) fn is_less_busy(
    one: DestinationIndex,
    other: DestinationIndex,
    candidates: &Candidates<'_>,
    loads: &dyn Loads,
) -> bool {
    let [mine, theirs] = [one, other].map(|index| u64::from(loads.in_flight(index)));
    if candidates.has_equal_weights() {
        return mine < theirs;
    }
    // No product reaches 2^64: a weight is below 2^32, and the number of requests with one more is at most that.
    (mine + 1) * u64::from(candidates.weight(other)) <= theirs * u64::from(candidates.weight(one))
}
