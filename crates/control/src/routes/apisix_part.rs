//! The part that APISIX has, too: `GET /v1/healthcheck` and `GET /v1/healthcheck/{kind}/{id}`.

use apisix::error::{ErrorBody, SourceKind};
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;

use super::{Failure, Shared, fit, json, parameters};
use crate::document::report::{checker, checkers};

pub(super) async fn all(State(context): Shared) -> Result<Response, Failure> {
    let (published, vitals) = fit(&context)?;
    Ok(json(StatusCode::OK, &checkers(&published, &vitals)))
}

pub(super) async fn one(State(context): Shared, uri: Uri) -> Result<Response, Failure> {
    let segments = parameters::segments(&uri, "/v1/healthcheck/")?;
    let word = segments.first().map_or("", String::as_str);
    let kind = SourceKind::from_word(word)
        .ok_or_else(|| Failure::body(StatusCode::BAD_REQUEST, ErrorBody::invalid_kind(word)))?;
    let id = segments.get(1).map_or("", String::as_str);
    if id.is_empty() {
        return Err(Failure::body(StatusCode::NOT_FOUND, ErrorBody::missing_id(kind)));
    }
    let (published, vitals) = fit(&context)?;
    let found = match kind {
        SourceKind::Upstreams => published.health.clusters.iter().find(|cluster| cluster.id.as_str() == id),
        // Only clusters have checks of their own here.
        SourceKind::Routes | SourceKind::Services | SourceKind::StreamRoutes => None,
    };
    match found {
        Some(health) => Ok(json(StatusCode::OK, &checker(&published, health, &vitals))),
        None => Err(Failure::body(StatusCode::NOT_FOUND, ErrorBody::not_found(kind, id))),
    }
}
