//! The one immutable view that a request loads: configuration and availability together.
//!
//! Built by bridge/publish on each change of either; parts that did not change are shared between two snapshots.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use model::address::Url;
use model::affinity::SessionAffinity;
use model::available::Because;
use model::cluster::{Cluster, Compat, Queue, UpstreamHost};
use model::config::Config;
use model::id::{ClusterId, ClusterIndex, DestinationId, Revision, RouteId, Slot};
use model::page::ErrorPage;
use model::ratio::Ratio;
use model::retry::{RetryRules, RouteRetry};
use model::route::{Buffering, Route, RouteAction};
use model::timeouts::Timeouts;
use model::upstream::UpstreamHttp;
use model::view::HealthView;

use crate::access::AccessRules;
use crate::redirect::RedirectView;
use crate::split::SplitView;
use crate::transform::TransformView;

/// Configuration and availability at one moment.
pub struct Snapshot {
    /// Number of this snapshot.
    pub revision: Revision,
    /// The configuration behind it.
    pub config: Arc<Config>,
    /// The health behind it, with the facts for people.
    pub health: Arc<HealthView>,
    /// Which route a request belongs to; indexes `routes`.
    pub table: Arc<route::Table>,
    /// What becomes of a request, per route, in the order of the configuration.
    pub routes: Arc<[RouteView]>,
    /// Per cluster, in the order of the configuration.
    pub clusters: Vec<Arc<ClusterView>>,
}

/// What a request needs to know of its route.
pub struct RouteView {
    /// Its id.
    pub id: RouteId,
    /// What becomes of the request.
    pub action: ActionView,
    /// Total for the client, all attempts.
    pub timeout: Option<Duration>,
    /// Longest request body in place of the listener's limit.
    pub max_request_body: Option<Option<u64>>,
    /// Whether bodies are taken ahead.
    pub buffering: Buffering,
    /// Who may come and how often; `None`: everybody, always.
    pub rules: Option<Box<AccessRules>>,
    /// What it changes; `None`: nothing.
    pub transforms: Option<Box<TransformView>>,
    /// Bodies of our own answers: the route's, then those for all.
    pub error_pages: Vec<ErrorPage>,
    /// Its own retry rules for each cluster that it leads to; empty: the clusters' rules.
    pub retry: Vec<(ClusterIndex, RetryRules)>,
}

impl RouteView {
    /// What requests need to know of a route of `config`.
    pub fn of(route: &Route, config: &Config) -> Self {
        let place = |id: &ClusterId| {
            let found = (0..).zip(&config.clusters).find(|(_, cluster)| cluster.id == *id);
            found.map(|(place, _)| ClusterIndex(place))
        };
        let action = match &route.action {
            RouteAction::Cluster(id) => id.as_ref().and_then(place).map_or(ActionView::NoCluster, ActionView::Cluster),
            RouteAction::Clusters(split) => ActionView::Split(Box::new(SplitView::of(split, place))),
            RouteAction::Respond { status, body } => {
                ActionView::Respond { status: *status, body: body.as_str().into() }
            }
            RouteAction::Redirect { to, status } => {
                ActionView::Redirect { to: Box::new(RedirectView::of(to)), status: *status }
            }
            RouteAction::Deny(status) => ActionView::Deny(*status),
        };
        Self {
            id: route.id.clone(),
            action,
            timeout: route.timeout,
            max_request_body: route.max_request_body,
            buffering: route.policy.buffering,
            rules: AccessRules::of(&route.id, &route.policy).map(Box::new),
            transforms: TransformView::of(route).map(Box::new),
            error_pages: [&route.policy.error_pages[..], &config.answers.error_pages].concat(),
            retry: route.policy.retry.as_ref().map(|own| own_rules(own, &route.action, config)).unwrap_or_default(),
        }
    }
}

