//! A route: which requests, and what becomes of them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::entry::{AccessList, ConnectionLimit, RequestLimit};
use crate::id::{ClusterId, RouteId};
use crate::page::{ErrorPage, Maintenance};
use crate::pattern::PathPattern;
use crate::retry::RouteRetry;
use crate::transform::Transform;

/// A route, resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Route {
    /// Its id.
    pub id: RouteId,
    /// Lower wins, before any comparison of how specific routes are.
    pub order: i32,
    /// Which requests.
    pub matcher: RouteMatch,
    /// What becomes of them.
    pub action: RouteAction,
    /// Total for the client, all attempts; `None`: no limit.
    pub timeout: Option<Duration>,
    /// Longest request body in place of the listener's limit; `Some(None)` switches the limit off.
    pub max_request_body: Option<Option<u64>>,
    /// Who may come, how often, and what is done to the messages.
    pub policy: RoutePolicy,
}

/// What a route does beside finding a cluster. The default does nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoutePolicy {
    /// Which clients, by address; others get 403.
    pub access: AccessList,
    /// How often one client may ask; beyond it 429.
    pub limit_requests: Option<RequestLimit>,
    /// How many requests one client may have in flight; beyond it 429.
    pub limit_connections: Option<ConnectionLimit>,
    /// Whether bodies are taken ahead.
    pub buffering: Buffering,
    /// What is done to the messages.
    pub transforms: Vec<Transform>,
    /// Bodies of our own answers on this route, before those for all routes.
    pub error_pages: Vec<ErrorPage>,
    /// Closed for a while; `None`: open.
    pub maintenance: Option<Maintenance>,
    /// Retry rules in place of the cluster's; `None`: the cluster's.
    pub retry: Option<RouteRetry>,
}

/// Whether bodies are taken ahead, in memory alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Buffering {
    /// Both bodies stream, with back-pressure.
    #[default]
    Off,
    /// A request body of known length up to `request` bytes is read before a destination is chosen; up to `response`
    /// bytes of a response are taken ahead of a slow client.
    On {
        /// Bytes.
        request: u64,
        /// Bytes.
        response: u64,
    },
}

impl Buffering {
    /// Bytes of a request that are taken where no other number is given.
    pub const REQUEST: u64 = 64 << 10;
    /// Bytes of a response that are taken where no other number is given.
    pub const RESPONSE: u64 = 256 << 10;
    /// With these.
    pub const ON: Self = Self::On { request: Self::REQUEST, response: Self::RESPONSE };
}

/// All conditions must hold; an empty list or `None` holds always.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RouteMatch {
    /// One of these hosts.
    pub hosts: Vec<HostPattern>,
    /// This path.
    pub path: Option<PathPattern>,
    /// One of these methods, upper case.
    pub methods: Vec<String>,
    /// All of these header rules.
    pub headers: Vec<ValueRule>,
    /// All of these query rules.
    pub query: Vec<ValueRule>,
}

/// A host name, or all names below a domain.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HostPattern {
    /// Lower case; without the `*.` of a wildcard.
    pub name: String,
    /// What may stand before `name`.
    pub kind: HostKind,
    /// This port only.
    pub port: Option<u16>,
}

/// Kinds of host patterns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostKind {
    /// `example.com`: that name.
    Exact,
    /// `*.example.com`: any name below it, not itself.
    Wildcard,
}

/// A rule on the values of a header or a query parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueRule {
    /// Header name (lower case) or parameter name (as written, compared without case).
    pub name: String,
    /// One of them suffices; empty for Exists and NotExists.
    pub values: Vec<String>,
    /// How values compare.
    pub mode: ValueMode,
    /// Whether case counts.
    pub case: CaseRule,
}

/// How values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueMode {
    /// One value equals one of the rule's.
    Exact,
    /// One value starts with one of the rule's.
    Prefix,
    /// One value contains one of the rule's.
    Contains,
    /// No value contains any of the rule's; also when absent.
    NotContains,
    /// It is there and not empty.
    Exists,
    /// It is absent or empty.
    NotExists,
}

/// Whether case counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseRule {
    /// It does not.
    #[default]
    Ignore,
    /// It does.
    Sensitive,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteAction {
    /// Forwarded to this cluster. `None`: a YARP route whose cluster does not exist; answered 503.
    Cluster(Option<ClusterId>),
    /// Forwarded to one of these clusters, by weight.
    Clusters(Split),
    /// Answered here.
    Respond {
        /// Status 200 to 599.
        status: u16,
        /// Body, text/plain.
        body: String,
    },
    /// Sent elsewhere.
    Redirect {
        /// Value of Location; `{scheme}`, `{host}`, `{path}` and `{query}` (with its `?`) stand for the request's.
        to: String,
        /// 301, 302, 303, 307 or 308.
        status: u16,
    },
    /// Refused with this status (4xx).
    Deny(u16),
}

/// Traffic that is split over clusters by weight, each client staying on its side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// In the order of the file; at least one weight is above 0.
    pub sides: Vec<Side>,
    /// What keeps a client on its side.
    pub sticky: Sticky,
    /// A header that forces a side: its value is the cluster's id.
    pub force_header: Option<String>,
    /// A cookie that does the same.
    pub force_cookie: Option<String>,
}

/// One side of a split.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// Which cluster.
    pub cluster: ClusterId,
    /// Its share; 0 takes only forced requests.
    pub weight: u32,
}

/// What keeps a client on its side of a split.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sticky {
    /// Nothing: each request is drawn anew.
    #[default]
    Off,
    /// A cookie of this name.
    Cookie(String),
    /// A hash of its address.
    ClientAddress,
}
