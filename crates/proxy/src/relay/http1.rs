//! A destination that is spoken to in HTTP/1.1: adds and takes off the framing of bodies (RFC 9112 6, 7).

use std::io::Write as _;
use std::task::{Context, Poll, ready};

use board::InFlight;
use bytes::{Bytes, BytesMut};
use http1::body::{Body, Piece};
use http1::framing::RequestFraming;
use http1::limits::HeadLimits;
use http1::request::Parsed;
use http1::response::{RequestKind, ResponseHead};
use http2::error::Malformed;
use http2::trailers;
use model::outcome::{AttemptEnd, FailureKind};

use super::frame::{End, Frame};
use super::side::DestinationSide;
use crate::leg::{Leg, Origin};
use crate::transfer::poll_read;

/// An HTTP/1.1 connection to a destination, in use by one exchange.
pub(crate) struct Http1<S> {
    leg: Leg<S>,
    framing: RequestFraming,
    /// Head and framed body, as far as they were taken; `sent` of them have left.
    out: Vec<u8>,
    sent: usize,
    has_ended: bool,
    /// Read behind an interim head, or behind a fault in a body.
    input: Vec<u8>,
    /// Content that came together with the head.
    ahead: Option<Bytes>,
    body: Body,
    has_head: bool,
    /// A head was begun.
    is_partial: bool,
    /// The trailer section, as far as it was read and not handed out.
    trailers: Vec<u8>,
    has_surplus: bool,
    /// The longest read of the body that comes next.
    window: usize,
    moved: u64,
}

impl<S: ::io::Stream> Http1<S> {
    /// Over this connection.
    pub(crate) fn new(leg: Leg<S>) -> Self {
        Self {
            leg,
            framing: RequestFraming::None,
            out: Vec::new(),
            sent: 0,
            has_ended: false,
            input: Vec::new(),
            ahead: None,
            body: Body::none(),
            has_head: false,
            is_partial: false,
            trailers: Vec::new(),
            has_surplus: false,
            window: FIRST_READ,
            moved: 0,
        }
    }

    /// The memory that the head brought, for the next one. What is not sent is lost.
    pub(crate) fn take_memory(&mut self) -> Vec<u8> {
        if self.sent < self.out.len() {
            self.leg.is_write_broken = true;
        }
        self.sent = 0;
        let mut memory = std::mem::take(&mut self.out);
        memory.clear();
        memory
    }

    /// The connection, when both messages went over it whole and nothing else did.
    pub(crate) fn into_clean(self) -> Option<Leg<S>> {
        let is_request_sent = self.has_ended && self.sent == self.out.len() && !self.leg.is_write_broken;
        let is_taken = self.input.is_empty() && self.ahead.is_none();
        let is_response_read = self.has_head && self.body.is_done() && !self.has_surplus && is_taken;
        (is_request_sent && is_response_read).then_some(self.leg)
    }

    /// The connection and what was read behind its head: for a tunnel.
    pub(crate) fn into_parts(self) -> (Leg<S>, Vec<u8>) {
        (self.leg, self.input)
    }

    /// Adds a frame in its framing.
    fn encode(&mut self, frame: Frame) {
        match (frame, self.framing) {
            (Frame::Data(bytes), RequestFraming::Chunked) => {
                if !bytes.is_empty() {
                    // Writing to memory does not fail.
                    let _ = write!(self.out, "{:x}\r\n", bytes.len());
                    self.out.extend_from_slice(&bytes);
                    self.out.extend_from_slice(b"\r\n");
                }
            }
            (Frame::Data(bytes), RequestFraming::Length(_)) => self.out.extend_from_slice(&bytes),
            (Frame::Trailers(fields), RequestFraming::Chunked) => {
                self.out.extend_from_slice(b"0\r\n");
                trailers::write(&mut self.out, &fields);
                self.out.extend_from_slice(b"\r\n");
                self.has_ended = true;
            }
            // A body of known length has no place for them: RFC 9110 6.5.1 lets them go.
            (Frame::Trailers(_), RequestFraming::Length(_) | RequestFraming::None)
            | (Frame::Data(_), RequestFraming::None) => {}
        }
    }

