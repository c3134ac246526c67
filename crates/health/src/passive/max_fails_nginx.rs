//! `MaxFails` under `compat: nginx`: nginx 1.22's rule to the letter, its false revivals included.
//!
//! - Signal: every outcome, in whole seconds as nginx's cached clock has them. A failure of the transport before a
//!   complete response head always counts (a stale pooled connection, too); a listed 429, 500, 502, 503 or 504 only when
//!   the request could in fact have been repeated; everything else, client aborts and bodies that broke off included, is
//!   a pass.
//! - Trip: `fails` reaches `max_fails`. Out while now - checked <= fail_timeout, in whole seconds.
//! - Statistic: `fails`, and two seconds: `accessed` (last counted failure) and `checked` (that, or the last pick more
//!   than `fail_timeout` after it). A pass clears `fails`, but only when accessed < checked: so `fail_timeout` is a quiet
//!   gap that forgives, not a window, and no number of successes within it lowers the count.
//! - Return: after `fail_timeout` one request at a time is admitted (the gate); its pass clears the count, its failure
//!   ejects again. The only destination of a cluster is never ejected.
//! - Cold start: in.
//!
//! ```text
//!            fails reaches max_fails                 now - checked > fail_timeout
//!   in ─────────────────────────────────> out ───────────────────────────────────> in, gated
//!   ^                                      ^                                         │   │
//!   └──── pass (accessed < checked) ───────┼─────────────────────────────────────────┘   │
//!                                          └────────────── failure ──────────────────────┘
//! ```
//!
//! nginx also lowers a failed peer's weight for a while; that part belongs to the balancer and is not done.
//!
//! A pick becomes known with its outcome, not when it happens: a long request that is still running has not moved
//! `checked` yet.

use std::time::Duration;

use model::event::Evidence;
use model::health::Health;
use model::outcome::{FailureKind, Outcome, OutcomeClass};
use model::passive::{MaxFails, PassivePolicy as Options};
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::{BuiltIn, History, Needs, PassivePolicy, PassiveSettings, PassiveState, Verdict};
use crate::input::OutcomeEvent;

/// The policy with its three numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NginxMaxFails {
    options: MaxFails,
    is_single: bool,
    fails: u32,
    accessed: u64,
    checked: u64,
}

impl NginxMaxFails {
    /// In, without a failure. `n_destinations` is the cluster's: the only one is never ejected.
    pub fn new(options: MaxFails, n_destinations: usize) -> Self {
        Self { options, is_single: n_destinations == 1, fails: 0, accessed: 0, checked: 0 }
    }

    fn is_tripped(&self) -> bool {
        self.options.max_fails > 0 && !self.is_single && self.fails >= self.options.max_fails
    }

    fn fail_timeout(&self) -> u64 {
        self.options.fail_timeout.as_secs()
    }

    /// From `now` to the first second at which a pick is possible again.
    fn out_for(&self, now: Timestamp) -> Duration {
        Timestamp::from_secs(self.checked.saturating_add(self.fail_timeout()).saturating_add(1)).since(now)
    }
}

impl PassivePolicy for NginxMaxFails {
    fn name(&self) -> &str {
        "MaxFails"
    }

    fn needs(&self) -> Needs {
        Needs::EveryOutcome
    }

    fn as_built_in(&self) -> Option<BuiltIn> {
        Some(BuiltIn::NginxMaxFails(self.clone()))
    }

    fn on_outcome(&mut self, now: Timestamp, destination: &PassiveState, event: &OutcomeEvent) -> Option<Verdict> {
        let picked = seconds(event.picked_at);
        if picked.saturating_sub(self.checked) > self.fail_timeout() {
            self.checked = picked;
        }
        if is_counted(&event.outcome) {
            self.fails = self.fails.saturating_add(1);
            self.accessed = seconds(event.at);
            self.checked = self.accessed;
            if !self.is_tripped() {
                return None;
            }
            let evidence = Evidence {
                failed: Some(u64::from(self.fails)),
                limit: Some(f64::from(self.options.max_fails)),
                window: Some(self.options.fail_timeout),
                ..Evidence::default()
            };
            let reactivation = Some(self.out_for(now));
            return Some(Verdict { reactivation, ..Verdict::of(Health::Unhealthy, evidence) });
        }
        if self.accessed < self.checked {
            self.fails = 0;
        }
        let is_good = !self.is_tripped() && destination.health != Health::Healthy;
        is_good.then(|| Verdict::of(Health::Healthy, Evidence::default()))
    }

    fn history(&self) -> Option<History> {
        let Self { fails, accessed, checked, .. } = *self;
        Some(History::NginxMaxFails { fails, accessed, checked })
    }

    fn restore(&mut self, history: History) {
        if let History::NginxMaxFails { fails, accessed, checked } = history {
            (self.fails, self.accessed, self.checked) = (fails, accessed, checked);
        }
    }

    fn on_configured(&mut self, settings: &PassiveSettings) {
        self.is_single = settings.n_destinations == 1;
        if let Options::MaxFails(options) = settings.options {
            self.options = options;
        }
    }

    fn is_gated(&self) -> bool {
        self.is_tripped()
    }
}

fn seconds(at: Timestamp) -> u64 {
    at.as_nanos() / 1_000_000_000
}

fn is_counted(outcome: &Outcome) -> bool {
    if outcome.client_gone {
        return false;
    }
    match outcome.failure {
        Some(
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
            | FailureKind::RequestBody,
        ) => true,
        None if outcome.status.is_none() => is_counted_by_class(outcome.class),
        None | Some(FailureKind::Status) => {
            outcome.retryable && matches!(outcome.status, Some(429 | 500 | 502 | 503 | 504))
        }
        Some(
            FailureKind::BodyCut
            | FailureKind::BodyTimeout
            | FailureKind::Body
            | FailureKind::Local
            | FailureKind::ClientGone
            | FailureKind::ClientBody
            | FailureKind::Deadline
            | FailureKind::Unprocessed
            | FailureKind::RefusedStream
            | FailureKind::ClientDeadline
            | FailureKind::ShortDeadline
            | FailureKind::Cancelled,
        ) => false,
    }
}

/// In a storm of failures only the class of some is left.
fn is_counted_by_class(class: OutcomeClass) -> bool {
    match class {
        OutcomeClass::ConnFail | OutcomeClass::Timeout | OutcomeClass::AppFail => true,
        OutcomeClass::Ok | OutcomeClass::Overload | OutcomeClass::Cut | OutcomeClass::Slow | OutcomeClass::Neutral => {
            false
        }
    }
}
