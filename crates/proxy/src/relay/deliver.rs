//! The response of the running attempt on its way to the client.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use exchange::snapshot::{ClusterView, DestinationView};
use exchange::{Input, Reason, grpc};
use http1::connection::{Persistence, Version};
use http1::forward::{self, ResponseRewrite};
use io::Io;
use model::outcome::{AttemptEnd, CallStatus, FailureKind};
use model::request::Fields as _;
use model::time::Timestamp;
use upstream::Resolve;

use super::ahead::Ahead;
use super::await_head::Wires;
use super::frame::{End, Frame};
use super::outgoing::Outgoing;
use super::side::{Abort, ClientSide, DestinationSide, Gone};
use super::upload::Moved;
use super::walk::Relay;
use crate::changes;
use crate::drive::{self, Delivered, place};
use crate::leg;
use crate::respond::Speaks;

impl<I: Io, R: Resolve, C: ClientSide> Relay<'_, I, R, C> {
    /// Sends the response of the running attempt.
    pub(super) async fn forward(&mut self) {
        let Some(mut side) = self.destination.take() else { return self.client.abort(Abort::Cut) };
        let snapshot = self.walked.snapshot.clone();
        let placed = self.walked.attempt.and_then(|attempt| place(&snapshot, &attempt));
        let Some((cluster, destination)) = placed else { return self.client.abort(Abort::Cut) };
        self.walked.answered(self.local, side.in_flight());
        let cookies = self.walked.exchange.cookies(&snapshot);
        let status = self.work.response.status();
        if self.work.response.is_interim() {
            self.write_head(&cookies);
            return self.switch(side, cluster, destination).await;
        }
        let end = if side.is_over() { End::Here } else { End::Later };
        let limits = Limits { idle: cluster.timeouts.idle, deadline: self.walked.exchange.deadline() };
        let mut ahead = self.ahead();
        let is_call = self.is_call();
        let (delivered, trailing) = match self.send_head(&cookies, end) {
            Err(_) => (Delivered::ClientGone, None),
            Ok(()) => self.deliver(&mut side, limits, status, ahead.as_mut()).await,
        };
        let call = trailing.or_else(|| self.status_in_head()).filter(|_| is_call);
        self.work.back.clear();
        let end = AttemptEnd { call, ..self.end_of(delivered) };
        self.finish(side, cluster, destination, delivered);
        self.handle(Input::ResponseEnded { end });
        let delivered = match &mut ahead {
            None => delivered,
            Some(ahead) => Box::pin(self.send_rest(delivered, limits, ahead)).await,
        };
        if matches!(delivered, Delivered::Broken(_) | Delivered::Deadline) {
            // The task that writes for the client goes first, as a reset takes away what waits.
            tokio::task::yield_now().await;
            let abort = self.abort_of(delivered);
            self.client.abort(abort);
        }
        self.end(status, delivered.reason());
    }

    /// Sends the response's head.
    fn send_head(&mut self, cookies: &[String], end: End) -> Result<(), Gone> {
        let client = &mut *self.client;
        let work = &mut *self.work;
        let response = work.response.view(&work.reply);
        work.back.clear();
        let changes = changes::of_response(&self.walked.exchange, &self.walked.snapshot, self.walked.id.as_deref());
        let (version, persistence, changes) = (Version::Http11, Persistence::KeepAlive, changes.as_ref());
        let mut sent = Ok(());
        self.local.date.with(self.walked.now, |date| {
            let rewrite = ResponseRewrite { version, persistence, cookies, date, changes };
            sent = client.response(&response, &rewrite, &mut work.back, end);
        });
        sent
    }

    /// Writes the response's head into `work.back` as an HTTP/1.1 client would get it.
    pub(super) fn write_head(&mut self, cookies: &[String]) {
        let work = &mut *self.work;
        let response = work.response.view(&work.reply);
        work.back.clear();
        let changes = changes::of_response(&self.walked.exchange, &self.walked.snapshot, self.walked.id.as_deref());
        let (version, persistence, changes) = (Version::Http11, Persistence::KeepAlive, changes.as_ref());
        self.local.date.with(self.walked.now, |date| {
            let rewrite = ResponseRewrite { version, persistence, cookies, date, changes };
            forward::response(&mut work.back, &response, &rewrite);
        });
    }

    /// How the response came to its end, and what its trailers say of a call. With `ahead` it is over when the
    /// destination's part is: what the client has not taken then waits in there.
    async fn deliver(
        &mut self,
        side: &mut Outgoing<I::Stream>,
        limits: Limits,
        status: u16,
        ahead: Option<&mut Ahead<'_>>,
    ) -> (Delivered, Option<CallStatus>) {
        let mut delivery = Delivery {
            // What is not sent yet of a request that was answered badly is not worth sending.
            sends_rest: !self.upload.is_sent() && status < 300,
            limits,
            hand: None,
            owed: 0,
            ahead,
            call: None,
            progress: self.walked.now,
            moved: None,
            wires: Wires {
                local: self.local,
                client: &mut *self.client,
                destination: side,
                work: self.work,
                upload: &mut self.upload,
                timer: &mut *self.timer,
            },
        };
        let delivered = poll_fn(|context| delivery.poll(context)).await;
        let call = delivery.call;
        delivery.leave();
        (delivered, call)
    }

    /// Whether the response answers a gRPC call in a call's own words.
    fn is_call(&self) -> bool {
        Speaks::of(&self.work.request.view(&self.work.head)) == Speaks::Grpc && {
            let response = self.work.response.view(&self.work.reply);
            grpc::is_call(&response)
        }
    }

    /// What a call came to whose response is its head alone.
    fn status_in_head(&self) -> Option<CallStatus> {
        let mut status = None;
        let response = self.work.response.view(&self.work.reply);
        response.each(GRPC_STATUS, &mut |value| status = Some(CallStatus::parse(value)));
        status
    }

    /// How the client learns that the response is not whole. The time of a gRPC call is told in a call's own words.
    fn abort_of(&self, delivered: Delivered) -> Abort {
        if delivered == Delivered::Deadline && self.is_call() {
            let details = Reason::Deadline.details();
            return Abort::CallOver(grpc::Code::of(Reason::Deadline.status(), details), details);
        }
        Abort::Cut
    }

    pub(super) fn end_of(&self, delivered: Delivered) -> AttemptEnd {
        drive::end_of(&self.work.response.view(&self.work.reply), delivered, self.walked.origin)
    }

    /// Pools an HTTP/1.1 connection when both messages went over it whole and nothing else did.
    pub(super) fn finish(
        &mut self,
        side: Outgoing<I::Stream>,
        cluster: &ClusterView,
        destination: &DestinationView,
        delivered: Delivered,
    ) {
        match side {
            // Its connection stays with the worker anyway; a stream that is not over is reset.
            Outgoing::Http2(side) => {
                if delivered == Delivered::Broken(FailureKind::BodyTimeout) {
                    side.timed_out();
                }
            }
            Outgoing::Http1(mut side) => {
                self.work.out = side.take_memory();
                let is_kept =
                    delivered == Delivered::Whole && self.work.response.persistence() == Persistence::KeepAlive;
                if is_kept && let Some(leg) = side.into_clean() {
                    let announced = self.work.response.keep_alive_timeout();
                    leg::keep(self.local, cluster, destination, leg, announced, self.walked.now);
                }
            }
        }
    }
}

