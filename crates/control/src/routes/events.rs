//! `GET /api/events`: events as they happen, as text/event-stream (WHATWG HTML, server-sent events).
//!
//! The stream keeps no queue: it remembers the number of the last event it sent and reads on in the journal when the
//! reader has taken what there was. A reader that falls behind the journal's end is told `lost`, once, and goes on from
//! the present.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use model::id::Revision;
use telemetry::journal::After;
use tokio::sync::watch;
use tokio::time::timeout;

use super::parameters::Parameters;
use super::{Failure, Shared};
use crate::context::Context;
use crate::document::event::EventDocument;

/// A comment line after so long without an event.
const COMMENT: Duration = Duration::from_secs(5);
/// Events handed to a connection at once.
const BATCH: usize = 64;

pub(super) async fn stream(State(context): Shared, uri: Uri, headers: HeaderMap) -> Result<Response, Failure> {
    let after = Parameters::read(&uri, &["after"])?.number("after")?;
    let last_seen = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let position = match (last_seen, after) {
        // What a reconnecting reader saw last goes before what it asked for at first.
        (Some(id), _) => Position::of_id(id, context.instance.as_str()),
        (None, Some(after)) => Position::After(Revision(after)),
        (None, None) => Position::After(context.journal.revision()),
    };
    let reader = Reader { events: context.journal.subscribe(), context, position };
    let body = unfold(reader, |mut reader| async move {
        let text = reader.next().await;
        Some((Ok::<_, Infallible>(Bytes::from(text)), reader))
    });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, Body::from_stream(body)).into_response())
}

/// Where a reader stands.
enum Position {
    After(Revision),
    /// Its last event came from another process, or its id is none of ours.
    Elsewhere,
}

impl Position {
    fn of_id(id: &str, instance: &str) -> Self {
        match id.rsplit_once('-') {
            Some((of, revision)) if of == instance => {
                revision.parse().map_or(Self::Elsewhere, |number| Self::After(Revision(number)))
            }
            Some(_) | None => Self::Elsewhere,
        }
    }
}

struct Reader {
    context: Arc<Context>,
    events: watch::Receiver<Revision>,
    position: Position,
}

impl Reader {
    /// The next piece of the stream: events, `lost`, or a comment.
    async fn next(&mut self) -> String {
        loop {
            self.events.borrow_and_update();
            let after = match self.position {
                Position::Elsewhere => After::Lost,
                Position::After(revision) => self.context.journal.after(revision, BATCH),
            };
            match after {
                After::Lost => return self.lost(),
                After::Events(entries) if !entries.is_empty() => {
                    let mut text = String::new();
                    for entry in &entries {
                        self.position = Position::After(entry.event.revision);
                        self.write(&mut text, &EventDocument::new(entry));
                    }
                    return text;
                }
                After::Events(_) => {}
            }
            if timeout(COMMENT, self.events.changed()).await.is_err() {
                return ": still here\n\n".to_owned();
            }
        }
    }

    fn lost(&mut self) -> String {
        self.context.metrics.journal_lost();
        let revision = self.context.journal.revision();
        self.position = Position::After(revision);
        let mut text = String::new();
        self.write(&mut text, &EventDocument::lost(revision.0, jiff::Timestamp::now()));
        text
    }

    fn write(&self, text: &mut String, event: &EventDocument) {
        // JSON has no raw line breaks, so that one data line holds it.
        let Ok(data) = serde_json::to_string(event) else { return };
        let (instance, revision, word) = (self.context.instance.as_str(), event.revision, event.event.as_str());
        text.push_str(&format!("id: {instance}-{revision}\nevent: {word}\ndata: {data}\n\n"));
    }
}
