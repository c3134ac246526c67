//! What is taken of a response ahead of a client that is slower than its destination, on routes that buffer.
//!
//! ```text
//!   DestinationSide ──> in hand ──> ClientSide        the client takes what there is
//!                  └──> waiting ──> in hand ──> …     it does not: up to a bound frames wait here, and the destination
//!                                                     gets its room back at once
//! ```
//! When the destination's part is over the exchange with it is, too; [`Relay::send_rest`] gives the client what waits. A copy
//! waits and not the frame: a frame may hold on to a buffer far larger than itself.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::Poll;

use bytes::Bytes;
use io::Io;
use model::time::Timestamp;
use upstream::Resolve;

use super::deliver::Limits;
use super::frame::{End, Frame};
use super::side::ClientSide;
use super::walk::Relay;
use crate::buffering::{self, Share};
use crate::drive::Delivered;

/// Frames that wait for their client.
pub(super) struct Ahead<'s> {
    /// Bytes that may wait.
    most: usize,
    share: Share<'s>,
    waiting: VecDeque<Frame>,
    /// What they cost.
    held: usize,
}

impl Ahead<'_> {
    /// Whether another frame may be read while the client takes none. The last one may go beyond the bound by its
    /// content, which is one read at most.
    pub(super) fn has_room(&mut self) -> bool {
        let wanted = self.held + FRAME;
        wanted <= self.most && self.share.resize(wanted) >= wanted
    }

    /// Keeps a copy.
    pub(super) fn push(&mut self, frame: &Frame) {
        self.held += cost(frame);
        self.share.resize(self.held);
        self.waiting.push_back(match frame {
            Frame::Data(bytes) => Frame::Data(Bytes::copy_from_slice(bytes)),
            Frame::Trailers(fields) => Frame::Trailers(fields.clone()),
        });
    }

    /// The next one for the client.
    pub(super) fn pop(&mut self) -> Option<Frame> {
        let frame = self.waiting.pop_front()?;
        self.held -= cost(&frame);
        self.share.resize(self.held);
        Some(frame)
    }

    /// Puts the frame back that the client has not taken, or not whole.
    pub(super) fn put_back(&mut self, frame: Frame) {
        self.held += cost(&frame);
        self.waiting.push_front(frame);
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl<'a, I: Io, R: Resolve, C: ClientSide> Relay<'a, I, R, C> {
    /// What of the response may be taken ahead; `None`: nothing, as on nearly all routes.
    pub(super) fn ahead(&self) -> Option<Ahead<'a>> {
        let route = self.walked.route()?;
        let most = buffering::ahead(route.buffering, &self.work.response.view(&self.work.reply));
        let share = || self.local.store.share(&self.local.metrics);
        (most > 0).then(|| Ahead { most, share: share(), waiting: VecDeque::new(), held: 0 })
    }

    /// Sends what waits after the destination's part has ended, well or badly.
    pub(super) async fn send_rest(&mut self, delivered: Delivered, limits: Limits, ahead: &mut Ahead<'_>) -> Delivered {
        let last = match delivered {
            Delivered::ClientGone | Delivered::Deadline => return delivered,
            Delivered::Whole => End::Here,
            // The end is not said: what follows is the break.
            Delivered::Broken(_) => End::Later,
        };
        let deadline = limits.deadline.unwrap_or(Timestamp::MAX);
        let (local, client, timer) = (self.local, &mut *self.client, &mut *self.timer);
        let (mut hand, mut moved, mut progress) = (ahead.pop(), client.sent(), self.walked.now);
        let sent = poll_fn(|context| {
            loop {
                let end = if ahead.is_empty() { last } else { End::Later };
                match client.poll_send(context, &mut hand, end) {
                    Poll::Pending => break,
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(Delivered::ClientGone)),
                    Poll::Ready(Ok(())) if ahead.is_empty() => return Poll::Ready(Ok(())),
                    Poll::Ready(Ok(())) => hand = ahead.pop(),
                }
            }
            if client.poll_gone(context).is_ready() {
                return Poll::Ready(Err(Delivered::ClientGone));
            }
            if client.sent() != moved {
                moved = client.sent();
                progress = local.io.now();
            }
            let due = deadline.min(progress + limits.idle);
            let late = if due == deadline { Delivered::Deadline } else { Delivered::ClientGone };
            timer.poll(context, due).map(|()| Err(late))
        })
        .await;
        self.walked.now = local.io.now();
        match (sent, delivered) {
            (Err(late), Delivered::Whole) => late,
            // The destination's fault is what is told of it.
            (Ok(()) | Err(_), delivered) => delivered,
        }
    }
}

/// Many small frames cost more than their content.
fn cost(frame: &Frame) -> usize {
    frame.content() + FRAME
}

/// What a frame counts beside its content.
const FRAME: usize = 64;
