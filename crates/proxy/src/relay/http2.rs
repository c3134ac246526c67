//! A destination that is spoken to in HTTP/2: one stream of a connection that others share.

use std::task::{Context, Poll, ready};

use board::InFlight;
use bytes::Bytes;
use http1::framing::RequestFraming;
use http1::limits::HeadLimits;
use http1::request::{Parsed, RequestHead};
use http1::response::{RequestKind, ResponseHead};
use http2::error::Malformed;
use http2::request::Rest;
use http2::{request, response, trailers};
use model::address::Scheme;
use model::outcome::{AttemptEnd, FailureKind, Progress};
use upstream::h2::{self, Call, Failure, Head, Piece, Place};

use super::frame::{End, Frame};
use super::side::DestinationSide;

/// A stream to a destination, in use by one exchange.
pub(crate) struct Http2 {
    state: State,
    in_flight: InFlight,
    scheme: http::uri::Scheme,
    is_reused: bool,
    has_head: bool,
}

enum State {
    /// There is room for the stream, nothing was sent.
    Placed(Place),
    /// The request is under way.
    Called(Box<Call>),
    /// It failed before its response's head.
    Failed(Failure),
}

impl Http2 {
    /// Over this stream to be.
    pub(crate) fn new(place: Place, in_flight: InFlight, scheme: Scheme) -> Self {
        let scheme = match scheme {
            Scheme::Http => http::uri::Scheme::HTTP,
            Scheme::Https => http::uri::Scheme::HTTPS,
        };
        let is_reused = place.is_reused();
        Self { state: State::Placed(place), in_flight, scheme, is_reused, has_head: false }
    }

    /// Whether its connection carried requests before.
    pub(crate) fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Its response stood still for too long.
    pub(crate) fn timed_out(&self) {
        match &self.state {
            State::Called(call) => call.timed_out(),
            State::Placed(_) | State::Failed(_) => {}
        }
    }

    fn call(&mut self) -> Option<&mut Call> {
        match &mut self.state {
            State::Called(call) => Some(call),
            State::Placed(_) | State::Failed(_) => None,
        }
    }

    fn fail(&mut self, failure: Failure) -> FailureKind {
        self.state = State::Failed(failure);
        failure.kind
    }
}

impl DestinationSide for Http2 {
    fn head(&mut self, head: &mut Vec<u8>, framing: RequestFraming) -> Result<(), Malformed> {
        let end = if framing.has_body() { h2::End::Later } else { h2::End::Here };
        let ours = Failure { kind: FailureKind::Cancelled, progress: Progress::NotSent, was_on_wire: true };
        let State::Placed(place) = std::mem::replace(&mut self.state, State::Failed(ours)) else { return Ok(()) };
        let request = request::read(head, &mut RequestHead::default(), self.scheme.clone())?;
        self.state = match place.send(request, end) {
            Ok(call) => State::Called(Box::new(call)),
            Err(failure) => State::Failed(failure),
        };
        Ok(())
    }

    fn poll_send(&mut self, context: &mut Context<'_>, frame: &mut Option<Frame>, end: End) -> Poll<()> {
        let Some(call) = self.call() else {
            *frame = None;
            return Poll::Ready(());
        };
        let mut data = match frame.take() {
            Some(Frame::Data(data)) => data,
            Some(Frame::Trailers(fields)) => {
                call.send_trailers(fields);
                return Poll::Ready(());
            }
            None => Bytes::new(),
        };
        let end = match end {
            End::Here => h2::End::Here,
            End::Later => h2::End::Later,
        };
        let sending = call.poll_send(context, &mut data, end);
        if !data.is_empty() {
            *frame = Some(Frame::Data(data));
        }
        sending
    }

    fn is_write_broken(&self) -> bool {
        match &self.state {
            State::Placed(_) => false,
            State::Called(call) => call.is_write_broken(),
            State::Failed(_) => true,
        }
    }

    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        _scratch: &mut [u8],
        response: &mut ResponseHead,
        reply: &mut Vec<u8>,
        kind: RequestKind,
    ) -> Poll<Result<(), FailureKind>> {
        let call = match &mut self.state {
            State::Called(call) => call,
            State::Failed(failure) => return Poll::Ready(Err(failure.kind)),
            State::Placed(_) => return Poll::Pending,
        };
        let (head, is_final) = match ready!(call.poll_head(context)) {
            Ok(Head::Interim(head)) => (head, false),
            Ok(Head::Final(head)) => (head, true),
            Err(failure) => return Poll::Ready(Err(self.fail(failure))),
        };
        if head.status() == http::StatusCode::SWITCHING_PROTOCOLS {
            return Poll::Ready(Err(FailureKind::Protocol));
        }
        let rest = if is_final && call.is_over() { Rest::Nothing } else { Rest::Follows };
        self.has_head |= is_final;
        let (parts, ()) = head.into_parts();
        reply.clear();
        let written = response::write(reply, &parts, rest, kind).is_ok();
        match response.parse(reply, &HeadLimits::RESPONSE, kind) {
            Ok(Parsed::Complete) if written => Poll::Ready(Ok(())),
            Err(error) if written && error.is_size() => Poll::Ready(Err(FailureKind::HeadTooLarge)),
            Ok(Parsed::Complete | Parsed::Partial) | Err(_) => Poll::Ready(Err(FailureKind::Protocol)),
        }
    }

    fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
        _scratch: &mut [u8],
    ) -> Poll<Option<Result<Frame, FailureKind>>> {
        let Some(call) = self.call() else { return Poll::Ready(None) };
        Poll::Ready(match ready!(call.poll_piece(context)) {
            Some(Ok(Piece::Data(data))) => Some(Ok(Frame::Data(data))),
            Some(Ok(Piece::Trailers(fields))) => Some(Ok(Frame::Trailers(trailers::strip(fields)))),
            Some(Err(failure)) => Some(Err(failure)),
            None => None,
        })
    }

    fn is_over(&self) -> bool {
        match &self.state {
            State::Called(call) => self.has_head && call.is_over(),
            State::Placed(_) | State::Failed(_) => false,
        }
    }

    fn release(&mut self, bytes: usize) {
        if let Some(call) = self.call() {
            call.release(bytes);
        }
    }

    fn is_unsent(&self) -> bool {
        // The connection had ended before the request was put on it.
        match &self.state {
            State::Failed(failure) => {
                self.is_reused && !self.has_head && failure.progress == Progress::NotSent && !failure.was_on_wire
            }
            State::Placed(_) | State::Called(_) => false,
        }
    }

    fn end(&self, failure: FailureKind) -> AttemptEnd {
        let (progress, response_bytes_seen) = match &self.state {
            State::Placed(_) => (Progress::NotSent, false),
            State::Failed(known) => (known.progress, false),
            State::Called(call) => {
                if matches!(failure, FailureKind::HeadTimeout | FailureKind::TryTimeout) {
                    call.timed_out();
                }
                (Progress::Sent, call.has_answered())
            }
        };
        AttemptEnd {
            progress,
            failure: Some(failure),
            status: None,
            call: None,
            retry_after: false,
            response_bytes_seen,
            client_gone: failure == FailureKind::ClientGone,
            reused: self.is_reused,
        }
    }

    fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }

    fn moved(&self) -> u64 {
        match &self.state {
            State::Called(call) => call.moved(),
            State::Placed(_) | State::Failed(_) => 0,
        }
    }
}
