//! PeakEwma: of two drawn at random the one that is likely to answer sooner.
//!
//! Signal: the peak-sensitive mean of the time to first byte, and requests in flight. Rule: cost = time x (in flight + 1), the
//! lower one serves, the first drawn wins a tie. Weights: both draws are by weight, and the heavier one's requests in flight
//! count by as many whole ones as the lighter would have of them. Cold start: one without a time costs nothing
//! while it is idle and the most while it has a request in flight, so it is asked once and then waited for. A destination that
//! fails fast would look fast: failures are the passive policies' to judge, and only heads of responses are timed. Source:
//! Finagle's and linkerd's balancer of this name.

use std::time::Duration;

use model::id::DestinationIndex;
use model::random::Random;

use super::draw;
use crate::candidates::{Candidates, Loads};

pub(crate) fn pick(candidates: &Candidates<'_>, loads: &dyn Loads, random: &mut Random) -> Option<DestinationIndex> {
    let first = draw(candidates, None, random)?;
    let Some(second) = draw(candidates, Some(first), random) else { return Some(first) };
    let lighter = candidates.weight(first).min(candidates.weight(second));
    let cost = |index| cost(index, lighter, candidates, loads);
    Some(if cost(second) < cost(first) { second } else { first })
}

fn cost(index: DestinationIndex, lighter: u32, candidates: &Candidates<'_>, loads: &dyn Loads) -> Duration {
    let in_flight = loads.in_flight(index);
    match loads.latency(index) {
        Some(time) => {
            let requests = of_lighter(in_flight, lighter, candidates.weight(index));
            time.saturating_mul(requests.saturating_add(1))
        }
        None if in_flight == 0 => Duration::ZERO,
        None => Duration::MAX,
    }
}

fn of_lighter(in_flight: u32, lighter: u32, weight: u32) -> u32 {
    if weight == lighter {
        return in_flight;
    }
    let requests = u64::from(in_flight) * u64::from(lighter);
    // No more than there were, so it fits.
    requests.checked_div(u64::from(weight)).and_then(|requests| u32::try_from(requests).ok()).unwrap_or(in_flight)
}
