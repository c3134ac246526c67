//! A response that is kept while another attempt runs, and sent when nothing better comes.

use std::future::poll_fn;
use std::task::Poll;

use http1::limits::HeadLimits;
use http1::request::Parsed;
use io::Io;
use model::time::Timestamp;
use upstream::Resolve;

use super::frame::{End, Frame};
use super::outgoing::Outgoing;
use super::side::{ClientSide, DestinationSide};
use super::walk::Relay;
use crate::drive::{Delivered, HOLD, SEND, place};
use crate::timer::Timer;

/// Head and body of a response.
pub(super) struct Held {
    reply: Vec<u8>,
    frames: Vec<Frame>,
}

impl<I: Io, R: Resolve, C: ClientSide> Relay<'_, I, R, C> {
    /// Keeps the response of the running attempt, if it comes to its end soon and is small.
    pub(super) async fn hold(&mut self) {
        let Some(mut side) = self.destination.take() else { return self.walked.exchange.drop_held() };
        let snapshot = self.walked.snapshot.clone();
        let placed = self.walked.attempt.and_then(|attempt| place(&snapshot, &attempt));
        let Some((cluster, destination)) = placed else { return self.walked.exchange.drop_held() };
        let most = usize::try_from(cluster.retry.replay).unwrap_or(usize::MAX);
        match self.read_whole(&mut side, most).await {
            Some(frames) => {
                self.finish(side, cluster, destination, Delivered::Whole);
                self.held = Some(Held { reply: std::mem::take(&mut self.work.reply), frames });
            }
            None if self.held.is_none() => self.walked.exchange.drop_held(),
            None => {}
        }
    }

    /// Sends the held response.
    pub(super) async fn answer_held(&mut self) {
        let Held { reply, frames } = self.held.take().unwrap_or(Held { reply: Vec::new(), frames: Vec::new() });
        self.work.reply = reply;
        let parsed = self.work.response.parse(&self.work.reply, &HeadLimits::RESPONSE, self.kind);
        if parsed != Ok(Parsed::Complete) {
            return;
        }
        self.write_head(&[]);
        let head = std::mem::take(&mut self.work.back);
        let delivered = send_all(self.client, &mut *self.timer, &head, frames, self.walked.now + SEND).await;
        self.work.back = head;
        self.walked.now = self.local.io.now();
        self.end(self.work.response.status(), delivered.reason());
    }

    /// Reads the response's body; `None` when it does not end soon, is too large or breaks off.
    async fn read_whole(&mut self, side: &mut Outgoing<I::Stream>, most: usize) -> Option<Vec<Frame>> {
        let due = self.walked.exchange.deadline().unwrap_or(Timestamp::MAX).min(self.walked.now + HOLD);
        let (local, timer) = (self.local, &mut *self.timer);
        let mut frames = Vec::new();
        let mut left = most;
        poll_fn(|context| {
            loop {
                match side.poll_frame(context, &mut local.scratch.borrow_mut()) {
                    Poll::Ready(None) => return Poll::Ready(Some(std::mem::take(&mut frames))),
                    Poll::Ready(Some(Err(_))) => return Poll::Ready(None),
                    Poll::Pending => return timer.poll(context, due).map(|()| None),
                    Poll::Ready(Some(Ok(frame))) => {
                        // Many small frames cost more than their content.
                        let cost = frame.content() + FRAME;
                        let Some(rest) = left.checked_sub(cost) else { return Poll::Ready(None) };
                        left = rest;
                        side.release(frame.content());
                        frames.push(frame);
                    }
                }
            }
        })
        .await
    }
}

/// Sends a response that lies ready, by `due`.
pub(super) async fn send_all<I: Io, C: ClientSide>(
    client: &mut C,
    timer: &mut Timer<I>,
    head: &[u8],
    frames: Vec<Frame>,
    due: Timestamp,
) -> Delivered {
    let end = if frames.is_empty() { End::Here } else { End::Later };
    if client.head(head, end).is_err() {
        return Delivered::ClientGone;
    }
    let mut rest = frames.into_iter();
    let mut hand = rest.next();
    poll_fn(|context| {
        loop {
            let end = if rest.len() == 0 { End::Here } else { End::Later };
            match client.poll_send(context, &mut hand, end) {
                Poll::Pending if client.poll_gone(context).is_ready() => {
                    return Poll::Ready(Delivered::ClientGone);
                }
                Poll::Pending => return timer.poll(context, due).map(|()| Delivered::ClientGone),
                Poll::Ready(Err(_)) => return Poll::Ready(Delivered::ClientGone),
                Poll::Ready(Ok(())) if end == End::Here => return Poll::Ready(Delivered::Whole),
                Poll::Ready(Ok(())) => hand = rest.next(),
            }
        }
    })
    .await
}

/// What a frame counts beside its content.
const FRAME: usize = 64;
