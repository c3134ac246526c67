//! What a route changes on the messages of an exchange, put together for the writers of heads. Both drivers ask here.

use exchange::snapshot::{ClusterView, DestinationView, RouteView};
use exchange::{Exchange, Snapshot};
use http1::changed::{Ends, NewTarget, RequestChanges, ResponseChanges};
use http1::proxy_header::OnBehalf;
use http1::request::Request;
use model::cluster::UpstreamHost;
use model::config::RequestId;
use model::page::{ErrorPage, page};
use model::transform::Plan;

use crate::respond::Reply;

/// Changes of the request's head; `None` when it goes on by the common rules. `ends` is asked only where a transform may
/// tell of them.
pub(crate) fn of_request<'a>(
    exchange: &'a Exchange,
    snapshot: &'a Snapshot,
    id: Option<&'a str>,
    ends: impl FnOnce() -> Ends,
) -> Option<RequestChanges<'a>> {
    let (plan, id) = (plan(exchange, snapshot), field(snapshot, id));
    if plan.is_none() && id.is_none() {
        return None;
    }
    let rewritten = exchange.rewritten();
    let target = rewritten.and_then(|rewritten| rewritten.target.as_ref());
    Some(RequestChanges {
        target: target.map(|target| NewTarget {
            method: &target.method,
            path: &target.path,
            query: target.query.as_deref(),
        }),
        plan,
        values: rewritten.map(|rewritten| rewritten.values.as_slice()).unwrap_or_default(),
        id,
        ends: if plan.is_some_and(|plan| plan.forwarded.is_some()) { ends() } else { Ends::default() },
    })
}

/// Changes of the response's head; `None` when it goes on by the common rules.
pub(crate) fn of_response<'a>(
    exchange: &Exchange,
    snapshot: &'a Snapshot,
    id: Option<&'a str>,
) -> Option<ResponseChanges<'a>> {
    let plan = plan(exchange, snapshot).filter(|plan| !plan.response.is_empty());
    let id = field(snapshot, id);
    (plan.is_some() || id.is_some()).then_some(ResponseChanges { plan, id })
}

/// An answer of our own with the page of its status and the request's id.
pub(crate) fn of_reply<'a>(
    reply: Reply<'a>,
    exchange: &Exchange,
    snapshot: &'a Snapshot,
    id: Option<&'a str>,
) -> Reply<'a> {
    let route = route(exchange, snapshot);
    let pages = route.map_or(snapshot.config.answers.error_pages.as_slice(), |route| &route.error_pages);
    with_page(Reply { id: field(snapshot, id), ..reply }, pages)
}

/// The same for a request whose head is refused, which has no route.
pub(crate) fn of_refusal<'a>(reply: Reply<'a>, snapshot: &'a Snapshot, id: Option<&'a str>) -> Reply<'a> {
    with_page(Reply { id: field(snapshot, id), ..reply }, &snapshot.config.answers.error_pages)
}

fn with_page<'a>(reply: Reply<'a>, pages: &'a [ErrorPage]) -> Reply<'a> {
    match page(pages, reply.status) {
        Some(page) if reply.error.is_some() && reply.body.is_none() => {
            Reply { body: Some(&page.body), content_type: &page.content_type, ..reply }
        }
        Some(_) | None => reply,
    }
}

/// What `Forwarded` may tell of the client's connection, or of the one that its PROXY header names. `random` is drawn for
/// this request alone.
pub(crate) fn ends(on_behalf: OnBehalf, random: u64) -> Ends {
    match on_behalf {
        OnBehalf::Ourselves => Ends { random, ..Ends::default() },
        OnBehalf::Client { client, server } => Ends { peer_port: Some(client.port()), local: Some(server), random },
    }
}

/// The value of Host that a destination gets.
pub(crate) fn host<'a>(
    exchange: &Exchange,
    snapshot: &Snapshot,
    cluster: &ClusterView,
    destination: &'a DestinationView,
    request: &Request<'a>,
) -> &'a str {
    let of_route = plan(exchange, snapshot).and_then(|plan| plan.host);
    match of_route.unwrap_or(cluster.host) {
        UpstreamHost::Original if !request.authority().is_empty() => request.authority(),
        UpstreamHost::Original | UpstreamHost::Destination => &destination.host,
    }
}

fn plan<'a>(exchange: &Exchange, snapshot: &'a Snapshot) -> Option<&'a Plan> {
    route(exchange, snapshot)?.transforms.as_ref().map(|transforms| &transforms.plan)
}

fn route<'a>(exchange: &Exchange, snapshot: &'a Snapshot) -> Option<&'a RouteView> {
    exchange.placement().route.and_then(|route| snapshot.routes.get(route.index()))
}

fn field<'a>(snapshot: &'a Snapshot, id: Option<&'a str>) -> Option<(&'a str, &'a str)> {
    match &snapshot.config.answers.request_id {
        RequestId::Header(name) => Some((name.as_str(), id?)),
        RequestId::Off => None,
    }
}
