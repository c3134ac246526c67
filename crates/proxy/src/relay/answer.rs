//! Answers of our own.

use bytes::Bytes;
use exchange::{Answer, Reason};
use http1::connection::{Persistence, Version};
use http1::request::Request;
use http1::response::RequestKind;
use io::Io;
use model::time::Timestamp;
use upstream::Resolve;

use super::frame::Frame;
use super::hold::send_all;
use super::side::ClientSide;
use super::upload::Fault;
use super::walk::{Peer, Relay};
use crate::changes;
use crate::drive::{Delivered, SEND};
use crate::listener::View;
use crate::local::Local;
use crate::record::{Outcome, Record, Told};
use crate::respond::{Recipient, Reply, Speaks};
use crate::timer::Timer;

impl<I: Io, R: Resolve, C: ClientSide> Relay<'_, I, R, C> {
    /// Sends what the machine answers; nothing when the client is gone.
    pub(super) async fn answer(&mut self, answer: &Answer) {
        match (answer.reason, self.fault) {
            (Reason::ClientGone, _) => self.end(answer.status, answer.reason.details()),
            (Reason::ClientBody, Some(fault)) => self.answer_fault(fault).await,
            _ => self.send(Reply::of_answer(answer)).await,
        }
    }

    /// Sends what the client's own fault is answered with.
    pub(super) async fn answer_fault(&mut self, fault: Fault) {
        let (status, details) = match fault {
            Fault::Framing(error) => (400, error.as_str()),
            Fault::TooLarge => (413, "request-body-too-large"),
            Fault::Stalled => (408, "request-body-timeout"),
            Fault::Head(error) => (error.status(), error.as_str()),
            Fault::NoTunnel => (400, "no-tunnel"),
            Fault::Unanswerable => return self.end(400, "malformed-body"),
        };
        self.send(Reply::of_client_fault(status, details)).await;
    }

    async fn send(&mut self, reply: Reply<'_>) {
        let reply = changes::of_reply(reply, &self.walked.exchange, &self.walked.snapshot, self.walked.id.as_deref());
        let speaks = Speaks::of(&self.work.request.view(&self.work.head));
        let text = text(self.local, &reply, (self.kind, speaks), self.walked.now);
        let (head, frames) = split(&text);
        let delivered = send_all(self.client, &mut *self.timer, head, frames, self.walked.now + SEND).await;
        self.walked.now = self.local.io.now();
        match delivered {
            Delivered::Whole => self.end(reply.status, reply.details),
            Delivered::ClientGone | Delivered::Broken(_) | Delivered::Deadline => {
                self.end(reply.status, delivered.reason());
            }
        }
    }
}

/// Answers a request whose head is refused.
pub(crate) async fn refuse<I: Io, R, C: ClientSide>(
    local: &Local<I, R>,
    client: &mut C,
    peer: &Peer,
    view: &View,
    speaks: Speaks,
    (status, details): (u16, &'static str),
) {
    let snapshot = local.board.snapshot();
    let id = local.ids.fresh(&snapshot.config.answers.request_id);
    let reply = changes::of_refusal(Reply::of_client_fault(status, details), &snapshot, id.as_deref());
    alone(local, client, peer, view, None, &reply, (RequestKind::Other, speaks)).await;
}

/// Answers `GET /.lazaret/self`: to local peers with who we are, to others as if there were nothing.
pub(super) async fn self_check<I: Io, R, C: ClientSide>(
    local: &Local<I, R>,
    client: &mut C,
    peer: &Peer,
    request: Request<'_>,
    view: &View,
    kind: RequestKind,
) {
    let body = format!("{{\"instance\":\"{}\"}}\n", local.instance);
    let nothing = Answer::of(Reason::NoRoute);
    let reply = if peer.is_local { Reply::json(&body) } else { Reply::of_answer(&nothing) };
    alone(local, client, peer, view, Some(request), &reply, (kind, Speaks::Http)).await;
}

/// Answers a request that never comes to the machine.
async fn alone<I: Io, R, C: ClientSide>(
    local: &Local<I, R>,
    client: &mut C,
    peer: &Peer,
    view: &View,
    request: Option<Request<'_>>,
    reply: &Reply<'_>,
    form: (RequestKind, Speaks),
) {
    let now = local.io.now();
    let text = text(local, reply, form, now);
    let (head, frames) = split(&text);
    let mut timer = Timer::new(local.io.clone());
    let delivered = send_all(client, &mut timer, head, frames, now + SEND).await;
    let reason = if delivered == Delivered::Whole { reply.details } else { delivered.reason() };
    let outcome = Outcome { status: reply.status, reason, bytes_in: 0 };
    let listener = view.config.id.as_str();
    let told = Told {
        listener,
        client: peer.address,
        protocol: client.protocol(),
        sent: client.sent(),
        request,
        walked: None,
        id: reply.id.map(|(_, id)| id),
    };
    Record::begin(now, 0).end(local, told, outcome, local.io.now());
}

/// The answer as an HTTP/1.1 client would get it.
fn text<I: Io, R>(local: &Local<I, R>, reply: &Reply<'_>, form: (RequestKind, Speaks), now: Timestamp) -> Vec<u8> {
    let mut text = Vec::with_capacity(512);
    let (version, persistence, (kind, speaks)) = (Version::Http11, Persistence::KeepAlive, form);
    let to = Recipient { version, persistence, kind, speaks };
    local.date.with(now, |date| reply.write(&mut text, to, date));
    text
}

/// Head and body.
fn split(text: &[u8]) -> (&[u8], Vec<Frame>) {
    let end = text.windows(4).position(|window| window == b"\r\n\r\n").map_or(text.len(), |at| at + 4);
    let (head, body) = text.split_at(end);
    let frames = if body.is_empty() { vec![] } else { vec![Frame::Data(Bytes::copy_from_slice(body))] };
    (head, frames)
}
