//! The client's side of an exchange over one stream.

use std::task::{Context, Poll, ready};

use ::h2::server::SendResponse;
use ::h2::{Reason, RecvStream, SendStream};
use bytes::Bytes;
use http::Method;
use http1::response::{RequestKind, ResponseHead};
use http2::{response, trailers};

use crate::relay::frame::{End, Frame};
use crate::relay::side::{Abort, BodyFault, ClientSide, Gone};

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
}

impl StreamSide {
    /// For a stream whose request's head was read.
    pub(super) fn new(body: RecvStream, respond: SendResponse<Bytes>, kind: RequestKind) -> Self {
        let is_read = body.is_end_stream();
        Self { body, respond, send: None, kind, is_read, has_ended: false, is_cancelled: false, sent: 0 }
    }

    /// What a response to this method is.
    pub(super) fn kind_of(method: &Method) -> RequestKind {
        if method == Method::HEAD { RequestKind::Head } else { RequestKind::Other }
    }

    /// Whether the client gave the stream up before its response was whole.
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled
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
        self.has_ended = end == End::Here;
        match self.respond.send_response(response, self.has_ended) {
            Ok(send) => {
                self.send = Some(send);
                self.sent += head.len() as u64;
                Ok(())
            }
            Err(_) => Err(self.gone()),
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
                    let room = match send.poll_capacity(context) {
                        _ if send.capacity() > 0 => send.capacity(),
                        Poll::Ready(Some(Ok(room))) => room,
                        Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(Err(self.gone())),
                        Poll::Pending => {
                            *frame = Some(Frame::Data(bytes));
                            return Poll::Pending;
                        }
                    };
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
        match why {
            Abort::Cut => {
                self.has_ended = true;
                self.respond.send_reset(Reason::INTERNAL_ERROR);
            }
        }
    }

    fn sent(&self) -> u64 {
        self.sent
    }
}
