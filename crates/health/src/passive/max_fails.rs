//! `MaxFails`, our own arithmetic: so many failed attempts within `fail_timeout`.
//!
//! - Signal: failures one by one, by transport or by status (500, 502, 503, 504), each attempt charged whether or not it
//!   could have been repeated. Client aborts and our own limits say nothing.
//! - Trip: on a failure, when `max_fails` of them are no older than `fail_timeout`. 0 turns the rule off.
//! - Statistic: a true sliding count. Each failure leaves it by its own age and by nothing else: no success lowers it, so
//!   nothing that merely is not a failure (a client that gave up, a 500 to a POST) can bring a dead destination back.
//! - Reactivation: after the cluster's period where one is set, else after `fail_timeout`; then full traffic and an empty
//!   count.
//! - Cold start: Unknown until the first success.
//!
//! nginx itself measures the gap between failures instead of their age, which also ejects a destination with one failure
//! each `fail_timeout` less a second, and lets any non-failure clear its count after a quiet time. That arithmetic is
//! [`super::NginxMaxFails`], under `compat: nginx`.

use std::collections::VecDeque;
use std::time::Duration;

use model::event::Evidence;
use model::health::Health;
use model::passive::{MaxFails, PassivePolicy as Options};
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::failure::is_failed_attempt;
use super::first::first_success;
use super::{BuiltIn, History, Needs, PassivePolicy, PassiveSettings, PassiveState, Verdict};
use crate::input::OutcomeEvent;

/// The policy with its count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlidingMaxFails {
    options: MaxFails,
    /// The cluster's own, if one is set.
    reactivation_period: Option<Duration>,
    failed_at: VecDeque<Timestamp>,
}

impl SlidingMaxFails {
    /// An empty count.
    pub fn new(options: MaxFails, reactivation_period: Option<Duration>) -> Self {
        Self { options, reactivation_period, failed_at: VecDeque::new() }
    }
}

impl PassivePolicy for SlidingMaxFails {
    fn name(&self) -> &str {
        "MaxFails"
    }

    fn needs(&self) -> Needs {
        Needs::Failures
    }

    fn as_built_in(&self) -> Option<BuiltIn> {
        Some(BuiltIn::SlidingMaxFails(self.clone()))
    }

    fn on_outcome(&mut self, now: Timestamp, _: &PassiveState, event: &OutcomeEvent) -> Option<Verdict> {
        let MaxFails { max_fails, fail_timeout } = self.options;
        if max_fails == 0 || !is_failed_attempt(&event.outcome) {
            return None;
        }
        self.failed_at.push_back(now);
        while self.failed_at.front().is_some_and(|at| now.since(*at) > fail_timeout) {
            self.failed_at.pop_front();
        }
        if (self.failed_at.len() as u64) < u64::from(max_fails) {
            return None;
        }
        let evidence = Evidence {
            failed: Some(self.failed_at.len() as u64),
            limit: Some(f64::from(max_fails)),
            window: Some(fail_timeout),
            ..Evidence::default()
        };
        let reactivation = Some(self.reactivation_period.unwrap_or(fail_timeout));
        Some(Verdict { reactivation, ..Verdict::of(Health::Unhealthy, evidence) })
    }

    fn on_sums(&mut self, _: Timestamp, destination: &PassiveState, ok: u64) -> Option<Verdict> {
        first_success(destination, ok)
    }

    fn on_ejected(&mut self, _: Timestamp) {
        self.failed_at.clear();
    }

    fn on_reactivated(&mut self, _: Timestamp) {
        self.failed_at.clear();
    }

    fn history(&self) -> Option<History> {
        Some(History::SlidingMaxFails(self.failed_at.clone()))
    }

    fn restore(&mut self, history: History) {
        if let History::SlidingMaxFails(failed_at) = history {
            self.failed_at = failed_at;
        }
    }

    fn on_configured(&mut self, settings: &PassiveSettings) {
        if let Options::MaxFails(options) = settings.options {
            self.options = options;
            self.reactivation_period = settings.reactivation_period;
        }
    }
}