fn own_rules(own: &RouteRetry, action: &RouteAction, config: &Config) -> Vec<(ClusterIndex, RetryRules)> {
    let leads_to = |id: &ClusterId| match action {
        RouteAction::Cluster(one) => one.as_ref() == Some(id),
        RouteAction::Clusters(split) => split.sides.iter().any(|side| side.cluster == *id),
        RouteAction::Respond { .. } | RouteAction::Redirect { .. } | RouteAction::Deny(_) => false,
    };
    let clusters = (0..).zip(&config.clusters).filter(|(_, cluster)| leads_to(&cluster.id));
    clusters.map(|(place, cluster)| (ClusterIndex(place), own.over(&cluster.retry))).collect()
}

/// What becomes of a request, with the cluster's name resolved.
pub enum ActionView {
    /// Forwarded to this cluster.
    Cluster(ClusterIndex),
    /// Forwarded to one of several clusters.
    Split(Box<SplitView>),
    /// The cluster does not exist (YARP files only): 503.
    NoCluster,
    /// Answered here.
    Respond {
        /// Status 200 to 599.
        status: u16,
        /// Body, text/plain.
        body: Arc<str>,
    },
    /// Sent elsewhere.
    Redirect {
        /// Value of Location.
        to: Box<RedirectView>,
        /// 301, 302, 303, 307 or 308.
        status: u16,
    },
    /// Refused with this status.
    Deny(u16),
}

/// What a request needs to know of a cluster.
pub struct ClusterView {
    /// Its id.
    pub id: ClusterId,
    /// The configuration behind it.
    pub config: Arc<Cluster>,
    /// Whose arithmetic its policies follow.
    pub compat: Compat,
    /// Every destination, in the order of the configuration.
    pub destinations: Vec<DestinationView>,
    /// Indexes into `destinations` of those that traffic may use, in that order.
    pub available: Vec<u32>,
    /// Picks among them.
    pub picker: balance::Picker,
    /// Who stays with whom.
    pub affinity: Option<SessionAffinity>,
    /// What is tried again.
    pub retry: RetryRules,
    /// How requests wait; `None` where there is nothing to wait for, as in nearly all clusters.
    pub queue: Option<Queue>,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// What Host destinations see.
    pub host: UpstreamHost,
    /// The HTTP that destinations are spoken to in; what ALPN decides only where some of them speak TLS.
    pub http: UpstreamHttp,
    /// Whether some policy wants every outcome as an event of its own.
    pub needs: Needs,
    /// The cluster's place among the board's retry budgets; kept while its id stays.
    pub budget: u32,
}

impl ClusterView {
    /// Its queue, where a request may have to wait in it.
    pub fn queue_of(cluster: &Cluster) -> Option<Queue> {
        let is_limited = cluster.destinations.iter().any(|destination| destination.max_connections.is_some());
        let waits = is_limited || !cluster.queue.unavailable_timeout.is_zero();
        (waits && cluster.compat != Compat::Nginx).then_some(cluster.queue)
    }
}

/// What the cluster's passive policies want to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: no passive check.
    Nothing,
    /// Failures one by one, successes as sums.
    Failures,
    /// Each outcome as an event of its own.
    EveryOutcome,
}

/// What a request needs to know of a destination.
pub struct DestinationView {
    /// Its id.
    pub id: DestinationId,
    /// Its place in the board's records.
    pub slot: Slot,
    /// Where requests go.
    pub address: Url,
    /// Value of the Host header.
    pub host: Arc<str>,
    /// The endpoint to connect to, when the address is an IP literal or was resolved.
    pub endpoint: Endpoint,
    /// Share of traffic; 0 takes none.
    pub weight: u32,
    /// The value of its affinity cookie.
    pub affinity_key: Arc<str>,
    /// Why it is (or is not) available.
    pub because: Because,
    /// Requests must claim its gate: one at a time.
    pub is_gated: bool,
    /// The part of its weight that it gets.
    pub share: Ratio,
    /// Most requests in flight; `None`: no limit.
    pub max_connections: Option<NonZeroU32>,
}

/// Where to connect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A literal address.
    Address(SocketAddr),
    /// A name and port, resolved at connect time.
    Name(Arc<str>, u16),
}
