//! Health checks of a cluster.

use std::time::Duration;

use serde::Serialize;

use super::span;

/// `health_check` of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HealthCheckConfig {
    /// Who may serve; HealthyOrPanic unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_destinations_policy: Option<AvailablePolicyConfig>,
    /// Probes; on when present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveHealthCheckConfig>,
    /// Traffic; on when present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passive: Option<PassiveHealthCheckConfig>,
}

/// `health_check.available_destinations_policy`: a name, or a name with its option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum AvailablePolicyConfig {
    /// A built-in name or one registered with [`crate::Builder::available_policy`].
    Named(String),
    /// PanicThreshold with its percentage.
    Threshold {
        /// `PanicThreshold`.
        name: String,
        /// All are used when fewer than so many in a hundred are left.
        percent: u8,
    },
}

impl AvailablePolicyConfig {
    /// PanicThreshold: all are used when fewer than so many in a hundred are left.
    pub fn panic_threshold(percent: u8) -> Self {
        Self::Threshold { name: crate::policies::PANIC_THRESHOLD.to_owned(), percent }
    }
}

impl From<&str> for AvailablePolicyConfig {
    fn from(name: &str) -> Self {
        Self::Named(name.to_owned())
    }
}

/// `health_check.active`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ActiveHealthCheckConfig {
    /// Off switch; on unless `Some(false)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// `http`, `tcp` or `grpc`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// From start to start.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub interval: Option<Duration>,
    /// The same while Unhealthy.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub unhealthy_interval: Option<Duration>,
    /// For a probe in all.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub timeout: Option<Duration>,
    /// Who judges; a built-in name or one registered with [`crate::Builder::active_policy`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Failed probes in a row that make Unhealthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u32>,
    /// Passed probes in a row that make Healthy again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthy_threshold: Option<u32>,
    /// To the next probe while a verdict is pending.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub confirm_interval: Option<Duration>,
    /// `probe_first` or `eligible`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// `destination` or `cluster`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round: Option<String>,
    /// HTTP of `http` probes, in place of the cluster's: `1.1`, `2` or `2-or-1.1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// What `grpc` probes ask for; unset: the server as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Request method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Starts with `/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Starts with `?`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Host header of probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Further header fields of probes.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub headers: std::collections::BTreeMap<String, String>,
    /// What a passed probe looks like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<ExpectConfig>,
}

/// `health_check.active.expect`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ExpectConfig {
    /// `"200-299"`, `"204"`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub status: Vec<String>,
    /// Text that the body contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// `health_check.passive`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PassiveHealthCheckConfig {
    /// Off switch; on unless `Some(false)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Who judges; TransportFailureRate when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PassivePolicyConfig>,
    /// From ejection to Unknown.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub reactivation_period: Option<Duration>,
}

/// One of `health_check.passive.policies`. Which options a policy knows is checked by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PassivePolicyConfig {
    /// A built-in name or one registered with [`crate::Builder::passive_policy`].
    pub name: String,
    /// TransportFailureRate: trips when the share reaches it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<f64>,
    /// TransportFailureRate: how long an attempt counts.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub window: Option<Duration>,
    /// TransportFailureRate: attempts below which nothing trips.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<u32>,
    /// MaxFails: trips at so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_fails: Option<u32>,
    /// MaxFails: window and ejection.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub fail_timeout: Option<Duration>,
}

impl PassivePolicyConfig {
    /// A policy with its defaults.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}
