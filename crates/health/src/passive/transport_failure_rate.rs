//! `TransportFailureRate`, our own arithmetic: the share of attempts whose transport failed, within a sliding window.
//!
//! - Signal: failures one by one, successes as sums. A status, 500 included, is no failure; Neutral counts as nothing.
//! - Trip: on a failure, when `minimum` attempts are in the window and failed / total reaches `rate_limit`. A success
//!   never ejects.
//! - Statistic: a ring of 60 buckets over `window`; an attempt counts for between 59/60 of the window and all of it. The
//!   ring is emptied at ejection and at reactivation, so a verdict never rests on what an earlier one rested on.
//! - Cold start: Unknown until the first success; nothing trips below `minimum`.
//!
//! `FailureRate` is the same with another signal: every failed attempt counts, by its transport or by its status.
//!
//! The policy of this name under `compat: yarp` is [`super::YarpFailureRate`].

use std::collections::VecDeque;

use model::event::Evidence;
use model::health::Health;
use model::outcome::OutcomeClass;
use model::passive::{FailureRate, PassivePolicy as Options, TransportFailureRate};
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::failure::{is_failed_attempt, is_transport_failure};
use super::first::first_success;
use super::{BuiltIn, History, Needs, PassivePolicy, PassiveSettings, PassiveState, Verdict};
use crate::input::OutcomeEvent;

/// The policy with its history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowedFailureRate {
    signal: Signal,
    options: TransportFailureRate,
    buckets: VecDeque<Bucket>,
}

/// What counts as a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Signal {
    Transport,
    Attempts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Bucket {
    number: u64,
    failed: u64,
    total: u64,
}

impl WindowedFailureRate {
    /// `TransportFailureRate` with an empty history.
    pub fn new(options: TransportFailureRate) -> Self {
        Self { signal: Signal::Transport, options, buckets: VecDeque::new() }
    }

    /// `FailureRate` with an empty history.
    pub fn of_attempts(options: FailureRate) -> Self {
        Self { signal: Signal::Attempts, ..Self::new(same(options)) }
    }

    fn add(&mut self, now: Timestamp, failed: u64, total: u64) {
        let width = (u64::try_from(self.options.window.as_nanos()).unwrap_or(u64::MAX) / N_BUCKETS).max(1);
        let number = now.as_nanos() / width;
        while self.buckets.front().is_some_and(|oldest| oldest.number.saturating_add(N_BUCKETS) <= number) {
            self.buckets.pop_front();
        }
        match self.buckets.back_mut() {
            Some(newest) if newest.number >= number => {
                newest.failed = newest.failed.saturating_add(failed);
                newest.total = newest.total.saturating_add(total);
            }
            Some(_) | None => self.buckets.push_back(Bucket { number, failed, total }),
        }
    }
}

impl PassivePolicy for WindowedFailureRate {
    fn name(&self) -> &str {
        match self.signal {
            Signal::Transport => "TransportFailureRate",
            Signal::Attempts => "FailureRate",
        }
    }

    fn needs(&self) -> Needs {
        Needs::Failures
    }

    fn as_built_in(&self) -> Option<BuiltIn> {
        Some(BuiltIn::WindowedFailureRate(self.clone()))
    }

    fn on_outcome(&mut self, now: Timestamp, _: &PassiveState, event: &OutcomeEvent) -> Option<Verdict> {
        if event.outcome.class == OutcomeClass::Neutral {
            return None;
        }
        let is_failure = match self.signal {
            Signal::Transport => is_transport_failure(&event.outcome),
            Signal::Attempts => is_failed_attempt(&event.outcome),
        };
        self.add(now, u64::from(is_failure), 1);
        if !is_failure {
            return None;
        }
        let failed = self.buckets.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket.failed));
        let total = self.buckets.iter().fold(0_u64, |sum, bucket| sum.saturating_add(bucket.total));
        if total < u64::from(self.options.minimum) || (failed as f64 / total as f64) < self.options.rate_limit {
            return None;
        }
        let evidence = Evidence {
            failed: Some(failed),
            total: Some(total),
            limit: Some(self.options.rate_limit),
            window: Some(self.options.window),
            ..Evidence::default()
        };
        Some(Verdict::of(Health::Unhealthy, evidence))
    }

    fn on_sums(&mut self, now: Timestamp, destination: &PassiveState, ok: u64) -> Option<Verdict> {
        self.add(now, 0, ok);
        first_success(destination, ok)
    }

    fn on_ejected(&mut self, _: Timestamp) {
        self.buckets.clear();
    }

    fn on_reactivated(&mut self, _: Timestamp) {
        self.buckets.clear();
    }

    fn history(&self) -> Option<History> {
        let buckets = self.buckets.iter().map(|one| (one.number, one.failed, one.total)).collect();
        Some(History::WindowedFailureRate { window: self.options.window, buckets })
    }

    fn restore(&mut self, history: History) {
        if let History::WindowedFailureRate { window, buckets } = history
            && window == self.options.window
        {
            let bucket = |(number, failed, total)| Bucket { number, failed, total };
            self.buckets = buckets.into_iter().map(bucket).collect();
        }
    }

    fn on_configured(&mut self, settings: &PassiveSettings) {
        let options = match settings.options {
            Options::TransportFailureRate(options) => options,
            Options::FailureRate(options) => same(options),
            Options::MaxFails(_)
            | Options::ConsecutiveErrors(_)
            | Options::Outlier(_)
            | Options::Burst(_)
            | Options::ConnectFailures(_)
            | Options::Stall(_)
            | Options::Latency(_)
            | Options::Overload(_)
            | Options::Custom(_) => return,
        };
        if options.window != self.options.window {
            // Buckets of another width cannot be told apart by age.
            self.buckets.clear();
        }
        self.options = options;
    }
}

fn same(FailureRate { rate_limit, window, minimum }: FailureRate) -> TransportFailureRate {
    TransportFailureRate { rate_limit: rate_limit.get(), window, minimum }
}

const N_BUCKETS: u64 = 60;
