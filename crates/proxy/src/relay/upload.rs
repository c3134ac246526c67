//! The request's body on its way to the destination, and what of it is kept for another attempt.
//!
//! ```text
//!   ClientSide ── poll_frame ──> limit ──> one frame in hand ── poll_send ──> DestinationSide
//!                                   │            ^
//!                                   └──> kept ───┘ sent again by the next attempt
//! ```
//! What is kept is a copy, not the frame: a frame may hold on to a buffer far larger than itself. A copy of more than
//! `replay` bytes is dropped when the next frame is asked for, which is when everything before has left; so a request
//! of which nothing was sent can always be sent elsewhere. Memory: `replay` bytes and two frames.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use exchange::Replay;
use http::HeaderMap;
use http1::body::BodyError;
use http1::request::Request;
use http2::error::Malformed;

use super::frame::{End, Frame};
use super::side::{BodyFault, ClientSide, DestinationSide};
use crate::drive::BodyBounds;
use crate::upload::Wish;

/// State of one request's body.
pub(crate) struct Upload {
    /// To be sent next; a part of it may have left.
    hand: Option<Frame>,
    /// Of the frame in hand the client still has to get back so much room.
    owed: usize,
    /// All content so far, for another attempt.
    kept: Vec<u8>,
    trailers: Option<HeaderMap>,
    /// Of `trailers` the running attempt has still to be told.
    owes_trailers: bool,
    has_dropped: bool,
    replay: usize,
    /// The client has said that its body is over.
    is_read: bool,
    /// The destination has been told the same.
    is_sent: bool,
    content: u64,
    most: Option<u64>,
    expectation: Wish,
    moved: u64,
}

/// What moving the body came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// All of it was sent, or the destination takes no more.
    Over,
    /// The client is to send more.
    ByClient,
    /// The destination is to take more.
    ByDestination,
    /// The client went away in the middle.
    ClientGone,
    /// The client is at fault.
    Fault(Fault),
}

/// What a client does wrong that shows only when its request is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Broken framing, or trailers that must not be.
    Framing(BodyError),
    /// More than it may send.
    TooLarge,
    /// Nothing for too long.
    Stalled,
    /// What it asks for has no form in the destination's version.
    Head(Malformed),
    /// It asked for a tunnel where the destination answers like any other request.
    NoTunnel,
    /// Its side ended the exchange: no answer gets there.
    Unanswerable,
}

impl Upload {
    /// For a request whose head was parsed. `most`: longest body; `replay`: bytes that are kept.
    pub(crate) fn new(request: &Request<'_>, bounds: BodyBounds) -> Self {
        Self {
            hand: None,
            owed: 0,
            kept: Vec::new(),
            trailers: None,
            owes_trailers: false,
            has_dropped: false,
            replay: usize::try_from(bounds.replay).unwrap_or(usize::MAX),
            is_read: !request.framing().has_body(),
            is_sent: false,
            content: 0,
            most: bounds.most,
            expectation: if request.expects_continue() { Wish::Pending } else { Wish::None },
            moved: 0,
        }
    }

