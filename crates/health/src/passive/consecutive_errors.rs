//! `ConsecutiveErrors`: so many failed attempts in a row.
//!
//! - Signal: every outcome, so that a success between two failures is never missed. Neutral and Overload say nothing.
//! - Trip: at the failure that makes `threshold` of them without a success between.
//! - Statistic: one count; any success sets it to 0. Blind to a destination that fails half of its requests in turn, and
//!   eager under load: at 200 requests a second five failures in a row are 25 ms.
//! - Cold start: Unknown until the first success.
//! - Source: Envoy's `consecutive_5xx`.

use model::event::Evidence;
use model::health::Health;
use model::passive::{ConsecutiveErrors as Options, PassivePolicy as AllOptions};
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::first::first_success;
use super::{BuiltIn, Needs, PassivePolicy, PassiveSettings, PassiveState, Verdict};
use crate::input::OutcomeEvent;
use crate::window::Counts;

/// The policy with its count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConsecutiveErrors {
    options: Options,
    in_row: u32,
}

impl ConsecutiveErrors {
    /// Nothing seen.
    pub fn new(options: Options) -> Self {
        Self { options, in_row: 0 }
    }
}

impl PassivePolicy for ConsecutiveErrors {
    fn name(&self) -> &str {
        "ConsecutiveErrors"
    }

    fn needs(&self) -> Needs {
        Needs::EveryOutcome
    }

    fn as_built_in(&self) -> Option<BuiltIn> {
        Some(BuiltIn::ConsecutiveErrors(self.clone()))
    }

    fn on_outcome(&mut self, _: Timestamp, destination: &PassiveState, event: &OutcomeEvent) -> Option<Verdict> {
        let counts = Counts::of(&event.outcome);
        if counts.total() == 0 {
            return None;
        }
        if counts.failures(self.options.plain_500) == 0 {
            self.in_row = 0;
            return first_success(destination, counts.ok);
        }
        self.in_row = self.in_row.saturating_add(1);
        (self.in_row >= self.options.threshold).then(|| {
            let (failed, limit) = (Some(u64::from(self.in_row)), Some(f64::from(self.options.threshold)));
            Verdict::of(Health::Unhealthy, Evidence { failed, limit, ..Evidence::default() })
        })
    }

    fn on_ejected(&mut self, _: Timestamp) {
        self.in_row = 0;
    }

    fn on_reactivated(&mut self, _: Timestamp) {
        self.in_row = 0;
    }

    fn on_configured(&mut self, settings: &PassiveSettings) {
        if let AllOptions::ConsecutiveErrors(options) = settings.options {
            self.options = options;
        }
    }
}