/// The times that bound the delivery.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) idle: Duration,
    pub(super) deadline: Option<Timestamp>,
}

struct Delivery<'a, 'b, 's, I: Io, R, C, D> {
    wires: Wires<'a, I, R, C, D>,
    limits: Limits,
    /// Whether a request body that is not sent yet is still worth sending.
    sends_rest: bool,
    /// From the destination, not yet taken by the client.
    hand: Option<Frame>,
    /// Of the frame in hand the destination still has to get back so much room.
    owed: usize,
    ahead: Option<&'b mut Ahead<'s>>,
    /// What the trailers say of a call.
    call: Option<CallStatus>,
    /// What had moved at the last look.
    moved: Option<u64>,
    /// When a byte last moved.
    progress: Timestamp,
}

/// Whether the client or the destination is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    ForClient,
    ForDestination,
}

impl<I: Io, R, C: ClientSide, D: DestinationSide> Delivery<'_, '_, '_, I, R, C, D> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Delivered> {
        let waits = match self.poll_body(context) {
            Ok(waits) => waits,
            Err(delivered) => return Poll::Ready(delivered),
        };
        let moved = self.poll_rest(context);
        if moved == Moved::ClientGone {
            return Poll::Ready(Delivered::ClientGone);
        }
        self.note_progress();
        let deadline = self.limits.deadline.unwrap_or(Timestamp::MAX);
        let due = deadline.min(self.progress + self.limits.idle);
        self.wires.timer.poll(context, due).map(|()| match waits {
            _ if due == deadline => Delivered::Deadline,
            Waits::ForClient => Delivered::ClientGone,
            // It may be waiting for the rest of the request.
            Waits::ForDestination if moved == Moved::ByClient => Delivered::Broken(FailureKind::ClientBody),
            Waits::ForDestination => Delivered::Broken(FailureKind::BodyTimeout),
        })
    }

    /// Moves frames until one of both sides is to be waited for; `Err`: it is over.
    fn poll_body(&mut self, context: &mut Context<'_>) -> Result<Waits, Delivered> {
        loop {
            let is_over = self.wires.destination.is_over();
            let is_blocked = match self.poll_client(context, is_over) {
                Poll::Ready(Err(Gone)) => return Err(Delivered::ClientGone),
                Poll::Ready(Ok(())) => false,
                Poll::Pending => true,
            };
            if is_over && (!is_blocked || self.ahead.is_some()) {
                return Err(Delivered::Whole);
            }
            if is_blocked && !self.ahead.as_deref_mut().is_some_and(Ahead::has_room) {
                return Ok(Waits::ForClient);
            }
            let Wires { local, destination, .. } = &mut self.wires;
            match destination.poll_frame(context, &mut local.scratch.borrow_mut()) {
                Poll::Pending => return Ok(Waits::ForDestination),
                Poll::Ready(Some(Ok(frame))) => {
                    if let Frame::Trailers(fields) = &frame {
                        self.call = fields.get(GRPC_STATUS).map(|value| CallStatus::parse(value.as_bytes()));
                    }
                    match self.ahead.as_deref_mut().filter(|_| is_blocked) {
                        Some(ahead) => {
                            ahead.push(&frame);
                            destination.release(frame.content());
                        }
                        None => {
                            self.owed = frame.content();
                            self.hand = Some(frame);
                        }
                    }
                }
                Poll::Ready(Some(Err(failure))) => return Err(Delivered::Broken(failure)),
                // From here on `is_over` says the same.
                Poll::Ready(None) => {}
            }
        }
    }

    /// Gives the client what there is, and the end when there is no more to come.
    fn poll_client(&mut self, context: &mut Context<'_>, is_over: bool) -> Poll<Result<(), Gone>> {
        loop {
            let is_last = is_over && self.ahead.as_deref().is_none_or(Ahead::is_empty);
            let end = if is_last { End::Here } else { End::Later };
            let sending = self.wires.client.poll_send(context, &mut self.hand, end);
            self.give_back();
            if !matches!(sending, Poll::Ready(Ok(()))) {
                return sending;
            }
            self.hand = self.ahead.as_deref_mut().and_then(Ahead::pop);
            if self.hand.is_none() {
                return sending;
            }
        }
    }

    /// The destination gets room for what has left our hand.
    fn give_back(&mut self) {
        let held = self.hand.as_ref().map_or(0, Frame::content);
        let taken = self.owed.saturating_sub(held);
        if taken > 0 {
            self.wires.destination.release(taken);
            self.owed -= taken;
        }
    }

    /// It is over: what is in hand waits with the rest.
    fn leave(mut self) {
        if let (Some(ahead), Some(frame)) = (self.ahead.as_deref_mut(), self.hand.take()) {
            ahead.put_back(frame);
        }
        self.give_back();
    }

    /// The clock is read when something moved, and not for what was sent together with the head.
    fn note_progress(&mut self) {
        let Wires { local, client, destination, upload, .. } = &self.wires;
        let mark = Some(destination.moved() + client.sent() + upload.moved());
        if mark != self.moved && self.moved.is_some() {
            self.progress = local.io.now();
            local.board.progressed(destination.in_flight().slot(), self.progress);
        }
        self.moved = mark;
    }

    /// The request's body, where there is still some; and whether the client is there.
    fn poll_rest(&mut self, context: &mut Context<'_>) -> Moved {
        let Wires { client, destination, upload, .. } = &mut self.wires;
        let moved =
            if self.sends_rest { upload.poll_move(context, *client, *destination) } else { Moved::ByDestination };
        match moved {
            Moved::ClientGone => return moved,
            // Its answer is on the way already.
            Moved::Fault(_) | Moved::Over => self.sends_rest = false,
            Moved::ByClient | Moved::ByDestination => {}
        }
        match client.poll_gone(context) {
            Poll::Ready(()) => Moved::ClientGone,
            Poll::Pending => moved,
        }
    }
}

const GRPC_STATUS: &str = "grpc-status";
