//! The response that the client gets: forwarded from the running attempt, or held from an earlier one.

use std::future::poll_fn;
use std::task::Poll;

use exchange::Input;
use exchange::snapshot::{ClusterView, DestinationView};
use http1::body::Body;
use http1::connection::{Persistence, Version};
use http1::forward::ResponseRewrite;
use http1::framing::ResponseFraming;
use http1::limits::HeadLimits;
use http1::request::Parsed;
use io::Io;
use model::outcome::{AttemptEnd, FailureKind};
use model::time::Timestamp;
use upstream::Resolve;

use super::{After, Turn};
use crate::access_log::Protocol;
use crate::await_head::Wires;
use crate::changes;
use crate::download::{Coding, Limits, Over, Rest, Surplus, deliver, take};
use crate::drive::{self, Delivered, HOLD, SEND, place};
use crate::leg::{self, Leg};
use crate::record::{Outcome, Told};
use crate::transfer::poll_read;

impl<I: Io, R: Resolve> Turn<'_, I, R> {
    /// Sends the response of the running attempt.
    pub(super) async fn forward(&mut self) -> After {
        let Some(mut leg) = self.leg.take() else { return After::Close };
        let snapshot = self.walked.snapshot.clone();
        let placed = self.walked.attempt.and_then(|attempt| place(&snapshot, &attempt));
        let Some((cluster, destination)) = placed else { return After::Close };
        self.walked.answered(self.local, &leg.in_flight);
        let cookies = self.walked.exchange.cookies(&snapshot);
        if self.work.response.is_interim() {
            return self.switch(leg, cluster, destination, &cookies);
        }
        let form = self.write_head(&cookies);
        let status = self.work.response.status();
        let mut body = Body::of_response(self.work.response.framing());
        let is_request_sent = self.upload.is_sent(&self.work.window);
        let rest = if is_request_sent || status >= 300 { Rest::Stop } else { Rest::Send };
        let limits =
            Limits { started: self.walked.now, idle: cluster.timeouts.idle, deadline: self.walked.exchange.deadline() };
        let mut ahead = self.ahead();
        let wires =
            Wires { local: self.local, client: self.client, leg: &mut leg, work: self.work, upload: &mut self.upload };
        let Over { delivered, surplus, now } = match &mut ahead {
            None => deliver(wires, &mut body, form.coding, rest, limits, None).await,
            Some(ahead) => deliver(wires, &mut body, form.coding, rest, limits, Some(ahead)).await,
        };
        self.walked.now = now;
        let end = self.end_of(delivered);
        if (delivered, surplus) == (Delivered::Whole, Surplus::None) {
            self.finish_leg(leg, cluster, destination);
        }
        self.walked.tell(self.local, Input::ResponseEnded { end });
        let delivered = match &mut ahead {
            None => delivered,
            Some(ahead) => Box::pin(self.send_rest(delivered, limits, ahead)).await,
        };
        self.end(status, delivered.reason());
        self.after(delivered, form)
    }

    /// Keeps the response of the running attempt, if it comes to its end soon and is small.
    pub(super) async fn hold(&mut self) {
        self.work.take_front(&self.local.scratch.borrow());
        let Some(mut leg) = self.leg.take() else { return self.walked.exchange.drop_held() };
        let snapshot = self.walked.snapshot.clone();
        let placed = self.walked.attempt.and_then(|attempt| place(&snapshot, &attempt));
        let Some((cluster, destination)) = placed else { return self.walked.exchange.drop_held() };
        let most = usize::try_from(cluster.retry.replay).unwrap_or(usize::MAX);
        if self.read_whole(&mut leg, most).await {
            self.held = Some(std::mem::take(&mut self.work.reply));
            self.finish_leg(leg, cluster, destination);
        } else if self.held.is_none() {
            self.walked.exchange.drop_held();
        }
    }

    /// Sends the held response.
    pub(super) async fn answer_held(&mut self) -> After {
        self.work.reply = self.held.take().unwrap_or_default();
        let parsed = self.work.response.parse(&self.work.reply, &HeadLimits::RESPONSE, self.facts.kind);
        if parsed != Ok(Parsed::Complete) {
            return After::Close;
        }
        let form = self.write_head(&[]);
        let mut body = Body::of_response(self.work.response.framing());
        let start = self.work.response.len();
        let bytes = self.work.reply.get(start..).unwrap_or_default();
        // It was read to its end when it was kept.
        let is_whole = take(&mut body, form.coding, bytes, &mut self.work.back).is_ok() && body.end_of_input().is_ok();
        let due = self.walked.now + SEND;
        let is_sent = self.client.send(&self.work.back, due).await.is_ok();
        self.walked.now = self.local.io.now();
        let delivered = match (is_sent, is_whole) {
            (true, true) => Delivered::Whole,
            (true, false) => Delivered::Broken(FailureKind::BodyCut),
            (false, _) => Delivered::ClientGone,
        };
        self.end(self.work.response.status(), delivered.reason());
        self.after(delivered, form)
    }

    /// Writes the head behind interim responses that wait in `work.back`.
    fn write_head(&mut self, cookies: &[String]) -> Form {
        let response = self.work.response.view(&self.work.reply);
        let framing = response.framing();
        let is_decoded = framing == ResponseFraming::Chunked && self.facts.version == Version::Http10;
        let ends_with_connection = is_decoded || framing == ResponseFraming::Close;
        let is_kept = self.facts.persistence == Persistence::KeepAlive
            && !ends_with_connection
            && self.upload.is_sent(&self.work.window)
            && !self.local.presence.is_draining()
            && !self.view.is_closed();
        let form = Form {
            coding: if is_decoded { Coding::Decoded } else { Coding::Verbatim },
            persistence: if is_kept { Persistence::KeepAlive } else { Persistence::Close },
            end: if ends_with_connection { End::Connection } else { End::Framing },
        };
        let changes = changes::of_response(&self.walked.exchange, &self.walked.snapshot, self.walked.id.as_deref());
        let (version, persistence, changes) = (self.facts.version, form.persistence, changes.as_ref());
        self.local.date.with(self.walked.now, |date| {
            let rewrite = ResponseRewrite { version, persistence, cookies, date, changes };
            http1::forward::response(&mut self.work.back, &response, &rewrite);
        });
        form
    }

    pub(super) fn end_of(&self, delivered: Delivered) -> AttemptEnd {
        drive::end_of(&self.work.response.view(&self.work.reply), delivered, self.walked.origin)
    }

    /// Pools the connection, over which the response came whole and nothing behind it, when the request went whole, too.
    fn finish_leg(&self, leg: Leg<I::Stream>, cluster: &ClusterView, destination: &DestinationView) {
        let is_clean = !leg.is_write_broken
            && self.upload.is_sent(&self.work.window)
            && self.work.response.persistence() == Persistence::KeepAlive;
        if is_clean {
            leg::keep(self.local, cluster, destination, leg, self.work.response.keep_alive_timeout(), self.walked.now);
        }
    }

    /// Reads the response's body into `work.reply`; false when it does not end soon, is too large or breaks off.
    async fn read_whole(&mut self, leg: &mut Leg<I::Stream>, most: usize) -> bool {
        let mut body = Body::of_response(self.work.response.framing());
        let start = self.work.response.len();
        let mut at = start;
        let due = self.walked.exchange.deadline().unwrap_or(Timestamp::MAX).min(self.walked.now + HOLD);
        let (local, client, reply) = (self.local, &mut *self.client, &mut self.work.reply);
        poll_fn(|context| {
            loop {
                match body.advance(reply.get(at..).unwrap_or_default()) {
                    Ok(advance) => at += advance.taken,
                    Err(_) => return Poll::Ready(false),
                }
                if body.is_done() {
                    return Poll::Ready(at == reply.len());
                }
                if at < reply.len() || at - start > most {
                    return Poll::Ready(false);
                }
                let mut scratch = local.scratch.borrow_mut();
                match poll_read(&mut leg.stream, context, &mut scratch) {
                    Poll::Ready(Ok([])) => return Poll::Ready(body.end_of_input().is_ok()),
                    Poll::Ready(Err(_)) => return Poll::Ready(false),
                    Poll::Ready(Ok(bytes)) => reply.extend_from_slice(bytes),
                    Poll::Pending => {
                        drop(scratch);
                        return client.timer.poll(context, due).map(|()| false);
                    }
                }
            }
        })
        .await
    }

    pub(super) fn end(&self, status: u16, reason: &'static str) {
        let outcome = Outcome { status, reason, bytes_in: self.upload.content() };
        self.walked.end(self.local, self.told(), outcome);
    }

    pub(super) fn told(&self) -> Told<'_> {
        Told {
            listener: self.view.config.id.as_str(),
            client: self.facts.client,
            protocol: Protocol::Http1,
            sent: self.client.sent,
            request: Some(self.work.request.view(&self.work.head)),
            walked: None,
            id: None,
        }
    }

    fn after(&self, delivered: Delivered, form: Form) -> After {
        match (delivered, form.end) {
            (Delivered::Whole, _) => self.after_whole(form.persistence),
            (Delivered::ClientGone, _) => After::Close,
            (Delivered::Broken(_) | Delivered::Deadline, End::Framing) => After::Close,
            (Delivered::Broken(_) | Delivered::Deadline, End::Connection) => After::Reset,
        }
    }

    pub(super) fn after_whole(&self, persistence: Persistence) -> After {
        match persistence {
            Persistence::KeepAlive => After::KeepAlive(self.walked.now),
            Persistence::Close if self.upload.is_read() && self.client.input.is_empty() => After::Close,
            Persistence::Close => After::Linger,
        }
    }
}

/// The form in which the client gets a response.
#[derive(Clone, Copy)]
struct Form {
    coding: Coding,
    persistence: Persistence,
    end: End,
}

/// By what the client knows where the response ends.
#[derive(Clone, Copy)]
enum End {
    /// By length or chunks: a missing rest shows.
    Framing,
    /// By the end of the connection: only a reset shows that something is missing.
    Connection,
}
