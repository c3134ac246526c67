//! The two sides of an exchange, as the driver sees them.
//!
//! All of it is polled by the one task that drives the exchange, so a side keeps no lock and no channel of its own. A
//! side that is dropped before its message is over makes the other end see that it is cut.

use std::task::{Context, Poll};

use board::InFlight;
use exchange::grpc::Code;
use http1::body::BodyError;
use http1::forward::ResponseRewrite;
use http1::framing::RequestFraming;
use http1::response::{RequestKind, Response, ResponseHead};
use http2::error::Malformed;
use model::outcome::{AttemptEnd, FailureKind};
use tokio::io::{AsyncRead, AsyncWrite};

use super::frame::{End, Frame};
use crate::access_log::Protocol;

/// The client went away, or broke the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

/// Why the request's body does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFault {
    /// The client went away in the middle.
    Gone,
    /// It broke the framing. It may still be answered.
    Framing(BodyError),
    /// It broke the rules of its version so that its side ended the exchange already: it cannot be answered.
    Broken,
}

/// Why a response is not brought to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Abort {
    /// The destination broke off, or a limit of time cut it.
    Cut,
    /// The time of a gRPC call is over. Where trailers can still be sent they say so, with this status and message.
    CallOver(Code, &'static str),
}

/// The client's side: one request in, one response out.
pub(crate) trait ClientSide {
    /// The next frame of the request's body; `None`: it is over.
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame, BodyFault>>>;

    /// So many bytes of content have been taken by the destination: the client may send as many more.
    fn release(&mut self, bytes: usize);

    /// Ready when the client has given up the exchange. To be polled while nothing else of this side is.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()>;

    /// Sends an interim response's head (1xx), written for an HTTP/1.1 client. One that cannot be sent is dropped.
    fn interim(&mut self, head: &[u8]);

    /// Sends the response's head, written for an HTTP/1.1 client. This or [`ClientSide::response`] is called once, before
    /// [`ClientSide::poll_send`].
    fn head(&mut self, head: &[u8], end: End) -> Result<(), Gone>;

    /// Sends a destination's head, rewritten. `text` is memory to write in; it is empty.
    fn response(
        &mut self,
        response: &Response<'_>,
        rewrite: &ResponseRewrite<'_>,
        text: &mut Vec<u8>,
        end: End,
    ) -> Result<(), Gone> {
        http1::forward::response(text, response, rewrite);
        self.head(text, end)
    }

    /// Sends as much of `frame` as the client has room for; ready when nothing is left of it (it is `None` then) and,
    /// with [`End::Here`], the body's end is said. Without a frame it says the end alone, once, however often it is
    /// called.
    fn poll_send(&mut self, context: &mut Context<'_>, frame: &mut Option<Frame>, end: End) -> Poll<Result<(), Gone>>;

    /// Makes the client see that the response is not whole.
    fn abort(&mut self, why: Abort);

    /// Bytes that were sent, for the log.
    fn sent(&self) -> u64;

    /// What it speaks, for the log.
    fn protocol(&self) -> Protocol;

    /// Whether the client takes this 101, which accepts what its request's text offers.
    fn takes_switch(&self, response: &Response<'_>) -> bool;

    /// Whether the client can be told of a final response of this status. A 2xx in answer to an extended CONNECT would say
    /// that the tunnel is there (RFC 8441 5), and the response's content would be taken for what comes through it.
    fn takes_response(&self, status: u16) -> bool;

    /// Tells the client of the switch, in place of [`ClientSide::head`], with the 101 as an HTTP/1.1 client would get
    /// it; then its bytes go both ways.
    fn switch(&mut self, head: &[u8]) -> Result<&mut dyn Duplex, Gone>;
}

/// Bytes both ways.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

/// The destination's side: one request out, one response in, over a connection that is there.
pub(crate) trait DestinationSide {
    /// Takes the request's head as `http1::forward::request` wrote it, and maybe its memory. Called once, first. `framing`
    /// is what the head says of the body. An error is the request's: the destination's version has no form for it, and
    /// nothing was sent.
    fn head(&mut self, head: &mut Vec<u8>, framing: RequestFraming) -> Result<(), Malformed>;

    /// Sends as much of `frame` as there is room for, as [`ClientSide::poll_send`] does; ready when it has left, and the
    /// head with it. A failure is remembered and not told: only reading says what became of the request. Then and once
    /// the body's end is said it is ready at once.
    fn poll_send(&mut self, context: &mut Context<'_>, frame: &mut Option<Frame>, end: End) -> Poll<()>;

    /// Whether nothing more can be sent.
    fn is_write_broken(&self) -> bool;

    /// Reads the next head, interim or final, as HTTP/1.1 text into `reply` (what was in there is dropped, and it is left
    /// alone until the head is complete), parsed in `response`. `scratch` is memory to read into. Not to be called again
    /// after a final head.
    fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        scratch: &mut [u8],
        response: &mut ResponseHead,
        reply: &mut Vec<u8>,
        kind: RequestKind,
    ) -> Poll<Result<(), FailureKind>>;

    /// The next frame of the response's body; `None`: it is over, and whole.
    fn poll_frame(&mut self, context: &mut Context<'_>, scratch: &mut [u8])
    -> Poll<Option<Result<Frame, FailureKind>>>;

    /// Whether the body is known to be over without another frame. Right after the head it says whether there is one.
    fn is_over(&self) -> bool;

    /// So many bytes of content have been taken by the client: the destination may send as many more.
    fn release(&mut self, bytes: usize);

    /// A connection that carried requests before took not one byte: it was dead already, nothing has happened, and the
    /// attempt starts over on a fresh one.
    fn is_unsent(&self) -> bool;

    /// The end of an attempt that failed before its response's head was complete.
    fn end(&self, failure: FailureKind) -> AttemptEnd;

    /// What counts the attempt as running.
    fn in_flight(&self) -> &InFlight;

    /// A number that changes whenever a byte moves on the connection.
    fn moved(&self) -> u64;
}
