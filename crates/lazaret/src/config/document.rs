//! The whole of it: what the builder collects and hands to the file's reader.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::cluster::ClusterConfig;
use super::listener::{self, ListenerTlsConfig};
use super::policy::{self, ErrorPageConfig};
use super::route::RouteConfig;
use super::span;

/// One of `listeners`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ListenerConfig {
    /// Its id: the key in the file.
    #[serde(skip)]
    pub listener_id: String,
    /// `127.0.0.1:8080`; port 0 takes a free one.
    pub address: String,
    /// TLS; plain unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<ListenerTlsConfig>,
    /// Networks whose connections begin with a PROXY header; no connection does unless set.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "listener::proxy_protocol")]
    pub proxy_protocol: Vec<String>,
    /// Networks that may connect; all unless set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Networks that may not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Connections per client at the same time; no limit unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_connections: Option<u32>,
    /// What clients may send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<LimitsConfig>,
    /// Peers whose X-Forwarded-For is believed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trusted_proxies: Vec<String>,
    /// Answer `GET /.lazaret/self` to local peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_check: Option<bool>,
    /// Limits of HTTP/2 connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2: Option<Http2Config>,
}

/// `http2` of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Http2Config {
    /// Requests at the same time on one connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
}

/// `limits` of a listener.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LimitsConfig {
    /// For a request head.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub header_timeout: Option<Duration>,
    /// Between two requests.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub keepalive: Option<Duration>,
    /// From the accept to the end of the TLS handshake.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub tls_handshake: Option<Duration>,
    /// Longest request line, such as `8KiB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_line: Option<String>,
    /// Longest head without its request line, such as `32KiB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_bytes: Option<String>,
    /// Most header fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_fields: Option<u32>,
    /// Longest request body, such as `10MiB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// Process-wide defaults of TransportFailureRate: `health_defaults.transport_failure_rate`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TransportFailureRateOptions {
    /// How long an attempt counts; 60 s unless set.
    #[serde(rename = "window", skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub detection_window_size: Option<Duration>,
    /// Attempts below which nothing trips; 10 unless set.
    #[serde(rename = "minimum", skip_serializing_if = "Option::is_none")]
    pub minimal_total_count_threshold: Option<u32>,
    /// Trips when the share reaches it; 0.3 unless set.
    #[serde(rename = "rate_limit", skip_serializing_if = "Option::is_none")]
    pub default_failure_rate_limit: Option<f64>,
}

/// `drain`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DrainConfig {
    /// Goes on accepting for so long.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub lead: Option<Duration>,
    /// Finishes what is in flight within this.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub grace: Option<Duration>,
    /// After an upgrade the old process finishes within this.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub upgrade_grace: Option<Duration>,
}

/// `dns`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DnsConfig {
    /// Name servers such as `10.0.0.53` or `10.0.0.53:5353`; the system's unless set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// An answer is good for so long at least.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub min_ttl: Option<Duration>,
    /// And for so long at most.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub max_ttl: Option<Duration>,
}

/// `recorder`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecorderConfig {
    /// Nothing of what the health core is told is kept.
    Off,
    /// The last minutes are kept, in memory and, where one is named, in a folder.
    On {
        /// So long back; 30 minutes unless set.
        keep: Option<Duration>,
        /// Bytes at most; 16 MiB unless set.
        size: Option<u64>,
        /// A folder that outlives the process; memory alone unless set.
        folder: Option<PathBuf>,
    },
}

impl Serialize for RecorderConfig {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct On<'a> {
            #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
            keep: Option<Duration>,
            #[serde(skip_serializing_if = "Option::is_none")]
            size: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            folder: Option<&'a Path>,
        }
        match self {
            Self::Off => out.serialize_str("off"),
            Self::On { keep, size, folder } => {
                On { keep: *keep, size: *size, folder: folder.as_deref() }.serialize(out)
            }
        }
    }
}

/// The document.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    pub(crate) workers: Option<u16>,
    pub(crate) control: Option<String>,
    pub(crate) control_socket: Option<String>,
    pub(crate) access_log: Option<String>,
    pub(crate) request_id: Option<String>,
    pub(crate) error_pages: Vec<ErrorPageConfig>,
    pub(crate) drain: Option<DrainConfig>,
    pub(crate) dns: Option<DnsConfig>,
    pub(crate) recorder: Option<RecorderConfig>,
    pub(crate) transport_failure_rate: Option<TransportFailureRateOptions>,
    pub(crate) listeners: Vec<ListenerConfig>,
    pub(crate) routes: Vec<RouteConfig>,
    pub(crate) clusters: Vec<ClusterConfig>,
}

impl Document {
    /// The text that the file's reader gets.
    pub(crate) fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(None)?;
        map.serialize_entry("version", &1)?;
        if let Some(workers) = self.workers {
            map.serialize_entry("workers", &workers)?;
        }
        let control = Pairs(vec![("address", self.control.as_deref()), ("socket", self.control_socket.as_deref())]);
        if control.0.iter().any(|(_, value)| value.is_some()) {
            map.serialize_entry("control", &control)?;
        }
        if let Some(access_log) = &self.access_log {
            map.serialize_entry("access_log", access_log)?;
        }
        if let Some(header) = &self.request_id {
            map.serialize_entry("request_id", &Pairs(vec![("header", Some(header))]))?;
        }
        if !self.error_pages.is_empty() {
            map.serialize_entry("error_pages", &Pages(&self.error_pages))?;
        }
        if let Some(drain) = &self.drain {
            map.serialize_entry("drain", drain)?;
        }
        if let Some(dns) = &self.dns {
            map.serialize_entry("dns", dns)?;
        }
        if let Some(recorder) = &self.recorder {
            map.serialize_entry("recorder", recorder)?;
        }
        if let Some(options) = &self.transport_failure_rate {
            map.serialize_entry("health_defaults", &Defaults { transport_failure_rate: options })?;
        }
        map.serialize_entry("listeners", &Block(&self.listeners, |l| &l.listener_id))?;
        map.serialize_entry("routes", &Block(&self.routes, |r| &r.route_id))?;
        map.serialize_entry("clusters", &Block(&self.clusters, |c| &c.cluster_id))?;
        map.end()
    }
}

#[derive(Serialize)]
struct Defaults<'a> {
    transport_failure_rate: &'a TransportFailureRateOptions,
}

struct Pages<'a>(&'a [ErrorPageConfig]);

impl Serialize for Pages<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        policy::error_pages(self.0, out)
    }
}

struct Pairs<'a>(Vec<(&'static str, Option<&'a str>)>);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_map(self.0.iter().filter_map(|(key, value)| value.map(|value| (key, value))))
    }
}

/// A list as the file's block, id by id; repeated ids stay repeated, so that the reader can refuse them.
struct Block<'a, T>(&'a [T], fn(&T) -> &String);

impl<T: Serialize> Serialize for Block<'_, T> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_map(self.0.iter().map(|item| ((self.1)(item), item)))
    }
}
