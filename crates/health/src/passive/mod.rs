//! Passive policies: what a destination's own traffic says of it.
//!
//! One value of a policy serves one destination for as long as its address and the policy stay. Several run side by
//! side; whichever finds the destination bad ejects it.

mod built_in;
mod burst;
mod connect_failures;
mod consecutive_errors;
mod failure;
mod first;
mod history;
mod latency;
mod max_fails;
mod max_fails_nginx;
mod outlier;
mod overload;
mod settings;
mod stall;
mod transport_failure_rate;
mod transport_failure_rate_yarp;

use std::fmt::Debug;
use std::time::Duration;

use model::cluster::Compat;
use model::event::Evidence;
use model::health::{Health, Switch};
use model::passive::{Comparison, PassivePolicy as Options};
use model::ratio::Ratio;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::input::{OutcomeEvent, Pulse};
use crate::registry::Registry;

pub use built_in::BuiltIn;
pub use burst::Burst;
pub use connect_failures::ConnectFailures;
pub(crate) use connect_failures::NAME as CONNECT_FAILURES;
pub use consecutive_errors::ConsecutiveErrors;
pub(crate) use failure::{is_failed_attempt, is_transport_failure};
pub use history::History;
pub use latency::Latency;
pub use max_fails::SlidingMaxFails;
pub use max_fails_nginx::NginxMaxFails;
pub use outlier::Outlier;
pub use overload::Overload;
pub use settings::PassiveSettings;
pub use stall::Stall;
pub use transport_failure_rate::WindowedFailureRate;
pub use transport_failure_rate_yarp::YarpFailureRate;

/// Judges the outcomes of one destination. Write one, register it under a name (`lazaret::Builder::passive_policy`, which
/// is [`crate::Registry::passive`] here), and list it among a cluster's passive policies.
///
/// Except under `compat`, outcomes of requests that were picked before the latest ejection (or within 10 ms after it,
/// before every worker knew) are not shown: they say nothing new, so late answers can neither prolong an ejection nor end
/// it early.
pub trait PassivePolicy: Debug + Send {
    /// Its name, as events show it.
    fn name(&self) -> &str;

    /// What it wants to hear of. Must always answer the same.
    fn needs(&self) -> Needs;

    /// One attempt ended. With [`Needs::Failures`] it is not Ok, otherwise it can be anything.
    fn on_outcome(&mut self, now: Timestamp, destination: &PassiveState, event: &OutcomeEvent) -> Option<Verdict>;

    /// So many attempts came to Ok since the last call ([`Needs::Failures`] only). Called before the failures of the
    /// same time.
    fn on_sums(&mut self, now: Timestamp, destination: &PassiveState, ok: u64) -> Option<Verdict> {
        let _ = (now, destination, ok);
        None
    }

    /// How the destination's requests in flight are doing, once a tick while something goes on there; when nothing waits
    /// and the mean is forgotten once more, and then no more until something happens.
    fn on_pulse(&mut self, now: Timestamp, pulse: &Pulse, around: &Around) {
        let _ = (now, pulse, around);
    }

    /// Since when it wants to be told now, by [`Self::on_asking`], how often the destination and the rest of its cluster asked
    /// for less; ten seconds at most are known. Asked whenever something happens there, and when [`Self::due_at`] has come.
    fn looks_back(&self, now: Timestamp) -> Option<Timestamp> {
        let _ = now;
        None
    }

    /// What [`Self::looks_back`] asked for.
    fn on_asking(&mut self, now: Timestamp, own: Asking, rest: Asking) {
        let _ = (now, own, rest);
    }

    /// An active probe of the destination passed.
    fn on_probe_passed(&mut self, now: Timestamp) {
        let _ = now;
    }

    /// Since when it would like to hear what a probe says before it suspects; `None`: it has no question. A probe comes at
    /// once, for each destination once a second at most.
    fn asks_at(&self) -> Option<Timestamp> {
        None
    }

    /// A doubt that is no verdict: the destination gets only a part of its weight, and a probe at once when one begins.
    fn suspicion(&self) -> Option<Suspicion> {
        None
    }

    /// When [`Self::on_due`] is wanted; `None`: not at all.
    fn due_at(&self) -> Option<Timestamp> {
        None
    }

    /// The time of [`Self::due_at`] has come.
    fn on_due(&mut self, now: Timestamp) {
        let _ = now;
    }

    /// Some policy, or a program, ejected the destination. What was seen before says nothing new from here on.
    fn on_ejected(&mut self, now: Timestamp) {
        let _ = now;
    }

    /// The reactivation period is over: the value is Unknown again. A policy that keeps a history cuts it here.
    fn on_reactivated(&mut self, now: Timestamp) {
        let _ = now;
    }

    /// A reload changed the options of this very policy: take them over, keep the history.
    fn on_configured(&mut self, settings: &PassiveSettings) {
        let _ = settings;
    }

    /// What it has seen, for the process that takes over from this one; `None`: there it begins anew.
    fn history(&self) -> Option<History> {
        None
    }

    /// Goes on from what one of the same name has seen in another process. Options may have changed since.
    fn restore(&mut self, history: History) {
        let _ = history;
    }

