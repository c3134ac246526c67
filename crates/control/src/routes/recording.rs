//! `POST /api/recording`: what the health core was told of late, as a file. Admitted like a change: it is work for the
//! control thread, and the whole configuration of the clusters is in it.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::sync::oneshot;

use super::change::refused;
use super::{Failure, Shared};
use crate::access::Peer;
use crate::context::{Command, RecordReply};

/// Copying memory takes milliseconds; the control thread may have a reload under way.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn save(State(context): Shared, Extension(peer): Extension<Peer>, headers: HeaderMap) -> Response {
    if let Some(refusal) = refused(&context, peer, &headers) {
        return refusal;
    }
    let busy = || Failure::new(StatusCode::CONFLICT, "a reload, or a planned stop, is under way").into_response();
    let unix_ms = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default();
    let (reply, answer) = oneshot::channel();
    let command = Command::Record { instance: context.instance.clone(), unix_ms, reply };
    if context.commands.try_send(command).is_err() {
        return busy();
    }
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(Ok(RecordReply::Saved(file))) => {
            let headers = [
                (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
                (CACHE_CONTROL, HeaderValue::from_static("no-store")),
            ];
            (StatusCode::OK, headers, file).into_response()
        }
        Ok(Ok(RecordReply::Nothing(why))) => Failure::new(StatusCode::CONFLICT, why).into_response(),
        Ok(Ok(RecordReply::Busy) | Err(_)) => busy(),
        Err(_) => Failure::new(StatusCode::GATEWAY_TIMEOUT, "the recording has not come yet").into_response(),
    }
}
