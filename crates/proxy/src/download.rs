//! The response on its way to the client, from its head to its end.
//!
//! ```text
//!   destination ──read──> tracker ──> straight to the client; what it does not take now waits in `work.back`
//!                                       and nothing more is read until it is gone (back-pressure)
//! ```
//! A large body between plain connections goes through a pipe instead (`through`) and never into the process. Where the
//! route buffers, reading goes on up to a bound, and the delivery is over when the destination's part is.
//! A request body that is still being sent goes on meanwhile when the answer is a good one; otherwise it is not worth
//! sending (RFC 9112 9.5).

mod through;

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use http1::body::{Body, BodyError, Piece};
use io::Io;
use model::outcome::FailureKind;
use model::time::Timestamp;

use crate::await_head::Wires;
use crate::buffering::Share;
use crate::drive::Delivered;
use crate::pipes::Lent;
use crate::transfer::poll_read;
use crate::upload::Moved;

use self::through::Through;

/// Whether the client gets the body's framing as it came or the content alone (HTTP/1.0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// As it came: the tracker has judged it clean.
    Verbatim,
    /// Content only.
    Decoded,
}

/// Whether a request body that is not sent yet is worth sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// It is.
    Send,
    /// It is not.
    Stop,
}

/// The times that bound the delivery.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) started: Timestamp,
    pub(crate) idle: Duration,
    pub(crate) deadline: Option<Timestamp>,
}

/// What a delivery came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Over {
    pub(crate) delivered: Delivered,
    pub(crate) surplus: Surplus,
    /// When it was over.
    pub(crate) now: Timestamp,
}

/// Whether bytes came behind the end of the body: a connection that is not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surplus {
    None,
    Some,
}

/// What may be taken ahead of the client.
pub(crate) struct Ahead<'s> {
    /// Bytes.
    pub(crate) most: usize,
    pub(crate) share: Share<'s>,
}

/// Sends `work.back` (head and first bytes of the body) and then the rest of the body. Also tells when that was over.
/// With `ahead` it is over when the destination's part is: what the client has not taken then lies in `work.back`.
pub(crate) async fn deliver<I: Io, R>(
    mut wires: Wires<'_, I, R>,
    body: &mut Body,
    coding: Coding,
    rest: Rest,
    limits: Limits,
    ahead: Option<&mut Ahead<'_>>,
) -> Over {
    let surplus = begin(&mut wires, body, coding);
    let back_sent = if wires.work.front.is_empty() { wires.client.try_send(&wires.work.back) } else { 0 };
    if body.is_done() && wires.work.front.is_empty() && back_sent == wires.work.back.len() {
        wires.work.back.clear();
        // What the time was still is.
        return Over { delivered: Delivered::Whole, surplus, now: limits.started };
    }
    let mut delivery = Delivery {
        wires,
        body,
        coding,
        rest,
        limits,
        ahead,
        back_sent,
        has_surplus: surplus == Surplus::Some,
        received: 0,
        moved: None,
        pipe: None,
        is_unpiped: false,
        progress: limits.started,
    };
    let delivered = poll_fn(|context| delivery.poll(context)).await;
    let Delivery { wires, moved, back_sent, has_surplus, .. } = delivery;
    wires.work.back.drain(..back_sent);
    // Most responses are over at once: what was the time still is.
    let now = if moved.is_none() { limits.started } else { wires.local.io.now() };
    Over { delivered, surplus: if has_surplus { Surplus::Some } else { Surplus::None }, now }
}

/// What came behind the head, with it, comes first: its part of the body goes behind the head in `work.back`, or stays in
/// front.
fn begin<I: Io, R>(wires: &mut Wires<'_, I, R>, body: &mut Body, coding: Coding) -> Surplus {
    let work = &mut *wires.work;
    if coding == Coding::Decoded {
        work.take_front(&wires.local.scratch.borrow());
    }
    let (taken, length) = if work.front.is_empty() {
        let bytes = work.reply.get(work.response.len()..).unwrap_or_default();
        // A fault is told again by the next read.
        (take(body, coding, bytes, &mut work.back).unwrap_or(0), bytes.len())
    } else {
        let advance = body.advance(work.front.of(&wires.local.scratch.borrow()));
        let (taken, length) = (advance.map_or(0, |advance| advance.taken), work.front.len());
        work.front = work.front.up_to(taken);
        (taken, length)
    };
    if taken < length { Surplus::Some } else { Surplus::None }
}

