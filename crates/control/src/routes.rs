//! Every path of the API, in one table; whatever is not in it is 404 or 405 in JSON.

use std::sync::Arc;

use apisix::error::ErrorBody;
use axum::Router;
use axum::extract::State;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use serde::Serialize;
use telemetry::metrics::{Format, ScrapeView};

use crate::context::{Context, Published, Vitals};
use crate::document::Clock;
use crate::hosts;

mod apisix_part;
pub mod change;
mod events;
mod health;
mod parameters;
pub mod process;
mod read;
mod recording;

pub(crate) type Shared = State<Arc<Context>>;

/// The table: method, path, handler. [`crate::openapi`] describes the same paths.
pub(crate) fn table() -> Vec<(Method, &'static str, MethodRouter<Arc<Context>>)> {
    vec![
        (Method::GET, "/v1/healthcheck", get(apisix_part::all)),
        (Method::GET, "/v1/healthcheck/{kind}", get(apisix_part::one)),
        (Method::GET, "/v1/healthcheck/{kind}/{id}", get(apisix_part::one)),
        (Method::GET, "/api/health", get(health::document)),
        (Method::GET, "/api/clusters", get(read::clusters)),
        (Method::GET, "/api/destinations/{cluster}/{id}", get(read::destination)),
        (Method::GET, "/api/transitions", get(read::transitions)),
        (Method::GET, "/api/journal", get(read::journal)),
        (Method::GET, "/api/events", get(events::stream)),
        (Method::GET, "/api/process", get(process::document)),
        (Method::POST, "/api/reload", post(change::reload)),
        (Method::POST, "/api/recording", post(recording::save)),
        (Method::GET, "/metrics", get(metrics)),
        (Method::GET, "/livez", get(livez)),
        (Method::GET, "/readyz", get(readyz)),
    ]
}

/// Every path with its method.
pub fn paths() -> impl Iterator<Item = (Method, &'static str)> {
    table().into_iter().map(|(method, path, _)| (method, path))
}

/// The router of all of them.
pub(crate) fn router(context: Arc<Context>) -> Router {
    let mut router = Router::new();
    for (_, path, handler) in table() {
        router = router.route(path, handler);
    }
    router
        // APISIX answers for a missing id, with and without a closing slash.
        .route("/v1/healthcheck/{kind}/", get(apisix_part::one))
        .fallback(async || Failure::new(StatusCode::NOT_FOUND, "no such path"))
        .method_not_allowed_fallback(async || {
            Failure::new(StatusCode::METHOD_NOT_ALLOWED, "no such method on this path")
        })
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&context), hosts::judge))
        .with_state(context)
}

/// An answer that is no success.
#[derive(Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    body: ErrorBody,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, body: ErrorBody::new(text) }
    }

    pub(crate) fn body(status: StatusCode, body: ErrorBody) -> Self {
        Self { status, body }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        json(self.status, &self.body)
    }
}

/// A JSON answer that nobody may cache.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(mut text) => {
            text.push(b'\n');
            (status, json_headers(), text).into_response()
        }
        // Our documents have text keys and finite numbers alone, so that this does not happen.
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

pub(crate) fn json_headers() -> [(HeaderName, HeaderValue); 2] {
    [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ]
}

/// The moment of an answer, on both clocks.
pub(crate) fn clock(context: &Context) -> Clock {
    Clock { now: context.process.now(), wall: jiff::Timestamp::now() }
}

/// Verdicts may be read: the process carries traffic, or is in a planned stop.
pub(crate) fn fit(context: &Context) -> Result<(Published, Vitals), Failure> {
    let vitals = context.process.vitals();
    match vitals.troubles.first() {
        Some(trouble) if !vitals.is_draining => Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, trouble.to_string())),
        Some(_) | None => Ok((context.process.published(), vitals)),
    }
}

async fn metrics(State(context): Shared, headers: HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let format = Format::from_accept(accept);
    let published = context.process.published();
    let view = ScrapeView {
        health: &published.health,
        in_flight: &|slot| context.process.in_flight(slot),
        core_age: context.process.now().since(context.core_ran_at(&published)),
        is_draining: context.process.vitals().is_draining,
    };
    let text = context.metrics.scrape(&view, format);
    ([(CONTENT_TYPE, HeaderValue::from_static(format.content_type()))], text).into_response()
}

/// What `/livez` and `/readyz` say.
#[derive(Serialize)]
struct Condition {
    status: &'static str,
}

async fn livez() -> Response {
    json(StatusCode::OK, &Condition { status: "live" })
}

async fn readyz(State(context): Shared) -> Response {
    if context.process.vitals().is_draining {
        return Failure::new(StatusCode::SERVICE_UNAVAILABLE, "draining").into_response();
    }
    if !context.is_ready() {
        return Failure::new(StatusCode::SERVICE_UNAVAILABLE, "waiting for the first probes").into_response();
    }
    json(StatusCode::OK, &Condition { status: "ready" })
}
