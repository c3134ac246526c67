//! Active policies: what probes say of a destination.
//!
//! One value of a policy serves one cluster for as long as the cluster keeps that policy. The core counts failed and
//! passed probes in a row itself and hands them over as facts, so most policies need no state of their own.

mod consecutive_failures;

use std::fmt::Debug;

use model::active::{ActiveCheck, ActivePolicy as Options};
use model::event::Evidence;
use model::health::{Health, HealthPair};
use model::id::{ClusterId, DestinationId, Slot};
use model::outcome::FailureKind;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

pub use consecutive_failures::ConsecutiveFailures;

use crate::destination::DestinationState;
use crate::registry::Registry;

/// Judges probes. Write one, register it under a name (`lazaret::Builder::active_policy`, which is
/// [`crate::Registry::active`] here), and name it as a cluster's policy.
pub trait ActivePolicy: Debug + Send {
    /// Its name, as events show it.
    fn name(&self) -> &str;

    /// Results came in: one, or with `round: cluster` all of a round (then ordered as the cluster's destinations).
    /// Answers verdicts for the destinations it wants to change; a missing one leaves the value as it is.
    fn on_probes(&mut self, now: Timestamp, cluster: &ClusterProbes<'_>, results: &[ProbeResult])
    -> Vec<ActiveVerdict>;

    /// The destination is gone, has a new address, or its check was turned off: drop what is kept about it.
    fn on_forgotten(&mut self, slot: Slot) {
        let _ = slot;
    }
}

/// What a policy may know of the whole cluster. Looked up on demand, so that judging one probe of a large cluster is cheap.
#[derive(Debug)]
pub struct ClusterProbes<'a> {
    /// Which cluster.
    pub id: &'a ClusterId,
    pub(crate) states: &'a [DestinationState],
}

impl ClusterProbes<'_> {
    /// Every destination, in the order of the configuration.
    pub fn destinations(&self) -> impl Iterator<Item = DestinationProbes> {
        self.states.iter().map(DestinationState::probe_facts)
    }

    /// The one that a result names.
    pub fn destination(&self, slot: Slot) -> Option<DestinationProbes> {
        self.states.iter().find(|state| state.slot == slot).map(DestinationState::probe_facts)
    }
}

/// What a policy may know of one destination. The counts include the results handed over in the same call.
#[derive(Clone, Debug)]
pub struct DestinationProbes {
    /// Which.
    pub id: DestinationId,
    /// The same, as results name it.
    pub slot: Slot,
    /// Both values before this call.
    pub health: HealthPair,
    /// Failed probes in a row; 0 after a passed one.
    pub failures_in_row: u32,
    /// Passed probes in a row; 0 after a failed one.
    pub passes_in_row: u32,
}

/// One judged-to-be probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// Whose.
    pub slot: Slot,
    /// When it started.
    pub started_at: Timestamp,
    /// When its end became known.
    pub ended_at: Timestamp,
    /// How it failed; `None`: it passed, unexpected statuses included as [`FailureKind::Status`].
    pub failure: Option<FailureKind>,
    /// The answer's status, when one came.
    pub status: Option<u16>,
}

/// What an active policy answers for one destination.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveVerdict {
    /// For whom.
    pub slot: Slot,
    /// The value from now on.
    pub health: Health,
    /// What it rests on; the core adds the last failed probes.
    pub evidence: Evidence,
}

/// The policy that the options name; `None` for a custom one that nobody registered.
pub(crate) fn build(check: &ActiveCheck, registry: &Registry) -> Option<Box<dyn ActivePolicy>> {
    match &check.policy {
        Options::ConsecutiveFailures { threshold } => Some(Box::new(ConsecutiveFailures {
            threshold: *threshold,
            healthy_threshold: check.request.healthy_threshold,
        })),
        Options::Custom(name) => registry.build_active(name),
    }
}
