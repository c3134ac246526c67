//! `Burst`: failures that come in a burst and last.
//!
//! - Signal: failures one by one, successes as sums. No connection, no head in time, broken off, 502, 503 without
//!   Retry-After, 504; 500 only with `plain_500`. Of repeats only those that got no connection: what else fails after it has
//!   failed elsewhere may be the request's fault ([`crate::comparison`]).
//! - Trip: on a failure, when the sum has reached `limit` and has been above zero for `persist`. Then this is an
//!   accusation: it convicts where the rest of the cluster fails less, or where nobody else had traffic
//!   lately. Otherwise the failures are somebody else's (a shared dependency, the clients, too much load for all).
//! - Suspicion: from the moment that the sum reaches `limit`, on the same ground, until it is zero again, at the latest 10 s
//!   after the last failure: `suspect_share` of the weight, and a probe at once. So a pause of 300 ms costs its length and no
//!   more, and failures that all share cost nobody its weight.
//! - Statistic: CUSUM, S = max(0, S + ln(bad/good)) on a failure, S = max(0, S + ln((1-bad)/(1-good))) on a success,
//!   never above twice the limit (E. S. Page, "Continuous inspection schemes", 1954).
//! - Cold start: four failures in a row suspect, also the first four.

use std::time::Duration;

use model::event::Evidence;
use model::health::Health;
use model::outcome::{OutcomeClass, Try};
use model::passive::{Burst as Options, Comparison, PassivePolicy as AllOptions};
use model::ratio::Ratio;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::first::first_success;
use super::outlier::ASK_AGAIN;
use super::{Alone, BuiltIn, History, Needs, PassivePolicy, PassiveSettings, PassiveState, Proof, Suspicion, Verdict};
use crate::input::OutcomeEvent;
use crate::window::Counts;

/// The policy with its sum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    options: Options,
    sum: f64,
    /// Since when the sum is above zero.
    positive_since: Option<Timestamp>,
    failed_at: Timestamp,
    is_suspect: bool,
    asked_at: Option<Timestamp>,
    failed: u64,
}

impl Burst {
    /// Nothing seen.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            sum: 0.0,
            positive_since: None,
            failed_at: Timestamp::ZERO,
            is_suspect: false,
            asked_at: None,
            failed: 0,
        }
    }

    fn rise(&self) -> f64 {
        libm::log(self.options.bad.get() / self.options.good.get())
    }

    fn fall(&self) -> f64 {
        libm::log((1.0 - self.options.good.get()) / (1.0 - self.options.bad.get()))
    }

    fn succeed(&mut self, n: u64) {
        self.sum -= n as f64 * self.fall();
        if self.sum <= 0.0 {
            self.clear();
        }
    }

    fn proof(&self) -> Proof {
        let comparison = Comparison { minimum: 1, plain_500: self.options.plain_500, ..Comparison::default() };
        Proof::AgainstRest { comparison, alone: Alone::Convicts }
    }

    fn clear(&mut self) {
        self.sum = 0.0;
        self.positive_since = None;
        self.is_suspect = false;
        self.failed = 0;
        self.asked_at = None;
    }
}

impl PassivePolicy for Burst {
    fn name(&self) -> &str {
        "Burst"
    }

    fn needs(&self) -> Needs {
        Needs::Failures
    }

    fn as_built_in(&self) -> Option<BuiltIn> {
        Some(BuiltIn::Burst(self.clone()))
    }

    fn on_outcome(&mut self, now: Timestamp, _: &PassiveState, event: &OutcomeEvent) -> Option<Verdict> {
        let counts = Counts::of(&event.outcome);
        if counts.failures(self.options.plain_500) == 0 {
            // A 500 that does not count is an answer.
            self.succeed(counts.total());
            return None;
        }
        if event.which == Try::Repeat && event.outcome.class != OutcomeClass::ConnFail {
            return None;
        }
        let since = *self.positive_since.get_or_insert(now);
        self.failed_at = now;
        self.failed = self.failed.saturating_add(1);
        self.sum = (self.sum + self.rise()).min(2.0 * self.options.limit);
        if self.sum < self.options.limit {
            return None;
        }
        self.is_suspect = true;
        let is_early = now.since(since) < self.options.persist;
        if is_early || self.asked_at.is_some_and(|at| now.since(at) < ASK_AGAIN) {
            return None;
        }
        self.asked_at = Some(now);
        let proof = self.proof();
        let evidence = Evidence { failed: Some(self.failed), window: Some(now.since(since)), ..Evidence::default() };
        Some(Verdict { proof, ..Verdict::of(Health::Unhealthy, evidence) })
    }

    fn on_sums(&mut self, _: Timestamp, destination: &PassiveState, ok: u64) -> Option<Verdict> {
        self.succeed(ok);
        first_success(destination, ok)
    }

    fn suspicion(&self) -> Option<Suspicion> {
        self.is_suspect.then(|| Suspicion { proof: self.proof(), share: self.options.suspect_share })
    }

    fn due_at(&self) -> Option<Timestamp> {
        self.is_suspect.then_some(self.failed_at + SUSPECT_FOR)
    }

    fn on_due(&mut self, now: Timestamp) {
        if now.since(self.failed_at) >= SUSPECT_FOR {
            self.clear();
        }
    }

    fn on_ejected(&mut self, _: Timestamp) {
        self.clear();
    }

    fn on_reactivated(&mut self, _: Timestamp) {
        self.clear();
    }

    fn history(&self) -> Option<History> {
        Some(History::Burst {
            sum: Ratio::new(self.sum / (2.0 * self.options.limit)).unwrap_or(Ratio::ZERO),
            positive_since: self.positive_since,
            failed_at: self.failed_at,
            failed: self.failed,
        })
    }

    fn restore(&mut self, history: History) {
        if let History::Burst { sum, positive_since, failed_at, failed } = history {
            self.sum = sum.get() * 2.0 * self.options.limit;
            self.is_suspect = self.sum >= self.options.limit;
            (self.positive_since, self.failed_at, self.failed) = (positive_since, failed_at, failed);
        }
    }

    fn on_configured(&mut self, settings: &PassiveSettings) {
        if let AllOptions::Burst(options) = settings.options {
            self.options = options;
            self.sum = self.sum.min(2.0 * options.limit);
        }
    }
}

/// A suspicion without a new failure ends after so long.
const SUSPECT_FOR: Duration = Duration::from_secs(10);