/// Takes out of `bytes` what belongs to the body and appends it to `back`; the number of bytes taken.
pub(crate) fn take(body: &mut Body, coding: Coding, bytes: &[u8], back: &mut Vec<u8>) -> Result<usize, BodyError> {
    match coding {
        Coding::Verbatim => {
            let taken = body.advance(bytes)?.taken;
            back.extend_from_slice(bytes.get(..taken).unwrap_or_default());
            Ok(taken)
        }
        Coding::Decoded => {
            let mut at = 0;
            while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty() && !body.is_done()) {
                match body.piece(rest)? {
                    Piece::Content(run) => {
                        back.extend_from_slice(rest.get(..run).unwrap_or_default());
                        at += run;
                    }
                    Piece::Framing(run) => at += run,
                }
            }
            Ok(at)
        }
    }
}

struct Delivery<'a, 'b, 's, I: Io, R> {
    wires: Wires<'a, I, R>,
    body: &'b mut Body,
    coding: Coding,
    rest: Rest,
    limits: Limits,
    ahead: Option<&'b mut Ahead<'s>>,
    back_sent: usize,
    has_surplus: bool,
    /// Bytes from the destination, behind those that came with the head.
    received: u64,
    /// What had moved at the last look.
    moved: Option<u64>,
    /// When a byte last moved.
    progress: Timestamp,
    /// What the body goes through, once it does.
    pipe: Option<Lent>,
    /// There was no pipe to be had.
    is_unpiped: bool,
}

