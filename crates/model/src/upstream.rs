//! How destinations are spoken to: versions of HTTP, where connections start, how names become addresses.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Which HTTP a cluster's destinations speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum UpstreamHttp {
    /// HTTP/1.1 alone.
    #[default]
    #[serde(rename = "1.1")]
    Http1,
    /// HTTP/2 alone: by ALPN over TLS, by prior knowledge without (RFC 9113 3.3).
    #[serde(rename = "2")]
    Http2,
    /// HTTP/2 where ALPN chooses it, else HTTP/1.1; without TLS HTTP/1.1.
    #[serde(rename = "2-or-1.1")]
    Http2OrHttp1,
}

/// Where connections to destinations start, what they begin with, and what ends those that were upgraded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Outbound {
    /// Own addresses to connect from, used evenly; empty: the system chooses.
    pub source_addresses: Vec<IpAddr>,
    /// Whether connections begin with a PROXY header, version 2, that names the client (LOCAL for probes). Such
    /// connections serve one client each.
    pub proxy_protocol: SendProxy,
    /// What becomes of tunnels when their destination turns Unhealthy.
    pub tunnels: Tunnels,
}

/// What becomes of tunnels (upgraded connections) when their destination turns Unhealthy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tunnels {
    /// They go on.
    #[default]
    Keep,
    /// They are closed, within a second of the verdict.
    CloseOnUnhealthy,
}

/// Whether connections to destinations begin with a PROXY header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendProxy {
    /// They do not.
    #[default]
    Off,
    /// Version 2.
    V2,
}

/// Which addresses of a name count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// IPv4 where there is any, else IPv6: a host with both counts once.
    #[default]
    Auto,
    /// IPv4 alone.
    V4,
    /// IPv6 alone.
    V6,
    /// All.
    Both,
}
