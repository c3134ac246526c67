//! Random: one destination drawn by weight. Signal: none. Cold start: none.

use model::id::DestinationIndex;
use model::random::Random;

use super::draw;
use crate::candidates::Candidates;

pub(crate) fn pick(candidates: &Candidates<'_>, random: &mut Random) -> Option<DestinationIndex> {
    if candidates.is_plain() {
        candidates.nth(random.below(candidates.count()))
    } else {
        draw(candidates, None, random)
    }
}
