//! `ConnectFailures`: so many attempts in a row that got no connection.
//!
//! - Signal: failures one by one, successes as sums. A failure of another kind had a connection and ends the row.
//! - Trip: at the attempt that makes `threshold` of them. No comparison with the rest of the cluster is asked for: a
//!   server that refuses connections is down, however many of its peers are, too.
//! - Statistic: one count.
//! - Cold start: Unknown until the first success.

use model::event::Evidence;
use model::health::Health;
use model::outcome::OutcomeClass;
use model::passive::{ConnectFailures as Options, PassivePolicy as AllOptions};
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::first::first_success;
use super::{BuiltIn, Needs, PassivePolicy, PassiveSettings, PassiveState, Verdict};
use crate::input::OutcomeEvent;

/// The policy with its count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectFailures {
    options: Options,
    in_row: u32,
}

impl ConnectFailures {
    /// Nothing seen.
    pub fn new(options: Options) -> Self {
        Self { options, in_row: 0 }
    }
}

impl PassivePolicy for ConnectFailures {
    fn name(&self) -> &str {
        NAME
    }

    fn needs(&self) -> Needs {
        Needs::Failures
    }

    fn as_built_in(&self) -> Option<BuiltIn> {
        Some(BuiltIn::ConnectFailures(self.clone()))
    }

    fn on_outcome(&mut self, _: Timestamp, _: &PassiveState, event: &OutcomeEvent) -> Option<Verdict> {
        match event.outcome.class {
            OutcomeClass::ConnFail => self.in_row = self.in_row.saturating_add(1),
            OutcomeClass::Ok
            | OutcomeClass::AppFail
            | OutcomeClass::Overload
            | OutcomeClass::Timeout
            | OutcomeClass::Cut
            | OutcomeClass::Slow => self.in_row = 0,
            OutcomeClass::Neutral => {}
        }
        (self.in_row >= self.options.threshold).then(|| {
            let (failed, limit) = (Some(u64::from(self.in_row)), Some(f64::from(self.options.threshold)));
            Verdict::of(Health::Unhealthy, Evidence { failed, limit, ..Evidence::default() })
        })
    }

    fn on_sums(&mut self, _: Timestamp, destination: &PassiveState, ok: u64) -> Option<Verdict> {
        if ok > 0 {
            self.in_row = 0;
        }
        first_success(destination, ok)
    }

    fn on_ejected(&mut self, _: Timestamp) {
        self.in_row = 0;
    }

    fn on_reactivated(&mut self, _: Timestamp) {
        self.in_row = 0;
    }

    fn on_configured(&mut self, settings: &PassiveSettings) {
        if let AllOptions::ConnectFailures(options) = settings.options {
            self.options = options;
        }
    }
}

/// As events show it.
pub(crate) const NAME: &str = "ConnectFailures";
