//! The request's body on its way to the destination.
//!
//! ```text
//!   client ──read──> tracker (framing, limit) ──> window ──write──> destination
//!                                                   │
//!                     up to `replay` bytes it keeps all, so that the body can be sent once more;
//!                     beyond that it is emptied each time it was sent (Replay::Lost)
//! ```
//! The client is read only when the window is sent: a slow destination slows the client down, and memory stays bounded.

use std::task::{Context, Poll, ready};

use exchange::Replay;
use http1::body::{Body, BodyError};
use http1::request::Request;
use io::Io;

use crate::client::Client;
use crate::drive::BodyBounds;
use crate::leg::Leg;
use crate::transfer::poll_read;

/// State of one request's body.
pub(crate) struct Upload {
    tracker: Body,
    /// Bytes of the window that the running attempt has sent.
    sent: usize,
    has_dropped: bool,
    replay: usize,
    /// Bytes of content so far, and how many there may be.
    content: u64,
    most: Option<u64>,
    expectation: Wish,
    /// Content that was read and bytes that were sent, together: it stands still when nothing moves, and when framing
    /// alone trickles in.
    moved: u64,
    /// Whether content lies among the bytes that are still to be sent.
    owes_content: bool,
}

/// Where an `Expect: 100-continue` stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The client expects nothing (any more).
    None,
    /// It waits for a 100.
    Pending,
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
    /// The client broke the framing.
    Fault(BodyError),
    /// The client sends more than it may.
    TooLarge,
}

impl Upload {
    /// For a request whose head was parsed.
    pub(crate) fn new(request: &Request<'_>, bounds: BodyBounds) -> Self {
        Self {
            tracker: Body::of_request(request.framing()),
            sent: 0,
            has_dropped: false,
            replay: usize::try_from(bounds.replay).unwrap_or(usize::MAX),
            content: 0,
            most: bounds.most,
            expectation: if request.expects_continue() { Wish::Pending } else { Wish::None },
            moved: 0,
            owes_content: false,
        }
    }

    /// Whether the request has been read to its end.
    pub(crate) fn is_read(&self) -> bool {
        self.tracker.is_done()
    }

    /// Whether all of it was sent.
    pub(crate) fn is_sent(&self, window: &[u8]) -> bool {
        self.tracker.is_done() && self.sent == window.len()
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

    /// A number that changes whenever the body gets on.
    pub(crate) fn moved(&self) -> u64 {
        self.moved
    }

    /// A new attempt begins: what the window holds is sent again. Appends the beginning of it to the head, as far as it
    /// is small, so that both leave in one packet.
    pub(crate) fn rewind(&mut self, window: &[u8], out: &mut Vec<u8>) {
        let first = window.get(..window.len().min(WITH_HEAD)).unwrap_or_default();
        out.extend_from_slice(first);
        self.sent = first.len();
        self.owes_content = self.sent < window.len();
    }

    /// Takes into the window what the client has sent already, without reading.
    pub(crate) fn take_ahead(&mut self, window: &mut Vec<u8>, input: &mut Vec<u8>) -> Result<(), Moved> {
        if input.is_empty() || self.tracker.is_done() {
            return Ok(());
        }
        self.expectation = Wish::None;
        let bytes = std::mem::take(input);
        let taken = self.feed(window, &bytes)?;
        *input = bytes;
        input.drain(..taken);
        Ok(())
    }

    /// Moves as much as can be moved now.
    #[inline]
    pub(crate) fn poll_move<I: Io>(
        &mut self,
        context: &mut Context<'_>,
        client: &mut Client<I>,
        leg: &mut Leg<I::Stream>,
        window: &mut Vec<u8>,
        scratch: &mut [u8],
    ) -> Moved {
        // Most requests left whole with their heads.
        if self.is_sent(window) && !leg.is_unflushed {
            return Moved::Over;
        }
        self.poll_move_rest(context, client, leg, window, scratch)
    }

    fn poll_move_rest<I: Io>(
        &mut self,
        context: &mut Context<'_>,
        client: &mut Client<I>,
        leg: &mut Leg<I::Stream>,
        window: &mut Vec<u8>,
        scratch: &mut [u8],
    ) -> Moved {
        loop {
            let before = self.sent;
            let sending = leg.poll_send(context, window, &mut self.sent);
            if self.owes_content {
                self.moved += (self.sent - before) as u64;
            }
            if sending.is_pending() {
                return Moved::ByDestination;
            }
            self.owes_content = false;
            if leg.is_write_broken || self.tracker.is_done() {
                return Moved::Over;
            }
            if let Err(end) = self.take_ahead(window, &mut client.input) {
                return end;
            }
            if self.sent < window.len() || self.tracker.is_done() {
                continue;
            }
            match self.poll_take(context, client, window, scratch) {
                Poll::Pending => return Moved::ByClient,
                Poll::Ready(Err(end)) => return end,
                Poll::Ready(Ok(())) => {}
            }
        }
    }

    /// Reads the body to its end into the window, sending nothing: [`Moved::Over`].
    pub(crate) fn poll_gather<I: Io>(
        &mut self,
        context: &mut Context<'_>,
        client: &mut Client<I>,
        window: &mut Vec<u8>,
        scratch: &mut [u8],
    ) -> Moved {
        loop {
            if let Err(end) = self.take_ahead(window, &mut client.input) {
                return end;
            }
            if self.tracker.is_done() {
                return Moved::Over;
            }
            match self.poll_take(context, client, window, scratch) {
                Poll::Pending => return Moved::ByClient,
                Poll::Ready(Err(end)) => return end,
                Poll::Ready(Ok(())) => {}
            }
        }
    }

    /// Reads once.
    fn poll_take<I: Io>(
        &mut self,
        context: &mut Context<'_>,
        client: &mut Client<I>,
        window: &mut Vec<u8>,
        scratch: &mut [u8],
    ) -> Poll<Result<(), Moved>> {
        match ready!(poll_read(&mut client.stream, context, scratch)) {
            Ok([]) | Err(_) => Poll::Ready(Err(Moved::ClientGone)),
            Ok(bytes) => {
                self.expectation = Wish::None;
                let taken = self.feed(window, bytes)?;
                client.input.extend_from_slice(bytes.get(taken..).unwrap_or_default());
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Takes what belongs to the body into the window; the number of bytes taken.
    fn feed(&mut self, window: &mut Vec<u8>, bytes: &[u8]) -> Result<usize, Moved> {
        let advance = self.tracker.advance(bytes).map_err(Moved::Fault)?;
        self.content += advance.content;
        self.moved += advance.content;
        self.owes_content |= advance.content > 0;
        if self.most.is_some_and(|most| self.content > most) {
            return Err(Moved::TooLarge);
        }
        let is_full = window.len() + advance.taken > self.replay;
        if self.sent > 0 && self.sent == window.len() && (self.has_dropped || is_full) {
            self.has_dropped = true;
            window.clear();
            self.sent = 0;
        }
        window.extend_from_slice(bytes.get(..advance.taken).unwrap_or_default());
        Ok(advance.taken)
    }
}

/// Heads and bodies that are small together are copied together: one system call, one packet.
const WITH_HEAD: usize = 16 * 1024;
