//! ConsistentHash: the same key goes to the same destination for as long as that one serves.
//!
//! Rule: each destination has a score for the key, made of both hashes; the highest serves. When one leaves, its keys alone
//! move, spread over the others; when it comes back they come back. Weights: a destination's part of all keys is its weight's
//! (the score is -w / ln u of a uniform u). A destination that gets a part of its weight keeps that part of its keys'
//! requests, drawn anew for each; the others visit the next one in their own order, so that no key moves. Signal: none.
//! Cold start: none. Source: Thaler, Ravishankar, "Using name-based mappings to increase hit rates", 1998 (rendezvous
//! hashing).

use model::id::DestinationIndex;
use model::random::Random;
use model::ratio::Ratio;

use crate::candidates::{Candidates, Key};

/// `shares`: by destination; none where all get the whole.
pub(crate) fn pick(
    candidates: &Candidates<'_>,
    key: Key,
    shares: Option<&[Ratio]>,
    random: &mut Random,
) -> Option<DestinationIndex> {
    let share = |index: DestinationIndex| shares.and_then(|all| all.get(index.index())).copied().unwrap_or(Ratio::ONE);
    let mut spared: Option<DestinationIndex> = None;
    let mut below = Score::MOST;
    // Each round but the last spares one.
    for _ in 0..candidates.count() {
        let (index, score) = best(candidates, key, below)?;
        if share(index) == Ratio::ONE || random.unit() < share(index).get() {
            return Some(index);
        }
        spared.get_or_insert(index);
        below = score;
    }
    // All of them are spared: the key's own one serves.
    spared
}

/// The highest score below another.
fn best(candidates: &Candidates<'_>, key: Key, below: Score) -> Option<(DestinationIndex, Score)> {
    let is_plain = candidates.has_equal_weights();
    let scored = candidates.iter().map(|(index, member)| {
        let bits = mix(key.0 ^ member.hash);
        let score = if is_plain { bits as f64 } else { weighted(bits, member.weight) };
        (index, Score(score, bits))
    });
    let mut best: Option<(DestinationIndex, Score)> = None;
    for one in scored.filter(|(_, score)| *score < below) {
        if best.is_none_or(|(_, most)| one.1 > most) {
            best = Some(one);
        }
    }
    best
}

/// A score; equal ones are told apart by the bits behind them.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Score(f64, u64);

impl Score {
    const MOST: Self = Self(f64::INFINITY, u64::MAX);
}

/// -w / ln u, u in (0, 1).
fn weighted(bits: u64, weight: u32) -> f64 {
    let u = ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    -f64::from(weight) / libm::log(u)
}

/// The finalizer of SplitMix64: every bit of the input moves every bit of the output.
fn mix(bits: u64) -> u64 {
    let z = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
