//! What the health core knows, as one immutable picture: the availability view for traffic and the facts for people.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::available::Because;
use crate::event::Transition;
use crate::health::{HealthPair, Switch};
use crate::id::{ClusterId, DestinationId, PolicyName, Revision, Slot};
use crate::outcome::FailureKind;
use crate::ratio::Ratio;
use crate::time::Timestamp;

/// Every cluster's health at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HealthView {
    /// Number of the last event that is part of it.
    pub revision: Revision,
    /// When the core last ran its timers.
    pub at: Timestamp,
    /// In the order of the configuration.
    pub clusters: Vec<Arc<ClusterHealth>>,
}

/// One cluster's health.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusterHealth {
    /// Whose.
    pub id: ClusterId,
    /// Whether probes run.
    pub active: Switch,
    /// Whether traffic is judged.
    pub passive: Switch,
    /// In the order of the configuration.
    pub destinations: Vec<DestinationHealth>,
    /// Indexes into `destinations` of those that traffic may use, in that order.
    pub available: Vec<u32>,
    /// All are used because too few are healthy.
    pub is_panic: bool,
}

/// One destination's health.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DestinationHealth {
    /// Whose.
    pub id: DestinationId,
    /// Its place in the board's records.
    pub slot: Slot,
    /// Both values.
    pub health: HealthPair,
    /// Why it is (or is not) available.
    pub because: Because,
    /// Whether traffic may use it.
    pub is_available: bool,
    /// Node status as APISIX words it.
    pub status: NodeStatus,
    /// The four consecutive counts.
    pub counter: Counter,
    /// When the last probe was judged.
    pub probed_at: Option<Timestamp>,
    /// How the last probe failed; `None`: it passed, or there was none.
    pub probe_failure: Option<FailureKind>,
    /// Status of the last probe's answer.
    pub probe_status: Option<u16>,
    /// When the next probe starts.
    pub next_probe_at: Option<Timestamp>,
    /// When its ejection ends.
    pub reactivation_at: Option<Timestamp>,
    /// When one of its values last changed.
    pub changed_at: Option<Timestamp>,
    /// A gate admits one request at a time (a trial after an ejection).
    pub is_gated: bool,
    /// The part of its weight that it gets; below 1 while it is suspect or comes back.
    pub share: Ratio,
    /// Policies that are not enforced and would have it out.
    pub would_eject: Vec<PolicyName>,
    /// The last change of either value.
    pub last_transition: Option<Arc<Transition>>,
}

/// A node's status in APISIX's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeStatus {
    /// Good.
    Healthy,
    /// Good, with a failure since.
    MostlyHealthy,
    /// Bad, with a success since.
    MostlyUnhealthy,
    /// Bad.
    Unhealthy,
    /// Not known yet.
    Unknown,
}

impl NodeStatus {
    /// APISIX's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::MostlyHealthy => "mostly_healthy",
            Self::MostlyUnhealthy => "mostly_unhealthy",
            Self::Unhealthy => "unhealthy",
            Self::Unknown => "unknown",
        }
    }
}

/// Consecutive counts as APISIX shows them; each stops at 255.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// Successes since the last failure.
    pub success: u8,
    /// Failures by status or content since the last success.
    pub http_failure: u8,
    /// Failures to connect since the last success.
    pub tcp_failure: u8,
    /// Timeouts since the last success.
    pub timeout_failure: u8,
}
