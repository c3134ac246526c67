//! The client's side of an exchange over one stream.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::h2::server::SendResponse;
use ::h2::{Reason, RecvStream, SendStream};
use bytes::Bytes;
use http::Method;
use http1::forward::ResponseRewrite;
use http1::response::{RequestKind, ResponseHead};
use http2::websocket::{self, Key};
use http2::{response, trailers};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::access_log::Protocol;
use crate::relay::frame::{End, Frame};
use crate::relay::side::{Abort, BodyFault, ClientSide, Duplex, Gone};

/// One stream.
pub(super) struct StreamSide {
    body: RecvStream,
    respond: SendResponse<Bytes>,
    /// From the response's head on.
    send: Option<SendStream<Bytes>>,
    kind: RequestKind,
    is_read: bool,
    has_ended: bool,
    is_cancelled: bool,
    sent: u64,
    /// What a switch to WebSocket has to prove.
    key: Option<Key>,
    /// Of a tunnel: read from the stream, not yet from here.
    ahead: Bytes,
}

impl StreamSide {
    /// For a stream whose request's head was read.
    pub(super) fn new(body: RecvStream, respond: SendResponse<Bytes>, kind: RequestKind) -> Self {
        let is_read = body.is_end_stream();
        Self {
            body,
            respond,
            send: None,
            kind,
            is_read,
            has_ended: false,
            is_cancelled: false,
            sent: 0,
            key: None,
            ahead: Bytes::new(),
        }
    }

    /// The request asks for a WebSocket, under this key.
    pub(super) fn offer(&mut self, key: Key) {
        self.key = Some(key);
    }

    /// What a response to this method is.
    pub(super) fn kind_of(method: &Method) -> RequestKind {
        if method == Method::HEAD { RequestKind::Head } else { RequestKind::Other }
    }

    /// Whether the client gave the stream up before its response was whole.
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled
    }

    fn answer(&mut self, response: http::Response<()>, length: usize, end: End) -> Result<(), Gone> {
        if !self.takes_response(response.status().as_u16()) {
            // An answer of our own, from a route that has one; those of destinations are judged when they come.
            self.respond.send_reset(Reason::CONNECT_ERROR);
            return Err(Gone);
        }
        self.has_ended = end == End::Here;
        match self.respond.send_response(response, self.has_ended) {
            Ok(send) => {
                self.send = Some(send);
                self.sent += length as u64;
                Ok(())
            }
            Err(_) => Err(self.gone()),
        }
    }

    fn gone(&mut self) -> Gone {
        self.is_cancelled = true;
        Gone
    }

    fn fault(&mut self, error: &::h2::Error) -> BodyFault {
        if error.is_library() && error.reason() == Some(Reason::PROTOCOL_ERROR) {
            // DATA contradicts Content-Length (RFC 9113 8.1.1): the stream was reset for it.
            return BodyFault::Broken;
        }
        self.is_cancelled = true;
        BodyFault::Gone
    }
}

impl ClientSide for StreamSide {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame, BodyFault>>> {
        while !self.is_read {
            match ready!(self.body.poll_data(context)) {
                Some(Ok(bytes)) if bytes.is_empty() => {}
                Some(Ok(bytes)) => return Poll::Ready(Some(Ok(Frame::Data(bytes)))),
                Some(Err(error)) => return Poll::Ready(Some(Err(self.fault(&error)))),
                None => {
                    let fields = ready!(self.body.poll_trailers(context));
                    self.is_read = true;
                    return Poll::Ready(match fields {
                        Ok(None) => None,
                        Ok(Some(fields)) => match trailers::judge(&fields) {
                            Ok(()) => Some(Ok(Frame::Trailers(fields))),
                            Err(error) => Some(Err(BodyFault::Framing(error))),
                        },
                        Err(error) => Some(Err(self.fault(&error))),
                    });
                }
            }
        }
        Poll::Ready(None)
    }

