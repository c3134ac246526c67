//! PeakEwma: of two drawn at random the one that is likely to answer sooner.
//!
//! Signal: the peak-sensitive mean of the time to first byte, and requests in flight. Rule: cost = time x (in flight + 1), the
//! lower one serves, the first drawn wins a tie. Weights: both draws are by weight. Cold start: one without a time costs nothing
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
    Some(if cost(second, loads) < cost(first, loads) { second } else { first })
}

fn cost(index: DestinationIndex, loads: &dyn Loads) -> Duration {
    let in_flight = loads.in_flight(index);
    match loads.latency(index) {
        Some(time) => time.saturating_mul(in_flight.saturating_add(1)),
        None if in_flight == 0 => Duration::ZERO,
        None => Duration::MAX,
    }
}
