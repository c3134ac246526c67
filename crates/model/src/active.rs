//! Active checks: how a cluster's destinations are probed, and by which policy the results are judged.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::PolicyName;
use crate::upstream::UpstreamHttp;

/// The active check of a cluster. Present means on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActiveCheck {
    /// What a probe is.
    pub kind: ProbeKind,
    /// From the start of one probe to the start of the next; above zero.
    pub interval: Duration,
    /// Interval while the destination is Unhealthy; the same as `interval` unless set.
    pub unhealthy_interval: Duration,
    /// How long a probe may take in all; above zero.
    pub timeout: Duration,
    /// Who judges.
    pub policy: ActivePolicy,
    /// The next probe comes after this while a verdict is pending (250 ms after a refusal, when that is less).
    pub confirm_interval: Duration,
    /// Whether a destination waits for its first probe.
    pub start: ProbeStart,
    /// Whether the policy sees each result at once or a whole round.
    pub round: ProbeRound,
    /// What is sent and expected.
    pub request: ProbeRequest,
}

impl ActiveCheck {
    /// The HTTP that probes speak: the check's own, else the cluster's; always HTTP/2 for `grpc`.
    pub fn http(&self, cluster: UpstreamHttp) -> UpstreamHttp {
        match self.kind {
            ProbeKind::Grpc => UpstreamHttp::Http2,
            ProbeKind::Http | ProbeKind::Tcp => self.request.http.unwrap_or(cluster),
        }
    }
}

/// Kinds of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbeKind {
    /// An HTTP request (over TLS when the URL says so).
    Http,
    /// A TCP connection that comes up (and its TLS handshake when the URL says https).
    Tcp,
    /// A call of `grpc.health.v1.Health/Check` over HTTP/2.
    Grpc,
}

/// What a destination does before its first judged probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeStart {
    /// One that is added while another of its cluster is Healthy is held out until its first passed probe, 5 s at most.
    ProbeFirst,
    /// Takes traffic at once.
    Eligible,
}

/// How many results a policy gets in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeRound {
    /// Each by itself, when it comes.
    Destination,
    /// All of the cluster's, when the last of a round has come.
    Cluster,
}

/// The probe's request and what is expected of its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeRequest {
    /// Request method; GET unless set.
    pub method: String,
    /// Appended to the base URL's path; starts with `/`. `None` leaves the base path.
    pub path: Option<String>,
    /// Appended to the path; starts with `?`.
    pub query: Option<String>,
    /// Value of the Host header in place of the destination's.
    pub host: Option<String>,
    /// Further fields.
    pub headers: Vec<(String, String)>,
    /// Statuses that count as success.
    pub expect_statuses: Vec<StatusRange>,
    /// Text that the body's first 64 KiB must contain.
    pub expect_body: Option<String>,
    /// The HTTP that is spoken, in place of the cluster's. `grpc` probes speak HTTP/2 whatever stands here.
    pub http: Option<UpstreamHttp>,
    /// The service that a `grpc` probe asks for; empty or `None`: the server as a whole.
    pub service: Option<String>,
    /// Passed probes in a row until an Unhealthy destination is Healthy again; 1 or more.
    pub healthy_threshold: u32,
}

/// Statuses from `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusRange {
    /// The lowest.
    pub low: u16,
    /// The highest.
    pub high: u16,
}

impl StatusRange {
    /// 200 to 299.
    pub const SUCCESS: Self = Self { low: 200, high: 299 };

    /// Whether it holds `status`.
    pub fn contains(self, status: u16) -> bool {
        (self.low..=self.high).contains(&status)
    }
}

/// Policies that judge probes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ActivePolicy {
    /// So many failed probes in a row make Unhealthy; one passed probe makes Healthy.
    ConsecutiveFailures {
        /// 1 or more.
        threshold: u32,
    },
    /// One registered in code.
    Custom(PolicyName),
}