    /// Itself with all that it has seen, for a checkpoint; `None`: written by others, and begins anew in a replay.
    fn as_built_in(&self) -> Option<BuiltIn> {
        None
    }

    /// Whether requests to the destination must go one at a time.
    fn is_gated(&self) -> bool {
        false
    }
}

/// What a passive policy wants to hear of. The more demanding one of a cluster's policies decides for the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Needs {
    /// Nothing: no check at all.
    Nothing,
    /// Failures one by one, successes as sums. Also what a cluster with an active check alone needs: a refused live
    /// connection brings the next probe forward.
    Failures,
    /// Each outcome as an event of its own.
    EveryOutcome,
}

/// What a policy may know of its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassiveState {
    /// The passive value.
    pub health: Health,
    /// When it was last ejected.
    pub ejected_at: Option<Timestamp>,
}

/// What a passive policy answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The value from now on.
    pub health: Health,
    /// What it rests on; the core adds the last failures.
    pub evidence: Evidence,
    /// For Unhealthy: Unknown again after this; `None`: the cluster's reactivation period or way of readmission, 60 s
    /// where there is neither.
    pub reactivation: Option<Duration>,
    /// For Unhealthy: what must hold besides.
    pub proof: Proof,
}

impl Verdict {
    /// A verdict that stands by itself, for as long as the cluster has it.
    pub fn of(health: Health, evidence: Evidence) -> Self {
        Self { health, evidence, reactivation: None, proof: Proof::Outright }
    }
}

/// What a verdict of Unhealthy needs besides the policy's own word.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Proof {
    /// Nothing.
    #[default]
    Outright,
    /// The destination must fail more than the rest of its cluster. And where probes run, one that passes right after the
    /// ejection ends it: trial requests decide then.
    AgainstRest {
        /// By how much.
        comparison: Comparison,
        /// What follows where nobody else has traffic.
        alone: Alone,
    },
}

/// What a comparison comes to where there is nobody to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    /// The policy's word is enough.
    Convicts,
    /// Nothing follows.
    Acquits,
}

/// A doubt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Suspicion {
    /// What must hold for it besides the policy's own word.
    pub proof: Proof,
    /// The part of its weight that the destination keeps; at zero it serves only where no other can.
    pub share: Ratio,
}

/// How the rest of the cluster is doing at the time of a pulse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Around {
    /// Whether probes run, so that [`PassivePolicy::asks_at`] gets an answer.
    pub probes: Switch,
    /// When a byte or an end last came from any of the others.
    pub moved_at: Timestamp,
    /// The greatest of the cluster's [`Pulse::slowest`], this one's among them.
    pub slowest: Option<Duration>,
    /// The median of the means of the cluster's times to first byte; `None` below three destinations that have one.
    pub median: Option<Duration>,
}

/// How often somebody asked for less (429, 529, 503 with Retry-After, gRPC's RESOURCE_EXHAUSTED, HTTP/2's REFUSED_STREAM).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asking {
    /// So often.
    pub asked: u64,
    /// Of so many attempts, whatever they came to; what says nothing about the destination is none.
    pub attempts: u64,
}

impl Asking {
    /// The part of the attempts; 0 of none.
    pub fn share(self) -> f64 {
        if self.attempts == 0 { 0.0 } else { self.asked as f64 / self.attempts as f64 }
    }
}

/// The policy that the settings name; `None` for a custom one that nobody registered.
pub(crate) fn build(settings: &PassiveSettings, registry: &Registry) -> Option<Box<dyn PassivePolicy>> {
    match (&settings.options, settings.compat) {
        (Options::TransportFailureRate(options), Compat::Yarp) => {
            Some(Box::new(YarpFailureRate::new(*options, settings.reactivation_period)))
        }
        (Options::TransportFailureRate(options), Compat::None | Compat::Nginx) => {
            Some(Box::new(WindowedFailureRate::new(*options)))
        }
        (Options::MaxFails(options), Compat::Nginx) => {
            Some(Box::new(NginxMaxFails::new(*options, settings.n_destinations)))
        }
        (Options::MaxFails(options), Compat::None | Compat::Yarp) => {
            Some(Box::new(SlidingMaxFails::new(*options, settings.reactivation_period)))
        }
        (Options::ConsecutiveErrors(options), _) => Some(Box::new(ConsecutiveErrors::new(*options))),
        (Options::FailureRate(options), _) => Some(Box::new(WindowedFailureRate::of_attempts(*options))),
        (Options::Outlier(options), _) => Some(Box::new(Outlier::new(*options))),
        (Options::Burst(options), _) => Some(Box::new(Burst::new(*options))),
        (Options::ConnectFailures(options), _) => Some(Box::new(ConnectFailures::new(*options))),
        (Options::Stall(options), _) => Some(Box::new(Stall::new(*options))),
        (Options::Latency(options), _) => Some(Box::new(Latency::new(*options))),
        (Options::Overload(options), _) => Some(Box::new(Overload::new(*options))),
        (Options::Custom(name), _) => registry.build_passive(name, settings),
    }
}
