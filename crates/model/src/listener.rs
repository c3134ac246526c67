//! Where clients connect.

use std::net::SocketAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::id::ListenerId;
use crate::timeouts::ClientLimits;
use crate::tls::ListenerTls;

/// A listener. Bound with IP_FREEBIND, so that an address that is not up yet is no obstacle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listener {
    /// Its id.
    pub id: ListenerId,
    /// Address and port; port 0 takes a free one.
    pub address: SocketAddr,
    /// What clients may send.
    pub limits: ClientLimits,
    /// Peers whose X-Forwarded-For and Forwarded are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Whether `GET /.lazaret/self` is answered here.
    pub self_check: SelfCheck,
    /// Who may connect, and how connections begin.
    pub entry: Entry,
    /// TLS; `None`: plain.
    pub tls: Option<ListenerTls>,
    /// Limits of HTTP/2 connections.
    pub http2: Http2Limits,
}

/// Limits of a client's HTTP/2 connection; what RFC 9113 leaves to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http2Limits {
    /// Streams at the same time: SETTINGS_MAX_CONCURRENT_STREAMS.
    pub streams: u32,
}

impl Default for Http2Limits {
    fn default() -> Self {
        Self { streams: 100 }
    }
}

/// Whether a listener answers `GET /.lazaret/self` to local peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelfCheck {
    /// It does.
    On,
    /// The path is a path like any other.
    #[default]
    Off,
}
