//! The destination's side of one attempt, whichever version it speaks.

use std::task::{Context, Poll};

use board::InFlight;
use http1::framing::RequestFraming;
use http1::response::{RequestKind, ResponseHead};
use http2::error::Malformed;
use model::outcome::{AttemptEnd, FailureKind};

use super::frame::{End, Frame};
use super::http1::Http1;
use super::http2::Http2;
use super::side::DestinationSide;

/// One of the versions. Not boxed: exchanges sit in memory that is used again, and a box would be allocated for each.
pub(crate) enum Outgoing<S> {
    /// HTTP/1.1.
    Http1(Http1<S>),
    /// HTTP/2.
    Http2(Http2),
}

impl<S: ::io::Stream> DestinationSide for Outgoing<S> {
    fn head(&mut self, head: &mut Vec<u8>, framing: RequestFraming) -> Result<(), Malformed> {
        match self {
            Self::Http1(side) => side.head(head, framing),
            Self::Http2(side) => side.head(head, framing),
        }
    }

    fn poll_send(&mut self, context: &mut Context<'_>, frame: &mut Option<Frame>, end: End) -> Poll<()> {
        match self {
            Self::Http1(side) => side.poll_send(context, frame, end),
            Self::Http2(side) => side.poll_send(context, frame, end),
        }
    }

    fn is_write_broken(&self) -> bool {
        match self {
            Self::Http1(side) => side.is_write_broken(),
            Self::Http2(side) => side.is_write_broken(),
        }
    }

    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        scratch: &mut [u8],
        response: &mut ResponseHead,
        reply: &mut Vec<u8>,
        kind: RequestKind,
    ) -> Poll<Result<(), FailureKind>> {
        match self {
            Self::Http1(side) => side.poll_head(context, scratch, response, reply, kind),
            Self::Http2(side) => side.poll_head(context, scratch, response, reply, kind),
        }
    }

    fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
        scratch: &mut [u8],
    ) -> Poll<Option<Result<Frame, FailureKind>>> {
        match self {
            Self::Http1(side) => side.poll_frame(context, scratch),
            Self::Http2(side) => side.poll_frame(context, scratch),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Http1(side) => side.is_over(),
            Self::Http2(side) => side.is_over(),
        }
    }

    fn release(&mut self, bytes: usize) {
        match self {
            Self::Http1(side) => side.release(bytes),
            Self::Http2(side) => side.release(bytes),
        }
    }

    fn is_unsent(&self) -> bool {
        match self {
            Self::Http1(side) => side.is_unsent(),
            Self::Http2(side) => side.is_unsent(),
        }
    }

    fn end(&self, failure: FailureKind) -> AttemptEnd {
        match self {
            Self::Http1(side) => side.end(failure),
            Self::Http2(side) => side.end(failure),
        }
    }

    fn in_flight(&self) -> &InFlight {
        match self {
            Self::Http1(side) => side.in_flight(),
            Self::Http2(side) => side.in_flight(),
        }
    }

    fn moved(&self) -> u64 {
        match self {
            Self::Http1(side) => side.moved(),
            Self::Http2(side) => side.moved(),
        }
    }
}