    fn encode_end(&mut self) {
        if !self.has_ended && self.framing == RequestFraming::Chunked {
            self.out.extend_from_slice(b"0\r\n\r\n");
        }
        self.has_ended = true;
    }

    /// Takes the content out of `bytes`; trailers are kept. Nothing: it was framing alone.
    fn decode(&mut self, bytes: &[u8]) -> Result<Option<Bytes>, FailureKind> {
        let mut content = BytesMut::new();
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if self.body.is_done() {
                self.has_surplus = true;
                break;
            }
            let is_trailer = self.body.is_in_trailers();
            match self.body.piece(rest) {
                // Nearly always: all of it is content.
                Ok(Piece::Content(run)) if run == bytes.len() => return Ok(Some(Bytes::copy_from_slice(bytes))),
                Ok(Piece::Content(run)) => {
                    if content.is_empty() {
                        content.reserve(rest.len());
                    }
                    content.extend_from_slice(rest.get(..run).unwrap_or_default());
                    at += run;
                }
                Ok(Piece::Framing(run)) => {
                    if is_trailer {
                        self.trailers.extend_from_slice(rest.get(..run).unwrap_or_default());
                    }
                    at += run;
                }
                Err(_) if content.is_empty() => return Err(FailureKind::BodyCut),
                // Good bytes go on; the tracker tells the fault once more.
                Err(_) => {
                    self.input = rest.to_vec();
                    break;
                }
            }
        }
        Ok((!content.is_empty()).then(|| content.freeze()))
    }

    /// What came behind a head: bytes of another head, or of the body.
    fn take_rest(&mut self, rest: &[u8]) {
        if !self.has_head {
            self.input.extend_from_slice(rest);
        } else if !rest.is_empty() {
            match self.decode(rest) {
                Ok(content) => self.ahead = content,
                // Told when it is read.
                Err(_) => self.input = rest.to_vec(),
            }
        }
    }

    fn take_trailers(&mut self) -> Option<Result<Frame, FailureKind>> {
        let section = std::mem::take(&mut self.trailers);
        match trailers::read(&section) {
            Ok(fields) if fields.is_empty() => None,
            Ok(fields) => Some(Ok(Frame::Trailers(fields))),
            Err(_) => Some(Err(FailureKind::BodyCut)),
        }
    }
}

impl<S: ::io::Stream> DestinationSide for Http1<S> {
    fn head(&mut self, head: &mut Vec<u8>, framing: RequestFraming) -> Result<(), Malformed> {
        self.out = std::mem::take(head);
        self.framing = framing;
        self.has_ended = !framing.has_body();
        Ok(())
    }

    fn poll_send(&mut self, context: &mut Context<'_>, frame: &mut Option<Frame>, end: End) -> Poll<()> {
        // What is small leaves together with the head or the frame before it.
        if self.out.len() - self.sent <= TOGETHER {
            if let Some(frame) = frame.take() {
                self.encode(frame);
            }
            if end == End::Here {
                self.encode_end();
            }
        }
        let before = self.sent;
        let sending = self.leg.poll_send(context, &self.out, &mut self.sent);
        self.moved += (self.sent - before) as u64;
        ready!(sending);
        self.out.clear();
        self.sent = 0;
        if self.leg.is_write_broken || (frame.is_none() && (end == End::Later || self.has_ended)) {
            return Poll::Ready(());
        }
        // Everything has left, so the rest is taken now.
        self.poll_send(context, frame, end)
    }

