//! Routes.

use std::time::Duration;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::policy::{self, ErrorPageConfig, MaintenanceConfig, RequestLimitConfig, TransformConfig};
use super::span;
use super::split::{self, ForceConfig, StickyConfig, WeightedClusterConfig};

/// One of `routes`. Exactly one of `cluster_id`, `clusters`, `respond`, `redirect` and `deny` is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RouteConfig {
    /// Its id: the key in the file.
    #[serde(skip)]
    pub route_id: String,
    /// Which requests.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matcher: Option<RouteMatch>,
    /// Lower wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<i32>,
    /// Forward to this cluster.
    #[serde(rename = "cluster", skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Forward to these clusters by weight.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "split::clusters")]
    pub clusters: Vec<WeightedClusterConfig>,
    /// Beside `clusters`: a client stays with the one it got; each request is drawn anew unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sticky: Option<StickyConfig>,
    /// Beside `clusters`: a request may name the one it wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force: Option<ForceConfig>,
    /// Answer here: status and body.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "respond")]
    pub respond: Option<(u16, String)>,
    /// Send elsewhere: Location and status.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "redirect")]
    pub redirect: Option<(String, u16)>,
    /// Refuse with this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny: Option<u16>,
    /// Networks of clients that may use the route; all unless set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Networks of clients that may not: `deny` with a list in the file.
    #[serde(rename = "deny", skip_serializing_if = "Vec::is_empty")]
    pub deny_networks: Vec<String>,
    /// How often a client may come; no limit unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_requests: Option<RequestLimitConfig>,
    /// Requests in flight per client; no limit unless set.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "policy::per_client")]
    pub limit_connections: Option<u32>,
    /// Changes of the messages, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<TransformConfig>,
    /// Bodies that are taken ahead, in memory; `None`: they stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffering: Option<BufferingConfig>,
    /// Bodies of answers of our own, before those for all routes.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "policy::error_pages")]
    pub error_pages: Vec<ErrorPageConfig>,
    /// Closes the route to all but some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<MaintenanceConfig>,
    /// Total for the client.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "span::write")]
    pub timeout: Option<Duration>,
    /// Longest request body in place of the listener's limit, such as `10MiB`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_request_body: Option<String>,
    /// Retry rules in place of the cluster's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RouteRetryConfig>,
}

/// `retry` of a route: what is `None` is as the cluster has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RouteRetryConfig {
    /// `error`, `timeout`, `invalid_header`, `http_502` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<String>>,
    /// All tries together; 1: none is repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u8>,
    /// For one try up to its head, such as `500ms`; or `adaptive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_try_timeout: Option<String>,
    /// POST and PATCH, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_idempotent: Option<bool>,
    /// `trusted`: requests with an Idempotency-Key may be repeated like idempotent ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

impl RouteConfig {
    /// Everything below `path` goes to `cluster_id`.
    pub fn to_cluster(id: &str, path: &str, cluster_id: &str) -> Self {
        Self {
            route_id: id.to_owned(),
            matcher: Some(RouteMatch { path: Some(path.to_owned()), ..RouteMatch::default() }),
            cluster_id: Some(cluster_id.to_owned()),
            ..Self::default()
        }
    }
}

/// `buffering` of a route, with sizes such as `64KiB`; `None`: what `on` stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BufferingConfig {
    /// Longest request body that is read before a destination is chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Bytes of a response that are taken ahead of a slow client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
}

/// `match` of a route; all conditions hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RouteMatch {
    /// One of these hosts; `*.example.com` takes all below.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// `/api/{**rest}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// One of these methods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// All of these rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<ValueRuleConfig>,
    /// All of these rules on query parameters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub query: Vec<ValueRuleConfig>,
}

/// One of a match's `headers` or `query`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ValueRuleConfig {
    /// Header name.
    pub name: String,
    /// One of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// `exact`, `prefix`, `contains`, `not_contains`, `exists`, `not_exists`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// `ignore` or `sensitive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
}

fn respond<S: Serializer>(respond: &Option<(u16, String)>, out: S) -> Result<S::Ok, S::Error> {
    let mut map = out.serialize_map(None)?;
    if let Some((status, body)) = respond {
        map.serialize_entry("status", status)?;
        map.serialize_entry("body", body)?;
    }
    map.end()
}

fn redirect<S: Serializer>(redirect: &Option<(String, u16)>, out: S) -> Result<S::Ok, S::Error> {
    let mut map = out.serialize_map(None)?;
    if let Some((to, status)) = redirect {
        map.serialize_entry("to", to)?;
        map.serialize_entry("status", status)?;
    }
    map.end()
}
