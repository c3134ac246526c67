//! A large body that goes through a pipe, from the destination's socket to the client's, without being copied.
//!
//! Only content of a known length, or up to the connection's end, between two plain connections: whatever has framing
//! within, must be held for a slow client or goes through TLS is read.

use std::io::ErrorKind;
use std::task::{Context, Poll};

use ::io::{Io, Stream as _};
use model::outcome::FailureKind;

use super::{Coding, Delivery};
use crate::drive::Delivered;
use crate::pipes::LARGE;

/// What moving bytes through the pipe came to.
pub(super) enum Through {
    /// This body is read, for now.
    Unfit,
    /// The destination has nothing more now.
    BySource,
    /// The client takes nothing more now.
    ByClient,
    /// The delivery is over.
    Over(Delivered),
}

impl<I: Io, R> Delivery<'_, '_, '_, I, R> {
    /// Moves as much as can be moved now. Nothing waits in `work.back`.
    pub(super) fn poll_through(&mut self, context: &mut Context<'_>) -> Through {
        if self.pipe.is_none() {
            if !self.is_fit_for_pipe() {
                return Through::Unfit;
            }
            self.pipe = self.wires.local.pipes.lend(&self.wires.local.io);
        }
        let Some(lent) = &mut self.pipe else {
            self.is_unpiped = true;
            return Through::Unfit;
        };
        let (client, leg) = (&mut *self.wires.client, &*self.wires.leg);
        let Some(pipe) = lent.pipe() else { return Through::Unfit };
        let (Some(source), Some(sink)) = (leg.stream.as_tcp(), client.stream.as_tcp()) else { return Through::Unfit };
        loop {
            while pipe.held() > 0 {
                match pipe.poll_drain(context, sink) {
                    Poll::Pending => return Through::ByClient,
                    Poll::Ready(Err(_)) => return Through::Over(Delivered::ClientGone),
                    Poll::Ready(Ok(taken)) => client.sent += taken as u64,
                }
            }
            if self.body.is_done() {
                return Through::Over(Delivered::Whole);
            }
            let left = usize::try_from(self.body.unframed()).unwrap_or(usize::MAX);
            match pipe.poll_fill(context, source, left) {
                Poll::Pending => return Through::BySource,
                Poll::Ready(Ok(0)) if self.body.end_of_input().is_ok() => {}
                // The system has no such call, or forbids it: the bytes lie where they lay, and are read.
                Poll::Ready(Err(error)) if is_refused(error.kind()) => {
                    self.pipe = None;
                    self.is_unpiped = true;
                    return Through::Unfit;
                }
                Poll::Ready(Ok(0) | Err(_)) => return Through::Over(Delivered::Broken(FailureKind::BodyCut)),
                Poll::Ready(Ok(taken)) => {
                    self.received += taken as u64;
                    self.body.pass_over(taken as u64);
                }
            }
        }
    }

    /// Whether so much is sure to come, or has come where nobody knows, that a pipe costs less.
    fn is_fit_for_pipe(&self) -> bool {
        let left = self.body.unframed();
        let is_large = left >= LARGE && (left < u64::MAX || self.received >= LARGE);
        is_large
            && !self.is_unpiped
            && !self.has_surplus
            && self.ahead.is_none()
            && self.coding == Coding::Verbatim
            && self.wires.leg.stream.as_tcp().is_some()
            && self.wires.client.stream.as_tcp().is_some()
    }
}

/// Whether an error is about the call and not about the connection (ENOSYS, EPERM, EINVAL).
fn is_refused(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unsupported | ErrorKind::PermissionDenied | ErrorKind::InvalidInput)
}
