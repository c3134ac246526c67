//! Passive policies: what a destination's own traffic says of it.
//!
//! One value of a policy serves one destination for as long as its address and the policy stay. Several run side by
//! side; whichever finds the destination bad ejects it.

mod failure;
mod history;
mod max_fails;
mod max_fails_nginx;
mod settings;
mod transport_failure_rate;
mod transport_failure_rate_yarp;

use std::fmt::Debug;
use std::time::Duration;

use model::cluster::Compat;
use model::event::Evidence;
use model::health::Health;
use model::passive::PassivePolicy as Options;
use model::time::Timestamp;

use crate::input::OutcomeEvent;
use crate::registry::Registry;

pub use history::History;
pub use max_fails::SlidingMaxFails;
pub use max_fails_nginx::NginxMaxFails;
pub use settings::PassiveSettings;
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

    /// Whether requests to the destination must go one at a time.
    fn is_gated(&self) -> bool {
        false
    }
}

/// What a passive policy wants to hear of. The more demanding one of a cluster's policies decides for the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// For Unhealthy: Unknown again after this; `None`: the cluster's reactivation period, 60 s unless set.
    pub reactivation: Option<Duration>,
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
        (Options::Custom(name), _) => registry.build_passive(name, settings),
    }
}
