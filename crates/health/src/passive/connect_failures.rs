//! `ConnectFailures`: attempts in a row that got no connection, and nothing good in between.
//!
//! - Signal: failures one by one, successes as sums. A failure of another kind had a connection and ends the row.
//! - Trip: at an attempt of a row of `threshold` or more that has lasted for `persist`. A server whose queue is full
//!   refuses connections, too, but goes on answering what it has: each of its answers ends the row. No comparison with the
//!   rest of the cluster is asked for: a server that refuses connections and answers nothing is down, however many of its
//!   peers are, too.
//! - Suspicion: from `threshold` in a row until it trips or a row ends: `suspect_share` of the weight, and a probe at once.
//!   At the latest 10 s after the last failure.
//! - Statistic: one count, and when it began.
//! - Cold start: Unknown until the first success.

use std::time::Duration;

use model::event::Evidence;
use model::health::Health;
use model::outcome::OutcomeClass;
use model::passive::{ConnectFailures as Options, PassivePolicy as AllOptions};
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::first::first_success;
use super::{BuiltIn, Needs, PassivePolicy, PassiveSettings, PassiveState, Proof, Suspicion, Verdict};
use crate::input::OutcomeEvent;

/// The policy with its count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectFailures {
    options: Options,
    in_row: u32,
    since: Timestamp,
    failed_at: Timestamp,
    is_suspect: bool,
}

impl ConnectFailures {
    /// Nothing seen.
    pub fn new(options: Options) -> Self {
        Self { options, in_row: 0, since: Timestamp::ZERO, failed_at: Timestamp::ZERO, is_suspect: false }
    }

    fn end(&mut self) {
        self.in_row = 0;
        self.is_suspect = false;
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

    fn on_outcome(&mut self, now: Timestamp, _: &PassiveState, event: &OutcomeEvent) -> Option<Verdict> {
        match event.outcome.class {
            OutcomeClass::ConnFail => {
                if self.in_row == 0 {
                    self.since = now;
                }
                self.failed_at = now;
                self.in_row = self.in_row.saturating_add(1);
            }
            OutcomeClass::Ok
            | OutcomeClass::AppFail
            | OutcomeClass::Overload
            | OutcomeClass::Timeout
            | OutcomeClass::Cut
            | OutcomeClass::Slow => self.end(),
            OutcomeClass::Neutral => {}
        }
        self.is_suspect = self.in_row >= self.options.threshold;
        let has_lasted = now.since(self.since) >= self.options.persist;
        (self.is_suspect && has_lasted).then(|| {
            let (failed, limit) = (Some(u64::from(self.in_row)), Some(f64::from(self.options.threshold)));
            let window = Some(now.since(self.since));
            Verdict::of(Health::Unhealthy, Evidence { failed, limit, window, ..Evidence::default() })
        })
    }

    fn on_sums(&mut self, _: Timestamp, destination: &PassiveState, ok: u64) -> Option<Verdict> {
        if ok > 0 {
            self.end();
        }
        first_success(destination, ok)
    }

    fn suspicion(&self) -> Option<Suspicion> {
        self.is_suspect.then_some(Suspicion { proof: Proof::Outright, share: self.options.suspect_share })
    }

    fn due_at(&self) -> Option<Timestamp> {
        self.is_suspect.then_some(self.failed_at + SUSPECT_FOR)
    }

    fn on_due(&mut self, now: Timestamp) {
        if now.since(self.failed_at) >= SUSPECT_FOR {
            self.is_suspect = false;
        }
    }

    fn on_ejected(&mut self, _: Timestamp) {
        self.end();
    }

    fn on_reactivated(&mut self, _: Timestamp) {
        self.end();
    }

    fn on_configured(&mut self, settings: &PassiveSettings) {
        if let AllOptions::ConnectFailures(options) = settings.options {
            self.options = options;
        }
    }
}

/// As events show it.
pub(crate) const NAME: &str = "ConnectFailures";
/// A suspicion without a new failure ends after so long.
const SUSPECT_FOR: Duration = Duration::from_secs(10);