    fn is_write_broken(&self) -> bool {
        self.leg.is_write_broken
    }

    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        scratch: &mut [u8],
        response: &mut ResponseHead,
        reply: &mut Vec<u8>,
        kind: RequestKind,
    ) -> Poll<Result<(), FailureKind>> {
        if !self.is_partial {
            reply.clear();
            reply.append(&mut self.input);
            self.is_partial = true;
        }
        loop {
            if !reply.is_empty() {
                match response.parse(reply, &HeadLimits::RESPONSE, kind) {
                    Ok(Parsed::Partial) => {}
                    Err(error) if error.is_size() => return Poll::Ready(Err(FailureKind::HeadTooLarge)),
                    Err(_) => return Poll::Ready(Err(FailureKind::Protocol)),
                    Ok(Parsed::Complete) => {
                        if !response.is_interim() {
                            self.has_head = true;
                            self.body = Body::of_response(response.framing());
                        }
                        self.take_rest(reply.get(response.len()..).unwrap_or_default());
                        reply.truncate(response.len());
                        self.is_partial = false;
                        return Poll::Ready(Ok(()));
                    }
                }
            }
            let window = scratch.len().min(FIRST_READ);
            let scratch = scratch.get_mut(..window).unwrap_or_default();
            match ready!(poll_read(&mut self.leg.stream, context, scratch)) {
                Ok([]) => return Poll::Ready(Err(FailureKind::Closed)),
                Err(_) => return Poll::Ready(Err(FailureKind::Reset)),
                Ok(bytes) => {
                    self.leg.has_answered = true;
                    self.moved += bytes.len() as u64;
                    reply.extend_from_slice(bytes);
                }
            }
        }
    }

    fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
        scratch: &mut [u8],
    ) -> Poll<Option<Result<Frame, FailureKind>>> {
        if let Some(content) = self.ahead.take() {
            return Poll::Ready(Some(Ok(Frame::Data(content))));
        }
        loop {
            if !self.input.is_empty() && !self.body.is_done() {
                let bytes = std::mem::take(&mut self.input);
                match self.decode(&bytes) {
                    Ok(Some(content)) => return Poll::Ready(Some(Ok(Frame::Data(content)))),
                    Ok(None) => {}
                    Err(failure) => return Poll::Ready(Some(Err(failure))),
                }
            }
            if self.body.is_done() {
                return Poll::Ready(self.take_trailers());
            }
            let window = scratch.len().min(self.window);
            let read = ready!(poll_read(&mut self.leg.stream, context, scratch.get_mut(..window).unwrap_or_default()));
            match read {
                Ok([]) if self.body.end_of_input().is_ok() => {}
                Ok([]) | Err(_) => return Poll::Ready(Some(Err(FailureKind::BodyCut))),
                Ok(bytes) => {
                    // The next one is asked for when this was taken.
                    self.window = READ.min(self.window * 2);
                    self.moved += bytes.len() as u64;
                    match self.decode(bytes) {
                        Ok(Some(content)) => return Poll::Ready(Some(Ok(Frame::Data(content)))),
                        Ok(None) => {}
                        Err(failure) => return Poll::Ready(Some(Err(failure))),
                    }
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.has_head && self.body.is_done() && self.ahead.is_none() && self.trailers.len() <= NO_TRAILERS
    }

    fn release(&mut self, _: usize) {
        // TCP has its own window: what is not read is not sent.
    }

    fn is_unsent(&self) -> bool {
        self.leg.is_write_broken && !self.leg.has_sent && self.leg.origin == Origin::Reused
    }

    fn end(&self, failure: FailureKind) -> AttemptEnd {
        self.leg.end(failure)
    }

    fn in_flight(&self) -> &InFlight {
        &self.leg.in_flight
    }

    fn moved(&self) -> u64 {
        self.moved
    }
}

/// So much may wait to leave before more is taken: heads and bodies that are small together go in one packet.
const TOGETHER: usize = 16 * 1024;
/// The longest read of a body, and so the longest frame.
const READ: usize = 64 * 1024;
/// The first one, and the reads of a head: so much is kept of a response whose client takes nothing at all.
const FIRST_READ: usize = 16 * 1024;
/// A trailer section of the empty line alone.
const NO_TRAILERS: usize = 2;
