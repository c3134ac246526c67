//! The HTTP probe: one request on a connection of its own, and the first complete response head. Which version is spoken
//! is said by the order; what follows here is HTTP/1.1, the rest stands in [`http2`].
//!
//! Interim answers are skipped; redirects are not followed, a 3xx is a status like any other. The head decides, unless
//! text is expected in the body: then up to [`BODY`] bytes of content are read until it is found. Whatever comes
//! slowly or without end is cut off by the probe's deadline.

use std::io;

use ::io::Io;
use ::io::deadline::Deadline;
use health::ProbeOrder;
use http1::body::{Body, Piece};
use http1::limits::HeadLimits;
use http1::request::Parsed;
use http1::response::{RequestKind, ResponseHead};
use model::outcome::FailureKind;
use model::tls::Alpn;
use model::upstream::UpstreamHttp;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use upstream::{Connector, Resolve, Stream, Target};

use super::{ProbeEnd, ProbeMessage, http2};

pub(super) async fn probe<I: Io, R: Resolve>(
    connector: &Connector<I, R>,
    order: &ProbeOrder,
    message: &ProbeMessage,
    deadline: &Deadline<I>,
) -> ProbeEnd {
    let Ok(request) = message.head() else {
        // Ours, and yet a failure: nobody may pass for healthy because nothing could be sent.
        return ProbeEnd::failed(FailureKind::Protocol, None);
    };
    let target = Target::of(&order.base, &order.tls, order.http, &order.outbound);
    let mut stream = match connector.connect_within(target, deadline).await {
        Ok(stream) => stream,
        Err(error) => {
            tracing::debug!(target: "monitor", destination = %order.destination, %error, "probe could not connect");
            return ProbeEnd::failed(error.kind, None);
        }
    };
    if speaks_http2(order, &stream) {
        return http2::probe(connector, order, message, stream, deadline).await;
    }
    let kind = if message.method == "HEAD" { RequestKind::Head } else { RequestKind::Other };
    let mut answer = Answer::default();
    let head = deadline.within(answer.read_head(&mut stream, &request, kind)).await;
    let status = match head {
        Ok(Ok(status)) => status,
        Ok(Err(failure)) => return ProbeEnd::failed(failure, None),
        Err(_) => return ProbeEnd::failed(FailureKind::HeadTimeout, None),
    };
    if !order.request.expect_statuses.iter().any(|range| range.contains(status)) {
        return ProbeEnd::failed(FailureKind::Status, Some(status));
    }
    let Some(expected) = order.request.expect_body.as_deref() else {
        return ProbeEnd::passed(Some(status));
    };
    match deadline.within(answer.find(&mut stream, expected.as_bytes())).await {
        Ok(Ok(())) => ProbeEnd::passed(Some(status)),
        Ok(Err(failure)) => ProbeEnd::failed(failure, Some(status)),
        Err(_) => ProbeEnd::failed(FailureKind::BodyTimeout, Some(status)),
    }
}

/// What the check asks for, or ALPN chose.
fn speaks_http2<S: ::io::Stream>(order: &ProbeOrder, stream: &Stream<S>) -> bool {
    match order.http {
        UpstreamHttp::Http1 => false,
        UpstreamHttp::Http2 => true,
        UpstreamHttp::Http2OrHttp1 => stream.alpn() == Some(Alpn::Http2),
    }
}

/// What came back so far.
#[derive(Default)]
struct Answer {
    head: ResponseHead,
    /// Bytes that were read and not yet looked at.
    bytes: Vec<u8>,
}

impl Answer {
    /// Sends the request and reads up to the end of the first head that is no interim one.
    async fn read_head<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        request: &[u8],
        kind: RequestKind,
    ) -> Result<u16, FailureKind> {
        stream.write_all(request).await.map_err(|_| FailureKind::Reset)?;
        stream.flush().await.map_err(|_| FailureKind::Reset)?;
        let mut is_silent = true;
        let mut interims = 0;
        loop {
            match self.head.parse(&self.bytes, &HeadLimits::RESPONSE, kind) {
                Ok(Parsed::Complete) => {
                    self.bytes.drain(..self.head.len());
                    let status = self.head.status();
                    // 101 is no interim answer: nothing else follows.
                    if !self.head.is_interim() || status == 101 {
                        return Ok(status);
                    }
                    interims += 1;
                    if interims > INTERIMS {
                        return Err(FailureKind::Protocol);
                    }
                    continue;
                }
                Ok(Parsed::Partial) => {}
                Err(error) if error.is_size() => return Err(FailureKind::HeadTooLarge),
                Err(_) => return Err(FailureKind::Protocol),
            }
            match read(stream, &mut self.bytes).await {
                Ok(0) if is_silent => return Err(FailureKind::Closed),
                Ok(0) => return Err(FailureKind::Protocol),
                Ok(_) => is_silent = false,
                Err(_) => return Err(FailureKind::Reset),
            }
        }
    }

    /// Reads the body until `expected` stands in it.
    async fn find<S: AsyncRead + Unpin>(&mut self, stream: &mut S, expected: &[u8]) -> Result<(), FailureKind> {
        let mut body = Body::of_response(self.head.framing());
        let mut content = Vec::new();
        loop {
            let mut at = 0;
            while at < self.bytes.len() && !body.is_done() && content.len() < BODY {
                let rest = self.bytes.get(at..).unwrap_or_default();
                match body.piece(rest).map_err(|_| FailureKind::Protocol)? {
                    Piece::Content(n) => {
                        content.extend_from_slice(rest.get(..n).unwrap_or_default());
                        at += n;
                    }
                    Piece::Framing(n) => at += n,
                }
            }
            self.bytes.clear();
            content.truncate(BODY);
            if contains(&content, expected) {
                return Ok(());
            }
            if body.is_done() || content.len() >= BODY {
                return Err(FailureKind::Body);
            }
            match read(stream, &mut self.bytes).await {
                Ok(0) => body.end_of_input().map_err(|_| FailureKind::BodyCut)?,
                Ok(_) => {}
                Err(_) => return Err(FailureKind::BodyCut),
            }
        }
    }
}

/// Appends what has come; 0 at the end. A TLS peer that ends without saying so ends all the same.
async fn read<S: AsyncRead + Unpin>(stream: &mut S, bytes: &mut Vec<u8>) -> io::Result<usize> {
    bytes.reserve(CHUNK);
    match stream.read_buf(bytes).await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        read => read,
    }
}

pub(super) fn contains(content: &[u8], expected: &[u8]) -> bool {
    expected.is_empty() || content.windows(expected.len()).any(|window| window == expected)
}

/// Content that is searched.
pub(super) const BODY: usize = 64 * 1024;
/// Room for one read.
const CHUNK: usize = 4096;
/// Interim answers that are skipped.
const INTERIMS: u32 = 32;
