//! A client that speaks HTTP/1.1, for an exchange whose destination may not: takes off and adds the framing of bodies
//! (RFC 9112 6, 7). What becomes of its connection is said by [`Incoming::after`].

use std::cell::RefCell;
use std::io::Write as _;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http1::body::{Body, BodyError, Piece};
use http1::connection::{Persistence, Version};
use http1::framing::{RequestFraming, ResponseFraming};
use http1::limits::HeadLimits;
use http1::request::Parsed;
use http1::response::{RequestKind, Response, ResponseHead};
use http2::trailers;
use io::Io;
use model::time::Timestamp;

use super::frame::{End, Frame};
use super::side::{Abort, BodyFault, ClientSide, Duplex, Gone};
use crate::access_log::Protocol;
use crate::client::Client;
use crate::transfer::poll_read;
use crate::turn::After;

/// An HTTP/1.1 client during one exchange.
pub(crate) struct Incoming<'a, I: Io> {
    client: &'a mut Client<I>,
    scratch: &'a RefCell<Vec<u8>>,
    request: Body,
    /// The request's trailer section, as far as it was read and not handed out.
    trailers: Vec<u8>,
    kind: RequestKind,
    version: Version,
    /// Whether the connection may go on, by the client's word and by ours.
    persistence: Persistence,
    framing: ResponseFraming,
    /// Towards the client; `sent` of it have left.
    out: Vec<u8>,
    sent: usize,
    before: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No final head was sent.
    Silent,
    /// The response goes on.
    Answering,
    /// It is whole.
    Over,
    /// It is not whole, and the client shall see it.
    Cut,
    /// The client is gone.
    Gone,
}

/// What of the request decides on the form of its answer.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    pub(crate) framing: RequestFraming,
    pub(crate) kind: RequestKind,
    pub(crate) version: Version,
    /// Whether the connection may go on afterwards.
    pub(crate) persistence: Persistence,
}

impl<'a, I: Io> Incoming<'a, I> {
    /// For a request whose head was read; what follows it lies in `client.input` or is still to come.
    pub(crate) fn new(client: &'a mut Client<I>, scratch: &'a RefCell<Vec<u8>>, form: Form) -> Self {
        let before = client.sent;
        Self {
            client,
            scratch,
            request: Body::of_request(form.framing),
            trailers: Vec::new(),
            kind: form.kind,
            version: form.version,
            persistence: form.persistence,
            framing: ResponseFraming::None,
            out: Vec::new(),
            sent: 0,
            before,
            state: State::Silent,
        }
    }

    /// What becomes of the connection.
    pub(crate) fn after(self, now: Timestamp) -> After {
        match (self.state, self.framing) {
            (State::Over, _) if self.persistence == Persistence::KeepAlive => After::KeepAlive(now),
            (State::Over, _) if self.request.is_done() && self.client.input.is_empty() => After::Close,
            (State::Over, _) => After::Linger,
            (State::Cut, ResponseFraming::Close) => After::Reset,
            (State::Silent | State::Answering | State::Cut | State::Gone, _) => After::Close,
        }
    }

    /// Takes the content out of what was read.
    fn decode(&mut self) -> Result<Option<Bytes>, BodyError> {
        let mut content = BytesMut::new();
        let mut at = 0;
        while let Some(rest) = self.client.input.get(at..).filter(|rest| !rest.is_empty()) {
            if self.request.is_done() || content.len() >= FRAME {
                break;
            }
            let is_trailer = self.request.is_in_trailers();
            match self.request.piece(rest)? {
                Piece::Content(run) => {
                    content.extend_from_slice(rest.get(..run).unwrap_or_default());
                    at += run;
                }
                Piece::Framing(run) => {
                    if is_trailer {
                        self.trailers.extend_from_slice(rest.get(..run).unwrap_or_default());
                    }
                    at += run;
                }
            }
        }
        self.client.input.drain(..at);
        Ok((!content.is_empty()).then(|| content.freeze()))
    }

