//! The policies, one file each, and the trait of those that are registered in code.

pub(crate) mod least_requests;
pub(crate) mod power_of_two;
pub(crate) mod random;
pub(crate) mod round_robin;

use model::id::DestinationIndex;
use model::random::Random;

use crate::candidates::{Candidates, Loads};

/// A balancing policy registered in code. Called once for each attempt, on a worker's thread: it must neither wait nor
/// lock. With one candidate it is not asked.
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

/// A destination's requests in flight against its weight; compares as a fraction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Burden {
    in_flight: u32,
    weight: u32,
}

impl Burden {
    pub(crate) fn of(index: DestinationIndex, candidates: &Candidates<'_>, loads: &dyn Loads) -> Self {
        Self { in_flight: loads.in_flight(index), weight: candidates.weight(index) }
    }

    pub(crate) fn compare(self, other: Self) -> std::cmp::Ordering {
        let times = |a: u32, b: u32| u64::from(a) * u64::from(b);
        times(self.in_flight, other.weight).cmp(&times(other.in_flight, self.weight))
    }
}