impl<I: Io, R> Delivery<'_, '_, '_, I, R> {
    /// Sends the head and what came of the body with it in one piece; keeps what the client does not take.
    fn send_front(&mut self, context: &mut Context<'_>, scratch: &mut [u8]) {
        let Wires { client, work, .. } = &mut self.wires;
        let front = std::mem::take(&mut work.front);
        if front.is_empty() {
            return;
        }
        let Some(piece) = front.behind(&work.back, scratch) else {
            return work.back.extend_from_slice(front.of(scratch));
        };
        let mut sent = 0;
        // A failure shows again with the next write.
        let _ = client.poll_send(context, piece, &mut sent);
        work.back.clear();
        work.back.extend_from_slice(piece.get(sent..).unwrap_or_default());
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Delivered> {
        let local = self.wires.local;
        let mut scratch = local.scratch.borrow_mut();
        let mut is_blocked = false;
        self.send_front(context, &mut scratch);
        loop {
            let mut room = scratch.len();
            match self.poll_back(context) {
                Poll::Ready(Err(())) => return Poll::Ready(Delivered::ClientGone),
                Poll::Pending => {
                    room = self.room(room);
                    let is_taken = self.ahead.is_some() && self.body.is_done();
                    if room == 0 && !is_taken {
                        is_blocked = true;
                        break;
                    }
                }
                Poll::Ready(Ok(())) => {}
            }
            // First: what is done may still lie in the pipe.
            match self.poll_through(context) {
                Through::Unfit => {}
                Through::BySource => break,
                Through::ByClient => {
                    is_blocked = true;
                    break;
                }
                Through::Over(delivered) => return Poll::Ready(delivered),
            }
            if self.body.is_done() {
                return Poll::Ready(Delivered::Whole);
            }
            if self.has_surplus {
                return Poll::Ready(Delivered::Broken(FailureKind::BodyCut));
            }
            let into = scratch.get_mut(..room).unwrap_or_default();
            match poll_read(&mut self.wires.leg.stream, context, into) {
                Poll::Pending => break,
                Poll::Ready(Ok([])) => match self.body.end_of_input() {
                    Ok(()) => continue,
                    Err(_) => return Poll::Ready(Delivered::Broken(FailureKind::BodyCut)),
                },
                Poll::Ready(Err(_)) => return Poll::Ready(Delivered::Broken(FailureKind::BodyCut)),
                Poll::Ready(Ok(bytes)) => self.pass(context, bytes),
            }
        }
        let moved = self.poll_rest(context, &mut scratch);
        if matches!(moved, Moved::ClientGone) {
            return Poll::Ready(Delivered::ClientGone);
        }
        drop(scratch);
        self.note_progress();
        let deadline = self.limits.deadline.unwrap_or(Timestamp::MAX);
        let due = deadline.min(self.progress + self.limits.idle);
        self.wires.client.timer.poll(context, due).map(|()| {
            if due == deadline {
                Delivered::Deadline
            } else if is_blocked {
                Delivered::ClientGone
            } else if moved == Moved::ByClient {
                // The destination may be waiting for the rest of the request.
                Delivered::Broken(FailureKind::ClientBody)
            } else {
                Delivered::Broken(FailureKind::BodyTimeout)
            }
        })
    }

    /// The clock is read when something moved, and not for what was sent together with the head.
    fn note_progress(&mut self) {
        let Wires { local, client, leg, upload, .. } = &self.wires;
        let mark = Some(self.received + client.sent + upload.moved());
        if mark != self.moved && self.moved.is_some() {
            self.progress = local.io.now();
            local.board.progressed(leg.in_flight.slot(), self.progress);
        }
        self.moved = mark;
    }

    /// So much may be read although the client is not done with what it has: with nothing to be taken ahead, none.
    fn room(&mut self, most: usize) -> usize {
        let Some(ahead) = self.ahead.as_deref_mut() else { return 0 };
        let back = &mut self.wires.work.back;
        // What was sent is dropped seldom enough that moving the rest costs no more than reading it did.
        if self.back_sent > back.len() / 2 {
            back.drain(..self.back_sent);
            self.back_sent = 0;
        }
        let waiting = back.len() - self.back_sent;
        let wanted = ahead.most.min(waiting + most);
        ahead.share.resize(wanted.max(waiting)).min(wanted).saturating_sub(waiting)
    }

    fn poll_back(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ()>> {
        let work = &mut *self.wires.work;
        // What was taken may lie in the TLS session still.
        if self.back_sent < work.back.len() || self.wires.client.is_unflushed {
            match self.wires.client.poll_send(context, &work.back, &mut self.back_sent) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(_)) => return Poll::Ready(Err(())),
                Poll::Ready(Ok(())) => {}
            }
        }
        work.back.clear();
        self.back_sent = 0;
        Poll::Ready(Ok(()))
    }

    /// Sends bytes of the body from where they were read; keeps what the client does not take.
    fn pass(&mut self, context: &mut Context<'_>, bytes: &[u8]) {
        self.received += bytes.len() as u64;
        let Wires { client, work, .. } = &mut self.wires;
        match self.coding {
            Coding::Decoded => {
                let taken = take(self.body, Coding::Decoded, bytes, &mut work.back);
                self.has_surplus = taken != Ok(bytes.len());
            }
            Coding::Verbatim => {
                let taken = self.body.advance(bytes).map(|advance| advance.taken).unwrap_or(0);
                self.has_surplus = taken < bytes.len();
                let good = bytes.get(..taken).unwrap_or_default();
                let mut sent = 0;
                // A failure shows again with the next write.
                if work.back.is_empty() {
                    let _ = client.poll_send(context, good, &mut sent);
                }
                work.back.extend_from_slice(good.get(sent..).unwrap_or_default());
            }
        }
    }

    /// The request's body, where there is still some; and whether the client is there.
    fn poll_rest(&mut self, context: &mut Context<'_>, scratch: &mut [u8]) -> Moved {
        let Wires { client, leg, work, upload, .. } = &mut self.wires;
        let moved = match self.rest {
            Rest::Send => upload.poll_move(context, client, leg, &mut work.window, scratch),
            Rest::Stop => Moved::ByDestination,
        };
        match moved {
            Moved::ClientGone | Moved::ByClient => moved,
            // Its answer is on the way already; the connection closes behind it.
            Moved::Fault(_) | Moved::TooLarge => {
                self.rest = Rest::Stop;
                Moved::Over
            }
            Moved::Over | Moved::ByDestination => match client.poll_gone(context, scratch) {
                Poll::Ready(()) => Moved::ClientGone,
                Poll::Pending => moved,
            },
        }
    }
}