    fn take_trailers(&mut self) -> Option<Result<Frame, BodyFault>> {
        let section = std::mem::take(&mut self.trailers);
        match trailers::read(&section) {
            Ok(fields) if fields.is_empty() => None,
            Ok(fields) => Some(Ok(Frame::Trailers(fields))),
            Err(error) => Some(Err(BodyFault::Framing(error))),
        }
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Gone>> {
        let flushed = ready!(self.client.poll_send(context, &self.out, &mut self.sent));
        self.out.clear();
        self.sent = 0;
        Poll::Ready(flushed.map_err(|_| self.gone()))
    }

    fn gone(&mut self) -> Gone {
        self.state = State::Gone;
        Gone
    }

    fn encode(&mut self, frame: Frame) {
        match (frame, self.framing) {
            (Frame::Data(bytes), ResponseFraming::Chunked) => {
                if !bytes.is_empty() {
                    // Writing to memory does not fail.
                    let _ = write!(self.out, "{:x}\r\n", bytes.len());
                    self.out.extend_from_slice(&bytes);
                    self.out.extend_from_slice(b"\r\n");
                }
            }
            (Frame::Data(bytes), ResponseFraming::Length(_) | ResponseFraming::Close) => {
                self.out.extend_from_slice(&bytes);
            }
            (Frame::Trailers(fields), ResponseFraming::Chunked) => {
                self.out.extend_from_slice(b"0\r\n");
                trailers::write(&mut self.out, &fields);
                self.out.extend_from_slice(b"\r\n");
                self.state = State::Over;
            }
            // Such a body has no place for them (RFC 9110 6.5.1).
            (Frame::Trailers(_), ResponseFraming::Length(_) | ResponseFraming::Close | ResponseFraming::None)
            | (Frame::Data(_), ResponseFraming::None) => {}
        }
    }

    fn encode_end(&mut self) {
        if self.state == State::Answering {
            if self.framing == ResponseFraming::Chunked {
                self.out.extend_from_slice(b"0\r\n\r\n");
            }
            self.state = State::Over;
        }
    }
}

impl<I: Io> ClientSide for Incoming<'_, I> {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame, BodyFault>>> {
        if !self.out.is_empty() && self.poll_flush(context).map(|sent| sent.is_err()) == Poll::Ready(true) {
            return Poll::Ready(Some(Err(BodyFault::Gone)));
        }
        loop {
            if self.request.is_done() {
                return Poll::Ready(self.take_trailers());
            }
            if !self.client.input.is_empty() {
                match self.decode() {
                    Ok(Some(content)) => return Poll::Ready(Some(Ok(Frame::Data(content)))),
                    Ok(None) => continue,
                    Err(error) => return Poll::Ready(Some(Err(BodyFault::Framing(error)))),
                }
            }
            let mut scratch = self.scratch.borrow_mut();
            let window = scratch.len().min(FRAME);
            let window = scratch.get_mut(..window).unwrap_or_default();
            match ready!(poll_read(&mut self.client.stream, context, window)) {
                Ok([]) | Err(_) => {
                    self.state = State::Gone;
                    return Poll::Ready(Some(Err(BodyFault::Gone)));
                }
                Ok(bytes) => self.client.input.extend_from_slice(bytes),
            }
        }
    }

    fn release(&mut self, _: usize) {
        // TCP has its own window: what is not read is not sent.
    }

    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.out.is_empty() && self.poll_flush(context).map(|sent| sent.is_err()) == Poll::Ready(true) {
            return Poll::Ready(());
        }
        let gone = self.client.poll_gone(context, &mut self.scratch.borrow_mut());
        if gone.is_ready() {
            self.state = State::Gone;
        }
        gone
    }

    fn interim(&mut self, head: &[u8]) {
        // HTTP/1.0 knows none (RFC 9110 15.2).
        if self.version == Version::Http11 && self.out.len() < INTERIM {
            self.out.extend_from_slice(head);
        }
    }

    fn head(&mut self, head: &[u8], end: End) -> Result<(), Gone> {
        let mut parser = ResponseHead::default();
        let is_read = parser.parse(head, &HeadLimits::RESPONSE, self.kind) == Ok(Parsed::Complete);
        self.framing = if is_read { parser.framing() } else { ResponseFraming::Close };
        let is_decoded = self.framing == ResponseFraming::Chunked && self.version == Version::Http10;
        if is_decoded {
            self.framing = ResponseFraming::Close;
        }
        // What the client still sends would be taken for its next request.
        if self.framing == ResponseFraming::Close || self.version == Version::Http10 || !self.request.is_done() {
            self.persistence = Persistence::Close;
        }
        for line in head.strip_suffix(b"\r\n").unwrap_or(head).split_inclusive(|&byte| byte == b'\n') {
            let is_coding = line.len() > CODING.len()
                && line.get(..CODING.len()).is_some_and(|name| name.eq_ignore_ascii_case(CODING));
            if !(is_decoded && is_coding) {
                self.out.extend_from_slice(line);
            }
        }
        if self.persistence == Persistence::Close {
            self.out.extend_from_slice(b"Connection: close\r\n");
        }
        self.out.extend_from_slice(b"\r\n");
        self.state = State::Answering;
        if end == End::Here {
            self.encode_end();
        }
        Ok(())
    }

    fn poll_send(&mut self, context: &mut Context<'_>, frame: &mut Option<Frame>, end: End) -> Poll<Result<(), Gone>> {
        loop {
            // What is small leaves together with the head or the frame before it.
            if self.out.len() - self.sent <= TOGETHER {
                if let Some(frame) = frame.take() {
                    self.encode(frame);
                }
                if end == End::Here {
                    self.encode_end();
                }
            }
            match ready!(self.poll_flush(context)) {
                Err(gone) => return Poll::Ready(Err(gone)),
                Ok(()) if frame.is_none() && (end == End::Later || self.state == State::Over) => {
                    return Poll::Ready(Ok(()));
                }
                Ok(()) => {}
            }
        }
    }

    fn abort(&mut self, why: Abort) {
        match why {
            Abort::Cut | Abort::CallOver(..) => self.state = State::Cut,
        }
    }

    fn sent(&self) -> u64 {
        self.client.sent - self.before
    }

    fn protocol(&self) -> Protocol {
        Protocol::Http1
    }

    /// What offers a switch goes the way of [`crate::turn`] where HTTP/1.1 is spoken; HTTP/2 has no 101 (RFC 9113 8.6).
    fn takes_response(&self, _: u16) -> bool {
        true
    }

    fn takes_switch(&self, _: &Response<'_>) -> bool {
        false
    }

    fn switch(&mut self, _: &[u8]) -> Result<&mut dyn Duplex, Gone> {
        Err(Gone)
    }
}

const CODING: &[u8] = b"transfer-encoding:";
/// So much may wait to leave before more is taken.
const TOGETHER: usize = 16 * 1024;
/// The longest frame.
const FRAME: usize = 64 * 1024;
/// Interim responses that a client does not take are dropped beyond this.
const INTERIM: usize = 64 * 1024;
