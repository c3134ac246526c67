//! `HealthyAndUnknown`: everyone whom no enabled check calls Unhealthy.
//!
//! - Signal: both values, each only while its check is on.
//! - Cold start: all, since Unknown is good enough. None is an answer, too: requests get 503.

use super::{AvailablePolicy, Candidates, Selection};

/// The policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HealthyAndUnknown;

impl AvailablePolicy for HealthyAndUnknown {
    fn select(&self, cluster: &Candidates<'_>) -> Selection {
        Selection { indexes: cluster.not_unhealthy(), is_panic: false }
    }
}
