//! `GET /api/process`: which process answers, for who is about to send it a signal and waits for what comes of it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};

use super::{Shared, json};

/// Which process answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessDocument {
    /// Its name among all that ever ran.
    pub instance: String,
    /// Its process id, as it sees it.
    pub pid: u32,
    /// Upgrades that came to nothing since its start.
    pub failed_upgrades: u64,
    /// Why the last of them did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failed_upgrade: Option<String>,
}

pub(super) async fn document(State(context): Shared) -> Response {
    let failed = context.process.failed_upgrades();
    let document = ProcessDocument {
        instance: context.instance.as_str().to_owned(),
        pid: std::process::id(),
        failed_upgrades: failed.count,
        last_failed_upgrade: failed.last,
    };
    json(StatusCode::OK, &document)
}
