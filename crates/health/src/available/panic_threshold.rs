//! `PanicThreshold`: everyone whom no enabled check calls Unhealthy; when that share falls below the threshold, everyone.
//!
//! - Signal: both values, each only while its check is on.
//! - Trip (panic): good / all < threshold, counted in destinations. Reaching the threshold is no panic. A threshold of 0
//!   never panics, of 1 panics as soon as one is missing.
//! - Cold start: all.

use model::ratio::Ratio;

use super::{AvailablePolicy, Candidates, Selection};

/// The policy with its option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PanicThreshold {
    /// Below this share of good destinations all are used.
    pub threshold: Ratio,
}

impl AvailablePolicy for PanicThreshold {
    fn select(&self, cluster: &Candidates<'_>) -> Selection {
        let good = cluster.not_unhealthy();
        let share = good.len() as f64 / cluster.destinations.len().max(1) as f64;
        if share < self.threshold.get() && !cluster.destinations.is_empty() {
            Selection { indexes: cluster.all(), is_panic: true }
        } else {
            Selection { indexes: good, is_panic: false }
        }
    }
}
