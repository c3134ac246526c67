//! What every passive policy of ours says of a success: it makes Unknown Healthy, and does not end an ejection.

use model::event::Evidence;
use model::health::Health;

use super::{PassiveState, Verdict};

/// The word of `ok` successes.
pub(super) fn first_success(destination: &PassiveState, ok: u64) -> Option<Verdict> {
    (ok > 0 && destination.health == Health::Unknown).then(|| Verdict::of(Health::Healthy, Evidence::default()))
}
