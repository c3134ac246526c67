//! PowerOfTwoChoices: of two distinct destinations drawn at random the one with fewer requests in flight.
//!
//! Signal: requests in flight for the weight, of the two alone. Rule: the first drawn wins among equals. Weights: both draws are by
//! weight. Cold start: with nothing in flight it is the first draw. Source: Mitzenmacher, "The power of two choices in
//! randomized load balancing", 2001; YARP's policy of this name.

use model::id::DestinationIndex;
use model::random::Random;

use super::{draw, is_less_busy};
use crate::candidates::{Candidates, Loads};

pub(crate) fn pick(candidates: &Candidates<'_>, loads: &dyn Loads, random: &mut Random) -> Option<DestinationIndex> {
    let (first, second) = if candidates.is_plain() {
        let n = candidates.count();
        let first = random.below(n);
        let second = random.below(n.saturating_sub(1));
        // Drawn from the n - 1 others.
        (candidates.nth(first)?, candidates.nth(if second >= first { second + 1 } else { second }))
    } else {
        let first = draw(candidates, None, random)?;
        (first, draw(candidates, Some(first), random))
    };
    let Some(second) = second else {
        return Some(first);
    };
    Some(if is_less_busy(second, first, candidates, loads) { second } else { first })
}
