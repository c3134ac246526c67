//! `HealthyOrPanic`: everyone whom no enabled check calls Unhealthy; when that is nobody, everyone.
//!
//! - Signal: both values, each only while its check is on.
//! - Trip (panic): nobody is left. One good destination of a hundred is no panic.
//! - Cold start: all.

use super::{AvailablePolicy, Candidates, Selection};

/// The policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HealthyOrPanic;

impl AvailablePolicy for HealthyOrPanic {
    fn select(&self, cluster: &Candidates<'_>) -> Selection {
        let good = cluster.not_unhealthy();
        if good.is_empty() {
            Selection { indexes: cluster.all(), is_panic: !cluster.destinations.is_empty() }
        } else {
            Selection { indexes: good, is_panic: false }
        }
    }
}
