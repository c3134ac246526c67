//! `TransportFailureRate` under `compat: yarp`: the arithmetic of YARP 2.3 to the letter, its oddities included.
//!
//! - Signal: every outcome. A transport failure counts unless the client was gone when it ended; everything else,
//!   client aborts and every status included, counts as a success in the total.
//! - Trip: at every event, also a success, when failed / total reaches `rate_limit`; below `minimum` the rate is 0, so a
//!   limit of 0 (or NaN) ejects at the first event and one above 1 never does. Any event below the limit says Healthy
//!   and so ends an ejection early.
//! - Statistic: running totals, one open bucket and closed ones. A bucket is opened by an event at t and closed by the
//!   first event at or after t + 1 s, stamped with t + 1 s; closed ones leave when they are older than the window,
//!   strictly. Nothing but an event moves it. History survives ejection and reactivation.
//! - Reactivation: the longer one of the reactivation period (60 s unless set) and the window.
//! - Cold start: Healthy after the first event.

use std::collections::VecDeque;
use std::time::Duration;

use model::event::Evidence;
use model::health::Health;
use model::outcome::{FailureKind, Outcome, OutcomeClass};
use model::passive::{DEFAULT_REACTIVATION, PassivePolicy as Options, TransportFailureRate};
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{BuiltIn, History, Needs, PassivePolicy, PassiveSettings, PassiveState, Verdict};
use crate::input::OutcomeEvent;

/// The policy with its history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct YarpFailureRate {
    options: TransportFailureRate,
    reactivation: Duration,
    failed: u64,
    total: u64,
    open: Option<Bucket>,
    closed: VecDeque<Bucket>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Bucket {
    closes_at: Timestamp,
    failed: u64,
    total: u64,
}

impl YarpFailureRate {
    /// An empty history.
    pub fn new(options: TransportFailureRate, reactivation_period: Option<Duration>) -> Self {
        let reactivation = reactivation_period.unwrap_or(DEFAULT_REACTIVATION).max(options.window);
        Self { options, reactivation, failed: 0, total: 0, open: None, closed: VecDeque::new() }
    }

    fn add(&mut self, at: Timestamp, failed: u64) {
        if let Some(due) = self.open.take_if(|open| at >= open.closes_at) {
            self.closed.push_back(due);
        }
        let open = self.open.get_or_insert(Bucket { closes_at: at + BUCKET, failed: 0, total: 0 });
        open.failed += failed;
        open.total += 1;
        self.failed += failed;
        self.total += 1;
        while let Some(old) = self.closed.pop_front() {
            if at.since(old.closes_at) <= self.options.window {
                self.closed.push_front(old);
                break;
            }
            self.failed -= old.failed;
            self.total -= old.total;
        }
    }
}

impl PassivePolicy for YarpFailureRate {
    fn name(&self) -> &str {
        "TransportFailureRate"
    }

    fn needs(&self) -> Needs {
        Needs::EveryOutcome
    }

    fn as_built_in(&self) -> Option<BuiltIn> {
        Some(BuiltIn::YarpFailureRate(self.clone()))
    }

    fn on_outcome(&mut self, _: Timestamp, _: &PassiveState, event: &OutcomeEvent) -> Option<Verdict> {
        self.add(event.at, u64::from(is_failure(&event.outcome)));
        let is_enough = self.total >= u64::from(self.options.minimum) && self.total > 0;
        let rate = if is_enough { self.failed as f64 / self.total as f64 } else { 0.0 };
        let health = if rate < self.options.rate_limit { Health::Healthy } else { Health::Unhealthy };
        let evidence = Evidence {
            failed: Some(self.failed),
            total: Some(self.total),
            // A limit that is no number ejects at once and cannot be shown as one.
            limit: (!self.options.rate_limit.is_nan()).then_some(self.options.rate_limit),
            window: Some(self.options.window),
            ..Evidence::default()
        };
        Some(Verdict { reactivation: Some(self.reactivation), ..Verdict::of(health, evidence) })
    }

    fn history(&self) -> Option<History> {
        let values = |one: &Bucket| (one.closes_at, one.failed, one.total);
        Some(History::YarpFailureRate {
            open: self.open.as_ref().map(values),
            closed: self.closed.iter().map(values).collect(),
        })
    }

    fn restore(&mut self, history: History) {
        if let History::YarpFailureRate { open, closed } = history {
            let bucket = |(closes_at, failed, total)| Bucket { closes_at, failed, total };
            self.open = open.map(bucket);
            self.closed = closed.into_iter().map(bucket).collect();
            let all = || self.closed.iter().chain(&self.open);
            self.failed = all().fold(0, |sum, one| sum.saturating_add(one.failed));
            self.total = all().fold(0, |sum, one| sum.saturating_add(one.total));
        }
    }

    fn on_configured(&mut self, settings: &PassiveSettings) {
        if let Options::TransportFailureRate(options) = settings.options {
            self.options = options;
            self.reactivation = settings.reactivation_period.unwrap_or(DEFAULT_REACTIVATION).max(options.window);
        }
    }
}

/// YARP's table of blame. Its route timeout acts as a client abort, so our total deadline is none of the destination's
/// fault here.
fn is_failure(outcome: &Outcome) -> bool {
    if outcome.client_gone {
        return false;
    }
    let Some(failure) = outcome.failure else {
        // In a storm of failures only the class of some is left.
        return matches!(outcome.class, OutcomeClass::ConnFail | OutcomeClass::Timeout | OutcomeClass::Cut);
    };
    match failure {
        FailureKind::Dns
        | FailureKind::Refused
        | FailureKind::Unreachable
        | FailureKind::ConnectTimeout
        | FailureKind::Tls
        | FailureKind::Reset
        | FailureKind::Closed
        | FailureKind::HeadTimeout
        | FailureKind::TryTimeout
        | FailureKind::Protocol
        | FailureKind::HeadTooLarge
        | FailureKind::RequestBody
        | FailureKind::BodyCut
        | FailureKind::BodyTimeout => true,
        FailureKind::Status
        | FailureKind::Body
        | FailureKind::Local
        | FailureKind::ClientGone
        | FailureKind::ClientBody
        | FailureKind::Deadline
        | FailureKind::Unprocessed
        | FailureKind::RefusedStream
        | FailureKind::ClientDeadline
        | FailureKind::ShortDeadline
        | FailureKind::Cancelled => false,
    }
}

const BUCKET: Duration = Duration::from_secs(1);