    fn release(&mut self, bytes: usize) {
        if bytes > 0 {
            // Fails only for room that was not taken.
            let _ = self.body.flow_control().release_capacity(bytes);
        }
    }

    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.has_ended {
            return Poll::Pending;
        }
        let reset = match &mut self.send {
            Some(send) => send.poll_reset(context),
            None => self.respond.poll_reset(context),
        };
        // An error is the end of the connection.
        reset.map(|_| self.is_cancelled = true)
    }

    fn interim(&mut self, head: &[u8]) {
        let mut parser = ResponseHead::default();
        if let Ok(response) = response::read(head, &mut parser, self.kind)
            && self.respond.send_informational(response).is_ok()
        {
            self.sent += head.len() as u64;
        }
    }

    fn head(&mut self, head: &[u8], end: End) -> Result<(), Gone> {
        let mut parser = ResponseHead::default();
        let Ok(response) = response::read(head, &mut parser, self.kind) else {
            // Our own text always has a form in HTTP/2.
            self.respond.send_reset(Reason::INTERNAL_ERROR);
            return Err(Gone);
        };
        self.answer(response, head.len(), end)
    }

    fn response(
        &mut self,
        response: &http1::response::Response<'_>,
        rewrite: &ResponseRewrite<'_>,
        text: &mut Vec<u8>,
        end: End,
    ) -> Result<(), Gone> {
        match response::forward(response, rewrite) {
            Some(converted) => {
                let length = length(&converted);
                self.answer(converted, length, end)
            }
            None => {
                http1::forward::response(text, response, rewrite);
                self.head(text, end)
            }
        }
    }

    fn poll_send(&mut self, context: &mut Context<'_>, frame: &mut Option<Frame>, end: End) -> Poll<Result<(), Gone>> {
        if self.has_ended {
            *frame = None;
            return Poll::Ready(Ok(()));
        }
        loop {
            let Some(send) = &mut self.send else { return Poll::Ready(Err(self.gone())) };
            let is_sent = match frame.take() {
                None if end == End::Later => return Poll::Ready(Ok(())),
                None => {
                    self.has_ended = true;
                    send.send_data(Bytes::new(), true)
                }
                Some(Frame::Trailers(fields)) => {
                    self.has_ended = true;
                    send.send_trailers(fields)
                }
                Some(Frame::Data(bytes)) if bytes.is_empty() => continue,
                Some(Frame::Data(mut bytes)) => {
                    send.reserve_capacity(bytes.len());
                    let mut room = send.capacity();
                    if room == 0 {
                        match send.poll_capacity(context) {
                            Poll::Ready(Some(Ok(more))) => room = more,
                            Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(Err(self.gone())),
                            Poll::Pending => {
                                *frame = Some(Frame::Data(bytes));
                                return Poll::Pending;
                            }
                        }
                    }
                    let part = bytes.split_to(room.min(bytes.len()));
                    self.sent += part.len() as u64;
                    self.has_ended = bytes.is_empty() && end == End::Here;
                    if !bytes.is_empty() {
                        *frame = Some(Frame::Data(bytes));
                    }
                    send.send_data(part, self.has_ended)
                }
            };
            if is_sent.is_err() {
                return Poll::Ready(Err(self.gone()));
            }
            if frame.is_none() && (end == End::Later || self.has_ended) {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn abort(&mut self, why: Abort) {
        let told = match why {
            Abort::Cut => false,
            Abort::CallOver(code, message) => {
                let fields = trailers::of_call(code.number(), message);
                self.send.as_mut().is_some_and(|send| !self.has_ended && send.send_trailers(fields).is_ok())
            }
        };
        self.has_ended = true;
        if !told {
            self.respond.send_reset(Reason::INTERNAL_ERROR);
        }
    }

    fn sent(&self) -> u64 {
        self.sent
    }

    fn protocol(&self) -> Protocol {
        Protocol::Http2
    }

    fn takes_response(&self, status: u16) -> bool {
        self.key.is_none() || !(200..300).contains(&status)
    }

    fn takes_switch(&self, response: &http1::response::Response<'_>) -> bool {
        let is_accept = |name: &[u8]| name.eq_ignore_ascii_case(b"sec-websocket-accept");
        let accepts = response.fields().filter(|(_, name, _)| is_accept(name)).map(|(_, _, value)| value);
        self.key.as_ref().is_some_and(|key| key.is_accepted(accepts))
    }

    fn switch(&mut self, head: &[u8]) -> Result<&mut dyn Duplex, Gone> {
        let mut parser = ResponseHead::default();
        let response = response::read(head, &mut parser, self.kind).map_err(|_| Gone)?;
        let send = self.respond.send_response(websocket::switched(response), false).map_err(|_| self.gone())?;
        self.send = Some(send);
        self.sent += head.len() as u64;
        Ok(self)
    }
}

/// What the log counts for a head: its length as HTTP/1.1 text without a reason.
fn length(response: &http::Response<()>) -> usize {
    let lines = response.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    "HTTP/1.1 200 \r\n\r\n".len() + lines.sum::<usize>()
}

/// DATA frames as the bytes of a tunnel (RFC 8441 5).
impl AsyncRead for StreamSide {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.ahead.is_empty() {
            match ready!(this.body.poll_data(context)) {
                Some(Ok(bytes)) => this.ahead = bytes,
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                None => return Poll::Ready(Ok(())),
            }
        }
        let part = this.ahead.split_to(this.ahead.len().min(buffer.remaining()));
        buffer.put_slice(&part);
        this.release(part.len());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for StreamSide {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let mut hand = Some(Frame::Data(Bytes::copy_from_slice(bytes)));
        let sending = this.poll_send(context, &mut hand, End::Later);
        let left = hand.as_ref().map_or(0, Frame::content);
        match sending {
            Poll::Ready(Err(Gone)) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Poll::Pending if left == bytes.len() => Poll::Pending,
            Poll::Pending | Poll::Ready(Ok(())) => Poll::Ready(Ok(bytes.len() - left)),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The connection's task writes what it has.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let ended = ready!(this.poll_send(context, &mut None, End::Here));
        Poll::Ready(ended.map_err(|Gone| io::ErrorKind::BrokenPipe.into()))
    }
}