    /// Whether all of it was sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.is_sent
    }

    /// Whether the body can be sent once more.
    pub(crate) fn replayable(&self) -> Replay {
        if self.has_dropped { Replay::Lost } else { Replay::Possible }
    }

    /// The client's expectation.
    pub(crate) fn expectation(&self) -> Wish {
        self.expectation
    }

    /// The client has had its 100.
    pub(crate) fn fulfil(&mut self) {
        self.expectation = Wish::None;
    }

    /// Bytes of content that were read.
    pub(crate) fn content(&self) -> u64 {
        self.content
    }

    /// A number that changes whenever a frame comes from the client.
    pub(crate) fn moved(&self) -> u64 {
        self.moved
    }

    /// A new attempt begins: what is kept is sent again.
    pub(crate) fn rewind(&mut self, client: &mut impl ClientSide) {
        client.release(std::mem::take(&mut self.owed));
        self.hand = (!self.kept.is_empty()).then(|| Frame::Data(Bytes::copy_from_slice(&self.kept)));
        self.owes_trailers = self.trailers.is_some();
        self.is_sent = false;
    }

    /// Moves as much as can be moved now.
    pub(crate) fn poll_move(
        &mut self,
        context: &mut Context<'_>,
        client: &mut impl ClientSide,
        destination: &mut impl DestinationSide,
    ) -> Moved {
        loop {
            if self.hand.is_none() && self.owes_trailers {
                self.hand = self.trailers.clone().map(Frame::Trailers);
                self.owes_trailers = false;
            }
            let end = if self.is_read && !self.owes_trailers { End::Here } else { End::Later };
            let sending = destination.poll_send(context, &mut self.hand, end);
            self.give_back(client);
            if sending.is_pending() {
                return Moved::ByDestination;
            }
            if destination.is_write_broken() {
                return Moved::Over;
            }
            if self.hand.is_some() || self.owes_trailers {
                continue;
            }
            if self.is_read {
                self.is_sent = true;
                return Moved::Over;
            }
            match self.poll_take(context, client) {
                Poll::Pending => return Moved::ByClient,
                Poll::Ready(Err(end)) => return end,
                Poll::Ready(Ok(())) => {}
            }
        }
    }

    /// Reads the body of `length` bytes to its end, sending nothing: [`Moved::Over`]. All of it is kept.
    pub(crate) fn poll_gather(
        &mut self,
        context: &mut Context<'_>,
        client: &mut impl ClientSide,
        length: usize,
    ) -> Moved {
        self.replay = self.replay.max(length);
        while !self.is_read {
            match self.poll_take(context, client) {
                Poll::Pending => return Moved::ByClient,
                Poll::Ready(Err(end)) => return end,
                Poll::Ready(Ok(())) => {}
            }
            // The copy that is kept goes out, with each attempt.
            self.hand = None;
            self.give_back(client);
        }
        Moved::Over
    }

    /// Takes one frame, or the body's end.
    fn poll_take(&mut self, context: &mut Context<'_>, client: &mut impl ClientSide) -> Poll<Result<(), Moved>> {
        Poll::Ready(match ready!(client.poll_frame(context)) {
            None => {
                self.is_read = true;
                Ok(())
            }
            Some(Ok(frame)) => self.take(frame).map_err(Moved::Fault),
            Some(Err(BodyFault::Gone)) => Err(Moved::ClientGone),
            Some(Err(BodyFault::Framing(error))) => Err(Moved::Fault(Fault::Framing(error))),
            Some(Err(BodyFault::Broken)) => Err(Moved::Fault(Fault::Unanswerable)),
        })
    }

    /// The client gets room for what has left our hand.
    fn give_back(&mut self, client: &mut impl ClientSide) {
        let held = self.hand.as_ref().map_or(0, Frame::content);
        let taken = self.owed.saturating_sub(held);
        if taken > 0 {
            client.release(taken);
            self.owed -= taken;
        }
    }

    fn take(&mut self, frame: Frame) -> Result<(), Fault> {
        self.expectation = Wish::None;
        self.moved += 1;
        self.owed = frame.content();
        self.content += self.owed as u64;
        if self.most.is_some_and(|most| self.content > most) {
            return Err(Fault::TooLarge);
        }
        if self.kept.len() > self.replay {
            self.has_dropped = true;
            self.kept = Vec::new();
        }
        match &frame {
            Frame::Data(bytes) if !self.has_dropped => self.kept.extend_from_slice(bytes),
            Frame::Data(_) => {}
            Frame::Trailers(fields) => {
                self.trailers = Some(fields.clone());
                self.is_read = true;
            }
        }
        self.hand = Some(frame);
        Ok(())
    }
}
