//! `GET /api/health`: the health document at once, or as soon as it is newer than the reader's.
//!
//! While a reader waits it gets one blank byte a second, so that both ends notice when the other is gone. The answer has
//! begun by then: should the process become unfit meanwhile, the connection is cut in place of a 503.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::parameters::Parameters;
use super::{Failure, Shared, clock, fit, json, json_headers};
use crate::context::Context;
use crate::document::report::health_document;

/// Longest wait.
const LONGEST: Duration = Duration::from_secs(60);
/// From one blank byte to the next.
const BLANK: Duration = Duration::from_secs(1);
/// An event is known a moment before the snapshot that includes it: it is looked for in these steps.
const SETTLE: Duration = Duration::from_millis(10);

pub(super) async fn document(State(context): Shared, uri: Uri) -> Result<Response, Failure> {
    let parameters = Parameters::read(&uri, &["after", "wait"])?;
    let after = parameters.number("after")?;
    let wait = parameters.span("wait", LONGEST)?.unwrap_or_default();
    let (published, vitals) = fit(&context)?;
    let is_news = match after {
        None => true,
        // A number from another process is as good as none: the reader must learn of the new instance at once.
        Some(after) => published.health.revision.0 > after || context.journal.revision().0 < after,
    };
    if is_news || wait.is_zero() {
        return Ok(json(StatusCode::OK, &health_document(&context, &published, &vitals, &clock(&context))));
    }
    let waiting = Waiting {
        events: context.journal.subscribe(),
        context,
        after: after.unwrap_or_default(),
        deadline: Instant::now() + wait,
        next_blank: Instant::now() + BLANK,
    };
    let body = unfold(Some(waiting), |waiting| async move {
        let mut waiting = waiting?;
        match waiting.next().await {
            Ok(Piece::Blank) => Some((Ok(Bytes::from_static(b" ")), Some(waiting))),
            Ok(Piece::Document(text)) => Some((Ok(Bytes::from(text)), None)),
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok((StatusCode::OK, json_headers(), Body::from_stream(body)).into_response())
}

struct Waiting {
    context: Arc<Context>,
    events: watch::Receiver<model::id::Revision>,
    after: u64,
    deadline: Instant,
    next_blank: Instant,
}

enum Piece {
    Blank,
    Document(Vec<u8>),
}

impl Waiting {
    /// The next bytes of the answer: a blank, or the document.
    async fn next(&mut self) -> io::Result<Piece> {
        loop {
            let known = self.events.borrow_and_update().0;
            let seen = self.context.process.published().health.revision.0;
            let now = Instant::now();
            if seen > self.after || now >= self.deadline {
                return self.document();
            }
            if now >= self.next_blank {
                self.next_blank += BLANK;
                return Ok(Piece::Blank);
            }
            let mut until = self.next_blank.min(self.deadline);
            if known > seen && known > self.after {
                until = until.min(now + SETTLE);
            }
            // The context keeps the journal, so that its sender never goes first.
            let _ = timeout(until - now, self.events.changed()).await;
        }
    }

    fn document(&self) -> io::Result<Piece> {
        let (published, vitals) =
            fit(&self.context).map_err(|_| io::Error::other("the process does not carry traffic any more"))?;
        let document = health_document(&self.context, &published, &vitals, &clock(&self.context));
        let mut text = serde_json::to_vec(&document).map_err(io::Error::other)?;
        text.push(b'\n');
        Ok(Piece::Document(text))
    }
}
