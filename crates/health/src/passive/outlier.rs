//! `Outlier`: more failures than the rest of the cluster.
//!
//! - Signal: failures one by one, successes as sums; what counts stands in [`crate::window`].
//! - Trip: on a failure, when the two-proportion test finds this destination worse than the rest by `z` and by
//!   `difference` ([`crate::comparison`]); asked at most every 100 ms. Off while the rest is bad, too (`rest_limit`), and
//!   where nobody else has traffic. Works from two destinations on.
//! - Statistic: first tries of the last 10 s of every destination, or of as long as twenty take; repeats beside repeats where
//!   there are not so many.
//! - Cold start: nothing trips before `minimum` attempts of its own.

use std::time::Duration;

use model::event::Evidence;
use model::health::Health;
use model::passive::{Comparison, PassivePolicy as AllOptions};
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::first::first_success;
use super::{Alone, BuiltIn, Needs, PassivePolicy, PassiveSettings, PassiveState, Proof, Verdict};
use crate::input::OutcomeEvent;
use crate::window::Counts;

/// The policy; what it judges is kept by the core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outlier {
    options: Comparison,
    asked_at: Option<Timestamp>,
}

impl Outlier {
    /// Nothing asked yet.
    pub fn new(options: Comparison) -> Self {
        Self { options, asked_at: None }
    }
}

impl PassivePolicy for Outlier {
    fn name(&self) -> &str {
        "Outlier"
    }

    fn needs(&self) -> Needs {
        Needs::Failures
    }

    fn as_built_in(&self) -> Option<BuiltIn> {
        Some(BuiltIn::Outlier(self.clone()))
    }

    fn on_outcome(&mut self, now: Timestamp, _: &PassiveState, event: &OutcomeEvent) -> Option<Verdict> {
        let is_failure = Counts::of(&event.outcome).failures(self.options.plain_500) > 0;
        if !is_failure || self.asked_at.is_some_and(|at| now.since(at) < ASK_AGAIN) {
            return None;
        }
        self.asked_at = Some(now);
        let proof = Proof::AgainstRest { comparison: self.options, alone: Alone::Acquits };
        let evidence = Evidence { limit: Some(self.options.z), ..Evidence::default() };
        Some(Verdict { proof, ..Verdict::of(Health::Unhealthy, evidence) })
    }

    fn on_sums(&mut self, _: Timestamp, destination: &PassiveState, ok: u64) -> Option<Verdict> {
        first_success(destination, ok)
    }

    fn on_configured(&mut self, settings: &PassiveSettings) {
        if let AllOptions::Outlier(options) = settings.options {
            self.options = options;
        }
    }
}

/// Failures may come by the thousand.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(100);
