//! What a route asks of its clients and does to messages: limits, transforms, pages, maintenance, as code says them.

use std::time::Duration;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::span;

/// `limit_requests` of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RequestLimitConfig {
    /// `10/s`, `600/m` or `1000/h`.
    pub rate: String,
    /// So many at once; one second's worth unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// By what clients are told apart; by their address unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<LimitKeyConfig>,
}

/// `key` of `limit_requests`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKeyConfig {
    /// The client's address; IPv6 by /64.
    ClientAddress,
    /// The value of this header, the address where it is missing.
    Header(String),
}

/// One of a route's `transforms`: its keys and values in the file's words.
///
/// `TransformConfig::new("request_header", "x-side").and("set", "blue")`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransformConfig {
    pairs: Vec<(String, String)>,
}

impl TransformConfig {
    /// The transform's name, and the value that stands behind it.
    pub fn new(name: &str, value: &str) -> Self {
        Self { pairs: vec![(name.to_owned(), value.to_owned())] }
    }

    /// One more of its keys.
    #[must_use]
    pub fn and(mut self, key: &str, value: &str) -> Self {
        self.pairs.push((key.to_owned(), value.to_owned()));
        self
    }
}

impl Serialize for TransformConfig {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_map(self.pairs.iter().map(|(key, value)| (key, value)))
    }
}

/// One of `error_pages`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ErrorPageConfig {
    /// `503`, `4xx` or `5xx`: the key in the file.
    #[serde(skip)]
    pub status: String,
    /// `text/html; charset=utf-8` unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// The page; or else:
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The file that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl ErrorPageConfig {
    /// An HTML page for this status (`503`, `4xx` or `5xx`).
    pub fn html(status: &str, body: &str) -> Self {
        Self { status: status.to_owned(), body: Some(body.to_owned()), ..Self::default() }
    }
}

/// `maintenance` of a route: it is closed to all but some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MaintenanceConfig {
    /// Off switch; on unless `Some(false)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// 503 unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Plain text; the error page of the status unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// When to come back.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub retry_after: Option<Duration>,
    /// Networks for which the route is open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
}

/// Writes the pages as `{503: {body: …}}`; a status that stands twice stays twice, so that the reader can refuse it.
pub(super) fn error_pages<S: Serializer>(pages: &[ErrorPageConfig], out: S) -> Result<S::Ok, S::Error> {
    out.collect_map(pages.iter().map(|page| (&page.status, page)))
}

/// Writes the limit as `{per_client: 20}`.
pub(super) fn per_client<S: Serializer>(limit: &Option<u32>, out: S) -> Result<S::Ok, S::Error> {
    let mut map = out.serialize_map(None)?;
    if let Some(limit) = limit {
        map.serialize_entry("per_client", limit)?;
    }
    map.end()
}
