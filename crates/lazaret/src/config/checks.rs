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
    /// What holds ejections back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guards: Option<GuardsConfig>,
}

/// `health_check.guards`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GuardsConfig {
    /// At most this share of the weight is out because of its traffic alone, between 0 and 1; for one that still answers some of
    /// its requests those that probes have taken out count, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ejected: Option<f64>,
    /// Destinations leave one after the other: one in each n-th part of this, n their number.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub spacing: Option<Duration>,
    /// `leaves` or `stays`: the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// `leaves` or `stays`: one whose probes come to nothing while its requests are answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answering: Option<String>,
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
    /// Who judges; the native default set, with readmission and guards, when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<PassivePolicyConfig>,
    /// Who is judged beside them and never enforced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shadow: Vec<PassivePolicyConfig>,
    /// From ejection to Unknown.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub reactivation_period: Option<Duration>,
    /// The way back; full traffic at once when unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readmission: Option<ReadmissionConfig>,
}

/// `health_check.passive.readmission`. What is unset has its default.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReadmissionConfig {
    /// Length of the first ejection; each failed way back doubles it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub first: Option<Duration>,
    /// It grows no further than this.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub longest: Option<Duration>,
    /// Longer or shorter by up to this part, between 0 and 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
    /// Trial requests that must pass, one at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canaries: Option<u32>,
    /// Passed probes count in their place after so long without one.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub patience: Option<Duration>,
    /// Without any sign for so long the ramp begins.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub quiet: Option<Duration>,
    /// From the least share to all of the weight.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub ramp: Option<Duration>,
    /// Where the ramp begins, between 0 and 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_share: Option<f64>,
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
    /// ConsecutiveErrors: trips at so many in a row; ConnectFailures: suspects at so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u32>,
    /// ConsecutiveErrors, Outlier, Burst: whether an answer of 500 is a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count_500: Option<bool>,
    /// Outlier, Overload: standard deviations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub z: Option<f64>,
    /// Outlier, Overload: how far the shares must differ, between 0 and 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
    /// Outlier: nobody is convicted while the rest fails as often.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest_limit: Option<f64>,
    /// Burst: share of failures that is normal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good: Option<f64>,
    /// Burst: share of failures to be found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bad: Option<f64>,
    /// Burst: suspects at this sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// Burst, ConnectFailures, Latency: how long it must last.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub persist: Option<Duration>,
    /// Burst, ConnectFailures: the part of its weight that a suspect keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspect_share: Option<f64>,
    /// Stall: silence below this is none.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub at_least: Option<Duration>,
    /// Stall: times the 99th percentile of the time to first byte; Latency: times the cluster's median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Latency: and slower than the median by this.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub slower_by: Option<Duration>,
    /// Latency, Overload: the least part of its weight that it keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_share: Option<f64>,
}

impl PassivePolicyConfig {
    /// A policy with its defaults.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}
