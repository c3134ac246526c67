//! Answers of our own on a connection that is in the middle of an exchange.

use std::time::Duration;

use exchange::{Answer, Reason};
use http1::connection::Persistence;
use io::Io;
use model::time::Timestamp;
use upstream::Resolve;

use super::{After, Facts, Turn};
use crate::access_log::Protocol;
use crate::await_head::ClientFault;
use crate::changes;
use crate::client::Client;
use crate::listener::View;
use crate::local::{Local, Workspace};
use crate::record::{Outcome, Record, Told};
use crate::respond::{Recipient, Reply, Speaks};

impl<I: Io, R: Resolve> Turn<'_, I, R> {
    /// Sends what the machine answers; nothing when the client is gone.
    pub(super) async fn answer(&mut self, answer: &Answer) -> After {
        match (answer.reason, self.fault) {
            (Reason::ClientGone, _) => {
                self.end(answer.status, answer.reason.details());
                After::Close
            }
            (Reason::ClientBody, Some(fault)) => self.answer_fault(fault).await,
            _ => self.send(Reply::of_answer(answer)).await,
        }
    }

    /// Sends what the client's own fault is answered with.
    pub(super) async fn answer_fault(&mut self, fault: ClientFault) -> After {
        let (status, details) = match fault {
            ClientFault::Framing(error) => (400, error.as_str()),
            ClientFault::TooLarge => (413, "request-body-too-large"),
            ClientFault::Stalled => (408, "request-body-timeout"),
        };
        self.send(Reply::of_client_fault(status, details)).await
    }

    async fn send(&mut self, reply: Reply<'_>) -> After {
        // Bytes of a body that came with the head are no reason to close.
        let _ = self.upload.take_ahead(&mut self.work.window, &mut self.client.input);
        let is_kept = self.facts.persistence == Persistence::KeepAlive
            && self.upload.is_read()
            && !self.local.presence.is_draining()
            && !self.view.is_closed();
        let persistence = if is_kept { Persistence::KeepAlive } else { Persistence::Close };
        let speaks = Speaks::of(&self.work.request.view(&self.work.head));
        let to = Recipient { version: self.facts.version, persistence, kind: self.facts.kind, speaks };
        let reply = changes::of_reply(reply, &self.walked.exchange, &self.walked.snapshot, self.walked.id.as_deref());
        self.local.date.with(self.walked.now, |date| reply.write(&mut self.work.back, to, date));
        let is_sent = self.client.send(&self.work.back, self.walked.now + SEND).await.is_ok();
        self.walked.now = self.local.io.now();
        self.end(reply.status, reply.details);
        if is_sent { self.after_whole(persistence) } else { After::Close }
    }
}

/// Answers `GET /.lazaret/self`: to local peers with who we are, to others as if there were nothing.
pub(super) async fn self_check<I: Io, R>(
    local: &Local<I, R>,
    client: &mut Client<I>,
    work: &mut Workspace,
    view: &View,
    facts: Facts,
    now: Timestamp,
) -> After {
    let record = Record::begin(now, client.sent);
    let body = format!("{{\"instance\":\"{}\"}}\n", local.instance);
    let nothing = Answer::of(Reason::NoRoute);
    let reply = if client.is_local() { Reply::json(&body) } else { Reply::of_answer(&nothing) };
    let (version, persistence, kind, speaks) = (facts.version, facts.persistence, facts.kind, Speaks::Http);
    let to = Recipient { version, persistence, kind, speaks };
    local.date.with(now, |date| reply.write(&mut work.back, to, date));
    let is_sent = client.send(&work.back, now + SEND).await.is_ok();
    let outcome = Outcome { status: reply.status, reason: reply.details, bytes_in: 0 };
    let request = Some(work.request.view(&work.head));
    let listener = view.config.id.as_str();
    let (protocol, sent) = (Protocol::Http1, client.sent);
    let told = Told { listener, client: facts.client, protocol, sent, request, walked: None, id: None };
    record.end(local, told, outcome, local.io.now());
    match (is_sent, facts.persistence) {
        (true, Persistence::KeepAlive) => After::KeepAlive(now),
        (true, Persistence::Close) | (false, _) => After::Close,
    }
}

/// An answer is given up when the client does not take it within this time.
const SEND: Duration = Duration::from_secs(60);
