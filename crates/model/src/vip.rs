//! The resolved configuration of `lazaret-rhi`: VIPs and what each of them stands for.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// rhi.yaml, resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RhiConfig {
    /// From the start of one poll cycle to the start of the next; 3 s unless set.
    pub poll_interval: Duration,
    /// Base URL of the control API, without a closing slash.
    pub control_url: String,
    /// How long a poll may take; also the deadline of a cycle.
    pub timeout: Duration,
    /// Interface whose addresses the routing daemon exports.
    pub interface: String,
    /// Every line from info up; `None`: standard error.
    pub main_log: Option<PathBuf>,
    /// Warnings and errors once more.
    pub error_log: Option<PathBuf>,
    /// What happens when the control API does not answer.
    pub failure_policy: FailurePolicy,
    /// Node states that count as healthy.
    pub healthy_states: Vec<String>,
    /// What happens to the VIPs at a planned stop.
    pub on_exit: OnExit,
    /// Path of the status socket.
    pub status_socket: PathBuf,
    /// The VIPs, in the order of the file; addresses are distinct.
    pub vips: Vec<Vip>,
}

/// What happens when the control API does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailurePolicy {
    /// The action.
    pub control_api_unreachable: Unreachable,
    /// After so many failed polls in a row; 1 or more.
    pub max_failed_polls: u32,
}

/// Actions for a control API that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unreachable {
    /// The upstream counts as having no healthy node.
    Withdraw,
    /// VIPs that name it stay as they are.
    Announce,
}

/// What happens to the VIPs at a planned stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnExit {
    /// They are taken off the interface.
    #[default]
    Withdraw,
    /// They stay.
    Keep,
}

/// One VIP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vip {
    /// The address, without prefix length: always /32 or /128.
    pub address: IpAddr,
    /// Words for people.
    pub description: String,
    /// What it stands for; one at least.
    pub upstreams: Vec<UpstreamRef>,
    /// How several of them join.
    pub condition: Condition,
}

/// How several upstreams of one VIP join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// Each has a healthy node.
    #[default]
    All,
    /// One of them has.
    Any,
}

/// A health-checked object of the control API: kind and id, as in `/v1/healthcheck/{kind}/{id}`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UpstreamRef {
    /// `upstreams`, `routes`, `services` or `stream_routes`.
    pub kind: String,
    /// The id.
    pub id: String,
}

impl fmt::Display for UpstreamRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.id)
    }
}
