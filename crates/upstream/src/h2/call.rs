//! One stream: a request out, a response in.
//!
//! Dropped before its end, the stream is reset (CANCEL): the destination may stop working on it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Response};
use model::outcome::{FailureKind, Progress};

use super::connection::Place;
use super::failure::Failure;
use super::{Connection, End};

/// A request that is under way.
pub struct Call {
    // Dropped in this order: the stream is over before its place is given back.
    response: ResponseFuture,
    upload: SendStream<Bytes>,
    body: Option<RecvStream>,
    place: Place,
    sending: Sending,
    /// Bytes that had come on the connection when the request went out, or the last piece of its response was taken.
    heard: u64,
    has_answered: bool,
    interims: u32,
    moved: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// The body goes on.
    Open,
    /// It ended.
    Over,
    /// The destination takes no more of it.
    Broken,
}

/// A response's head.
#[derive(Debug)]
pub enum Head {
    /// An interim one (1xx): another follows.
    Interim(Response<()>),
    /// The final one.
    Final(Response<()>),
}

/// A part of a response's body.
#[derive(Debug)]
pub enum Piece {
    /// Content.
    Data(Bytes),
    /// Trailers: the end.
    Trailers(HeaderMap),
}

impl Call {
    pub(super) fn new(place: Place, response: ResponseFuture, upload: SendStream<Bytes>, end: End, heard: u64) -> Self {
        let sending = match end {
            End::Here => Sending::Over,
            End::Later => Sending::Open,
        };
        Self { response, upload, body: None, place, sending, heard, has_answered: false, interims: 0, moved: 0 }
    }

    fn connection(&self) -> &Connection {
        self.place.connection()
    }

    /// The next head. Not to be called again after the final one.
    pub fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<Result<Head, Failure>> {
        match self.response.poll_informational(context) {
            Poll::Ready(Some(Ok(interim))) => {
                self.answered();
                self.interims += 1;
                if self.interims > INTERIMS {
                    return Poll::Ready(Err(Failure {
                        kind: FailureKind::Protocol,
                        progress: Progress::Sent,
                        was_on_wire: true,
                    }));
                }
                return Poll::Ready(Ok(Head::Interim(interim)));
            }
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(self.failed(&error))),
            Poll::Ready(None) | Poll::Pending => {}
        }
        match ready!(Pin::new(&mut self.response).poll(context)) {
            Ok(response) => {
                self.answered();
                let (parts, body) = response.into_parts();
                self.body = Some(body);
                Poll::Ready(Ok(Head::Final(Response::from_parts(parts, ()))))
            }
            Err(error) => Poll::Ready(Err(self.failed(&error))),
        }
    }

    fn answered(&mut self) {
        self.has_answered = true;
        self.heard = self.connection().received();
        self.moved += 1;
    }

    fn failed(&self, error: &h2::Error) -> Failure {
        let failure = Failure::before_head(error, self.connection().received());
        if failure.kind == FailureKind::RefusedStream {
            // A destination that stops may refuse what crossed its GOAWAY: that is its end, and not its load.
            if !self.connection().is_usable() {
                return Failure { kind: FailureKind::Unprocessed, ..failure };
            }
            self.connection().refused();
        }
        // By the bytes of a stream that was reused, its end tells nothing about the request.
        let is_over = matches!(failure.kind, FailureKind::Closed | FailureKind::Reset) && error.is_io();
        if is_over && self.place.is_reused() && !self.has_answered {
            return Failure { progress: Progress::StaleReuse, ..failure };
        }
        failure
    }

    /// The next piece of the body; `None`: it is over, and whole. The room that content takes is given back by
    /// [`Call::release`].
    pub fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Piece, FailureKind>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let piece = match ready!(body.poll_data(context)) {
            Some(Ok(data)) => Some(Ok(Piece::Data(data))),
            Some(Err(_)) => Some(Err(FailureKind::BodyCut)),
            None => match ready!(body.poll_trailers(context)) {
                Ok(Some(trailers)) => Some(Ok(Piece::Trailers(trailers))),
                Ok(None) => None,
                Err(_) => Some(Err(FailureKind::BodyCut)),
            },
        };
        self.heard = self.connection().received();
        self.moved += 1;
        Poll::Ready(piece)
    }

    /// Whether the response is known to be over without another piece.
    pub fn is_over(&self) -> bool {
        self.body.as_ref().is_some_and(RecvStream::is_end_stream)
    }

    /// So many bytes of content were taken: the destination may send as many more.
    pub fn release(&mut self, bytes: usize) {
        if let Some(body) = &mut self.body {
            // Fails only for more than there was, which is nothing to give back.
            let _ = body.flow_control().release_capacity(bytes);
        }
    }

    /// Sends as much of `data` as there is room for; ready when nothing of it is left and, with [`End::Here`], the end
    /// is said (once, however often it is called). What the destination does not take is dropped:
    /// [`Call::is_write_broken`].
    pub fn poll_send(&mut self, context: &mut Context<'_>, data: &mut Bytes, end: End) -> Poll<()> {
        while self.sending == Sending::Open && !data.is_empty() {
            let mut room = self.upload.capacity();
            if room == 0 {
                self.upload.reserve_capacity(data.len());
                match ready!(self.upload.poll_capacity(context)) {
                    Some(Ok(more)) => room = more,
                    Some(Err(_)) | None => {
                        self.sending = Sending::Broken;
                        break;
                    }
                }
            }
            let part = data.split_to(room.min(data.len()));
            if part.is_empty() {
                continue;
            }
            self.moved += part.len() as u64;
            let is_last = data.is_empty() && end == End::Here;
            self.sent(|upload| upload.send_data(part, is_last), is_last);
        }
        data.clear();
        if self.sending == Sending::Open && end == End::Here {
            self.sent(|upload| upload.send_data(Bytes::new(), true), true);
        }
        Poll::Ready(())
    }

    /// Ends the request with trailers.
    pub fn send_trailers(&mut self, trailers: HeaderMap) {
        if self.sending == Sending::Open {
            self.moved += 1;
            self.sent(|upload| upload.send_trailers(trailers), true);
        }
    }

    fn sent(&mut self, send: impl FnOnce(&mut SendStream<Bytes>) -> Result<(), h2::Error>, is_last: bool) {
        self.sending = match (send(&mut self.upload), is_last) {
            (Ok(()), true) => Sending::Over,
            (Ok(()), false) => Sending::Open,
            (Err(_), _) => Sending::Broken,
        };
    }

    /// Whether nothing more of the request can be sent.
    pub fn is_write_broken(&self) -> bool {
        self.sending == Sending::Broken
    }

    /// Whether it ran over a connection that carried requests before.
    pub fn is_reused(&self) -> bool {
        self.place.is_reused()
    }

    /// Whether anything of a response came.
    pub fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// It waited in vain for as long as it may. When not a byte came on the connection meanwhile, nobody else waits on
    /// it.
    pub fn timed_out(&self) {
        self.connection().doubt(self.heard);
    }

    /// A number that changes whenever something of this exchange moves.
    pub fn moved(&self) -> u64 {
        self.moved
    }
}

/// Interim responses of one exchange.
const INTERIMS: u32 = 32;
