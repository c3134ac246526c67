//! Reading: clusters, destinations, past events.

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use model::event::{Event, EventKind};
use model::id::Revision;
use telemetry::journal::After;

use super::parameters::{Parameters, segments};
use super::{Failure, Shared, clock, json};
use crate::context::Context;
use crate::document::clusters::{ClusterDocument, ClustersDocument, DestinationPage};
use crate::document::event::{EventDocument, EventPage};

/// Events on one page, unless told otherwise, and at most.
const PAGE: u64 = 100;
const LARGEST_PAGE: u64 = 1000;
/// Events on a destination's page.
const RECENT: usize = 20;
/// Destinations that the answer about an unknown one names.
const MOST_NAMED: usize = 20;

pub(super) async fn clusters(State(context): Shared) -> Response {
    json(StatusCode::OK, &ClustersDocument::new(&context, &context.process.published(), &clock(&context)))
}

pub(super) async fn destination(State(context): Shared, uri: Uri) -> Result<Response, Failure> {
    let segments = segments(&uri, "/api/destinations/")?;
    let (cluster, id) = (segments.first().map_or("", String::as_str), segments.get(1).map_or("", String::as_str));
    let published = context.process.published();
    let health = published
        .health
        .clusters
        .iter()
        .find(|health| health.id.as_str() == cluster)
        .ok_or_else(|| Failure::new(StatusCode::NOT_FOUND, format!("cluster {cluster} not found")))?;
    let mut document = ClusterDocument::new(&context, &published, health, &clock(&context));
    if !document.destinations.iter().any(|destination| destination.id == id) {
        let known: Vec<&str> = document.destinations.iter().take(MOST_NAMED).map(|one| one.id.as_str()).collect();
        let more = if document.destinations.len() > MOST_NAMED { ", ..." } else { "" };
        let known = known.join(", ");
        let what = format!("destination {id} not found in cluster {cluster}; there are: {known}{more}");
        return Err(Failure::new(StatusCode::NOT_FOUND, what));
    }
    document.destinations.retain(|destination| destination.id == id);
    let page = DestinationPage {
        instance: context.instance.as_str().to_owned(),
        revision: published.health.revision.0,
        cluster: document,
        recent: last(&context, RECENT, &Filter { cluster: Some(cluster), destination: Some(id) }, is_about_destination),
    };
    Ok(json(StatusCode::OK, &page))
}

pub(super) async fn transitions(State(context): Shared, uri: Uri) -> Result<Response, Failure> {
    page(&context, &Parameters::read(&uri, &["after", "limit", "cluster", "destination"])?, |kind| match kind {
        EventKind::Transition(_) => true,
        EventKind::Availability { .. }
        | EventKind::Share { .. }
        | EventKind::Shadow { .. }
        | EventKind::Kept { .. }
        | EventKind::Config { .. }
        | EventKind::Draining => false,
    })
}

pub(super) async fn journal(State(context): Shared, uri: Uri) -> Result<Response, Failure> {
    page(&context, &Parameters::read(&uri, &["after", "limit", "cluster", "destination"])?, |_| true)
}

/// With `after`: the first events after it; without: the last ones.
fn page(context: &Context, parameters: &Parameters, wanted: fn(&EventKind) -> bool) -> Result<Response, Failure> {
    let limit = parameters.number("limit")?.unwrap_or(PAGE);
    if !(1..=LARGEST_PAGE).contains(&limit) {
        return Err(Failure::new(StatusCode::BAD_REQUEST, format!("limit is a number from 1 to {LARGEST_PAGE}")));
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let filter = Filter { cluster: parameters.text("cluster"), destination: parameters.text("destination") };
    let (lost, events) = match parameters.number("after")? {
        None => (false, last(context, limit, &filter, wanted)),
        Some(after) => match context.journal.after(Revision(after), usize::MAX) {
            After::Lost => (true, last(context, limit, &filter, wanted)),
            After::Events(entries) => {
                let kept = entries.iter().filter(|entry| wanted(&entry.event.kind) && filter.holds(&entry.event));
                (false, kept.take(limit).map(|entry| EventDocument::new(entry)).collect())
            }
        },
    };
    let (instance, revision) = (context.instance.as_str().to_owned(), context.journal.revision().0);
    Ok(json(StatusCode::OK, &EventPage { instance, revision, lost, events }))
}

/// The last events, oldest first.
fn last(context: &Context, limit: usize, filter: &Filter<'_>, wanted: fn(&EventKind) -> bool) -> Vec<EventDocument> {
    let entries = context.journal.last(limit, |event| wanted(&event.kind) && filter.holds(event));
    entries.iter().rev().map(|entry| EventDocument::new(entry)).collect()
}

fn is_about_destination(kind: &EventKind) -> bool {
    match kind {
        EventKind::Transition(_)
        | EventKind::Availability { .. }
        | EventKind::Share { .. }
        | EventKind::Shadow { .. }
        | EventKind::Kept { .. } => true,
        EventKind::Config { .. } | EventKind::Draining => false,
    }
}

/// Whose events are wanted; `None`: everybody's.
struct Filter<'a> {
    cluster: Option<&'a str>,
    destination: Option<&'a str>,
}

impl Filter<'_> {
    fn holds(&self, event: &Event) -> bool {
        let destination = match &event.kind {
            EventKind::Transition(transition) => &transition.destination,
            EventKind::Availability { destination, .. }
            | EventKind::Share { destination, .. }
            | EventKind::Shadow { destination, .. }
            | EventKind::Kept { destination, .. } => destination,
            EventKind::Config { .. } | EventKind::Draining => {
                return self.cluster.is_none() && self.destination.is_none();
            }
        };
        self.cluster.is_none_or(|cluster| cluster == destination.cluster.as_str())
            && self.destination.is_none_or(|id| id == destination.destination.as_str())
    }
}
