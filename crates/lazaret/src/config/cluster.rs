//! Clusters and their destinations.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::checks::HealthCheckConfig;
use super::span;

/// One of `clusters`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClusterConfig {
    /// Its id: the key in the file.
    #[serde(skip)]
    pub cluster_id: String,
    /// `none`, `yarp` or `nginx`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compat: Option<String>,
    /// A built-in name or one registered with [`crate::Builder::load_balancing_policy`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancing: Option<String>,
    /// What ConsistentHash goes by; the client's address when unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<HashConfig>,
    /// Sticky clients; on when present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_affinity: Option<SessionAffinityConfig>,
    /// Checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_check: Option<HealthCheckConfig>,
    /// What is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryConfig>,
    /// How requests wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueConfig>,
    /// How long things may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<TimeoutsConfig>,
    /// TLS towards https destinations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,
    /// `destination` or `original`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Which addresses of names count: `auto`, `v4`, `v6` or `both`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// Own addresses to connect from, used evenly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_addresses: Vec<String>,
    /// Whether tunnels end when their destination turns Unhealthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close_on_unhealthy: Option<bool>,
    /// `off`, or `v2`: connections begin with a PROXY header that names the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_protocol: Option<String>,
    /// `1.1`, `2` or `2-or-1.1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// Free text for custom policies.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The servers.
    #[serde(serialize_with = "by_id")]
    pub destinations: Vec<DestinationConfig>,
}

/// `hash` of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HashConfig {
    /// The client's address.
    ClientAddress,
    /// The path.
    Path,
    /// The first value of this header field.
    Header(String),
    /// The first value of this cookie.
    Cookie(String),
}

/// One of a cluster's `destinations`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DestinationConfig {
    /// Its id: the key in the file.
    #[serde(skip)]
    pub destination_id: String,
    /// Where requests go.
    pub address: String,
    /// Where probes go instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
    /// Host header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Share of traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Serves only while no other is good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<bool>,
    /// Most requests in flight; 0: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<u32>,
    /// Its own max_fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_fails: Option<u32>,
    /// Its own fail_timeout.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub fail_timeout: Option<Duration>,
}

impl DestinationConfig {
    /// A destination with nothing but an address.
    pub fn new(id: &str, address: &str) -> Self {
        Self { destination_id: id.to_owned(), address: address.to_owned(), ..Self::default() }
    }
}

/// `session_affinity` of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SessionAffinityConfig {
    /// Off switch; on unless `Some(false)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// `HashCookie`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// `Redistribute` or `Return503Error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<String>,
    /// Name of the cookie.
    pub key_name: String,
    /// Attributes of the cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cookie: Option<AffinityCookieConfig>,
}

/// `session_affinity.cookie`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AffinityCookieConfig {
    /// `Path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `Domain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// `HttpOnly`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_only: Option<bool>,
    /// `Secure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure: Option<bool>,
    /// `SameSite`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_site: Option<String>,
    /// `Max-Age`.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub max_age: Option<Duration>,
}

/// `queue` of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QueueConfig {
    /// Most requests that wait; 0: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u32>,
    /// How long one waits for a place at a destination.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub busy_timeout: Option<Duration>,
    /// How long one waits where no destination is available.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub unavailable_timeout: Option<Duration>,
}

/// `retry` of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RetryConfig {
    /// Off switch; on unless `Some(false)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// `error`, `timeout`, `invalid_header`, `http_502` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<String>>,
    /// All tries together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u8>,
    /// For one try up to its head.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub per_try_timeout: Option<Duration>,
    /// POST and PATCH, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_idempotent: Option<bool>,
    /// `64KiB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    /// The client's own patience.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub client_timeout: Option<Duration>,
    /// Share of it that is kept for the network, such as `10%`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_margin: Option<String>,
    /// `trusted`: requests with an Idempotency-Key may be repeated like idempotent ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// How many retries traffic pays for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<RetryBudgetConfig>,
}

/// `budget` of `retry`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RetryBudgetConfig {
    /// Share of the recent first attempts that may be repeated, such as `20%`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<String>,
    /// Retries a second that are always paid for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_second: Option<u16>,
}

/// `timeouts` of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TimeoutsConfig {
    /// TCP and TLS.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub connect: Option<Duration>,
    /// No byte on either side.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub idle: Option<Duration>,
    /// No byte on either side of an upgraded connection for so long.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub tunnel_idle: Option<Duration>,
    /// Pooled connections are closed after so long without use.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub pool_idle: Option<Duration>,
    /// Pooled connections per worker and destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_size: Option<u32>,
    /// A PING after so long without a byte while exchanges wait on an HTTP/2 connection.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub http2_ping: Option<Duration>,
}

/// `tls` of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TlsConfig {
    /// PEM file with authorities in place of the platform's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    /// Name for SNI and verification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// `full` or `dangerous_none`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<String>,
    /// PEM file with the chain that destinations see when they ask for a certificate; `key` goes with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// PEM file with the private key of `certificate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Writes the list as the file's block, id by id, in the list's order.
fn by_id<S: Serializer>(destinations: &[DestinationConfig], out: S) -> Result<S::Ok, S::Error> {
    out.collect_map(destinations.iter().map(|destination| (&destination.destination_id, destination)))
}
