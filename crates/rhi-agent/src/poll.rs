//! Asks the control API about upstreams: one GET each, all at the same time, each over a connection of its own.
//!
//! The answer is read in every form that APISIX has had; what it means is decided in the core.

use std::collections::BTreeSet;
use std::future::Future;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::Arc;

use apisix::checker::Checker;
use apisix::error::ErrorBody;
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use model::address::{Scheme, Url};
use model::time::{Timestamp, made_good};
use model::vip::UpstreamRef;
use rhi::{Answer, Node, PollFailure};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// The longest body that is read; a node takes about 200 bytes.
const MAX_BODY: usize = 4 * 1024 * 1024;
/// The longest head, and what is read at once: small, as all that lies ready is read between two looks at the deadline.
const MAX_HEAD: usize = 8 * 1024;
/// What is read of one connection, framing and interim responses included.
const MAX_BYTES: u64 = 2 * MAX_BODY as u64;
/// At most so many polls run at a time.
const MAX_CONCURRENT: usize = 64;

/// The answer to one poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// The cycle it belongs to.
    pub cycle: u64,
    /// About which upstream.
    pub upstream: UpstreamRef,
    /// What it came to.
    pub answer: Answer,
}

/// Starts the polls of one cycle. Dropping the set gives up what still runs.
pub fn start(
    control_url: &str,
    cycle: u64,
    upstreams: BTreeSet<UpstreamRef>,
    deadline: Instant,
    answers: &mpsc::Sender<Answered>,
) -> JoinSet<()> {
    let mut polls = JoinSet::new();
    let slots = Arc::new(Semaphore::new(MAX_CONCURRENT));
    let url: Arc<str> = Arc::from(control_url);
    for upstream in upstreams {
        let (url, slots, answers) = (Arc::clone(&url), Arc::clone(&slots), answers.clone());
        polls.spawn(async move {
            let poll = async {
                let _slot = slots.acquire().await;
                ask(&url, &upstream).await
            };
            let answer = by(deadline, poll).await;
            // A closed channel means that the process is about to end.
            let _ = answers.send(Answered { cycle, upstream, answer }).await;
        });
    }
    polls
}

/// The answer by then. Where the end is noticed late, because the process stood still, the timer fires before a socket is
/// looked at; so what was said meanwhile is heard ([`made_good`]).
async fn by(deadline: Instant, poll: impl Future<Output = Answer>) -> Answer {
    let mut poll = pin!(poll);
    if let Ok(answer) = timeout_at(deadline, &mut poll).await {
        return answer;
    }
    let now = Instant::now();
    let late = now.saturating_duration_since(deadline);
    let more = made_good(Timestamp::ZERO, Timestamp::ZERO + late).unwrap_or_default();
    timeout_at(now + more, poll).await.unwrap_or(Answer::Failed(PollFailure::Timeout))
}

/// One poll, without a limit of its own in time.
pub async fn ask(control_url: &str, upstream: &UpstreamRef) -> Answer {
    match exchange(control_url, upstream).await {
        Ok((status, body)) => read(status, &body),
        Err(failure) => Answer::Failed(failure),
    }
}

async fn exchange(control_url: &str, upstream: &UpstreamRef) -> Result<(StatusCode, Bytes), PollFailure> {
    let url = Url::parse(control_url).map_err(|_| PollFailure::Transport)?;
    match url.scheme {
        Scheme::Http => {}
        Scheme::Https => return Err(PollFailure::Transport),
    }
    let stream = TcpStream::connect((url.host.as_str(), url.port)).await.map_err(|error| {
        if error.kind() == ErrorKind::ConnectionRefused { PollFailure::Refused } else { PollFailure::Transport }
    })?;
    // Bounded in all: interim responses are skipped without an end as long as they lie ready, past every deadline.
    let (reader, writer) = stream.into_split();
    let stream = tokio::io::join(reader.take(MAX_BYTES), writer);
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(MAX_HEAD)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|_| PollFailure::Transport)?;
    let request = Request::get(path(&url.path, upstream))
        .header(header::HOST, url.authority())
        .header(header::ACCEPT, "application/json")
        .header(header::CONNECTION, "close")
        .header(header::USER_AGENT, concat!("lazaret-rhi/", env!("CARGO_PKG_VERSION")))
        .body(Empty::<Bytes>::new())
        .map_err(|_| PollFailure::Transport)?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(|_| PollFailure::Transport)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_BODY).collect().await;
        let body = body.map_err(|error| match error.downcast_ref::<http_body_util::LengthLimitError>() {
            Some(_) => PollFailure::Unreadable,
            None => PollFailure::Transport,
        })?;
        Ok((status, body.to_bytes()))
    };
    // The connection is driven beside the exchange and ends with it, so that nothing outlives its cycle.
    let mut connection = pin!(connection);
    let mut answer = pin!(answer);
    tokio::select! {
        answer = &mut answer => answer,
        _ = &mut connection => answer.await,
    }
}

/// `/v1/healthcheck/{kind}/{id}` under the base path; each part is one percent-encoded segment.
fn path(base: &str, upstream: &UpstreamRef) -> String {
    let base = base.trim_end_matches('/');
    format!("{base}/v1/healthcheck/{}/{}", segment(&upstream.kind), segment(&upstream.id))
}

fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        // RFC 3986 section 2.3, unreserved characters.
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// What a complete answer says.
fn read(status: StatusCode, body: &[u8]) -> Answer {
    if status == StatusCode::NOT_FOUND {
        let says_no_checker =
            serde_json::from_slice::<ErrorBody>(body).is_ok_and(|error| error.error_msg.starts_with("no checker"));
        return if says_no_checker { Answer::NoChecker } else { Answer::UnknownObject };
    }
    if status != StatusCode::OK {
        return Answer::Failed(PollFailure::Status(status.as_u16()));
    }
    let Ok(checker) = serde_json::from_slice::<Checker>(body) else {
        return Answer::Failed(PollFailure::Unreadable);
    };
    let nodes = checker.nodes.into_iter().filter(|node| !node.is_purged);
    let nodes = nodes.map(|node| Node { address: format!("{}:{}", node.ip, node.port), status: node.status }).collect();
    Answer::Nodes { name: Some(checker.name), nodes }
}

#[cfg(test)]
mod tests;
