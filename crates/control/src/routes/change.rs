//! Changing calls: admitted by [`crate::access`], carried out by the program.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::{Failure, Shared, json};
use crate::access::{Peer, Refused, admit};
use crate::context::{Command, Context, ReloadReply};

/// A reload that takes longer than this is answered as failed; it may still come through.
const RELOAD_PATIENCE: Duration = Duration::from_secs(30);

/// `POST /api/reload`, whatever it came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadDocument {
    /// Whether the configuration is now in force.
    pub applied: bool,
    /// What changed, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Why it was not taken over, in one line, as in every error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_msg: Option<String>,
    /// The whole report, as `lazaret check` prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
}

pub(super) async fn reload(State(context): Shared, Extension(peer): Extension<Peer>, headers: HeaderMap) -> Response {
    if let Some(refusal) = refused(&context, peer, &headers) {
        return refusal;
    }
    let (reply, answer) = oneshot::channel();
    if context.commands.try_send(Command::Reload { reply }).is_err() {
        return document(ReloadReply::Busy);
    }
    match tokio::time::timeout(RELOAD_PATIENCE, answer).await {
        Ok(Ok(reply)) => document(reply),
        // The program dropped the command: it is about to end.
        Ok(Err(_)) => document(ReloadReply::Busy),
        Err(_) => Failure::new(StatusCode::GATEWAY_TIMEOUT, "the reload has not ended yet").into_response(),
    }
}

/// The answer to who is not admitted.
pub(super) fn refused(context: &Context, peer: Peer, headers: &HeaderMap) -> Option<Response> {
    let authorization = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let refused = admit(peer, authorization, &context.process.published().config.control).err()?;
    tracing::warn!(target: "control", ?peer, %refused, "changing call refused");
    Some(refusal(&refused))
}

fn document(reply: ReloadReply) -> Response {
    let refused = ReloadDocument { applied: false, summary: None, error_msg: None, report: None };
    match reply {
        ReloadReply::Applied { summary } => {
            json(StatusCode::OK, &ReloadDocument { applied: true, summary: Some(summary), ..refused })
        }
        ReloadReply::Refused { report } => {
            let error_msg = Some("the configuration is refused, the one before stays".to_owned());
            json(StatusCode::UNPROCESSABLE_ENTITY, &ReloadDocument { error_msg, report: Some(report), ..refused })
        }
        ReloadReply::Busy => {
            let error_msg = Some("another reload, or a planned stop, is under way".to_owned());
            json(StatusCode::CONFLICT, &ReloadDocument { error_msg, ..refused })
        }
    }
}

fn refusal(refused: &Refused) -> Response {
    let status = match refused {
        Refused::NoToken { has_token: true } | Refused::WrongToken => StatusCode::UNAUTHORIZED,
        Refused::NoToken { has_token: false } | Refused::User { .. } => StatusCode::FORBIDDEN,
    };
    let mut response = Failure::new(status, refused.to_string()).into_response();
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
