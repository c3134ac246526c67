//! Bytes both ways between two connections, until both directions have ended.
//!
//! ```text
//!   one ──read──> Way up   ──write──> other        a FIN read on one side is written on the other, after the bytes
//!   one <──write── Way down <──read── other        before it; the opposite direction goes on
//! ```
//! Each direction reads only when all it read before was taken, so what is held is bounded by one read; while nothing
//! waits nothing is held. Generic over both ends: a stream of HTTP/2 is pumped like a connection.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transfer::poll_send;

/// The two directions.
#[derive(Debug)]
pub(crate) struct Pump {
    up: Way,
    down: Way,
}

/// How a pump came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Both directions ended in order.
    Closed,
    /// The client's side broke off.
    ClientGone,
    /// The destination's side broke off.
    DestinationGone,
}

impl Pump {
    /// `up` was read from the client and `down` is for it, before the pump begins.
    pub(crate) fn new(up: Vec<u8>, down: Vec<u8>) -> Self {
        Self { up: Way::new(up), down: Way::new(down) }
    }

    /// Bytes that the destination took.
    pub(crate) fn sent_up(&self) -> u64 {
        self.up.sent
    }

    /// Bytes that the client took.
    pub(crate) fn sent_down(&self) -> u64 {
        self.down.sent
    }

    /// A number that changes whenever a byte moves.
    pub(crate) fn moved(&self) -> u64 {
        self.up.moved + self.down.moved
    }

    /// Moves what can be moved now. `scratch` is read into and left empty.
    pub(crate) fn poll<C, D>(
        &mut self,
        context: &mut Context<'_>,
        client: &mut C,
        destination: &mut D,
        scratch: &mut [u8],
    ) -> Poll<Ended>
    where
        C: AsyncRead + AsyncWrite + Unpin,
        D: AsyncRead + AsyncWrite + Unpin,
    {
        if self.down.poll(context, destination, client, scratch) == Flow::SourceBroken {
            return Poll::Ready(Ended::DestinationGone);
        }
        if self.up.poll(context, client, destination, scratch) == Flow::SourceBroken {
            return Poll::Ready(Ended::ClientGone);
        }
        match (self.up.state, self.down.state) {
            (State::Ended | State::Broken, State::Ended) => Poll::Ready(Ended::Closed),
            // It takes no more and says no more.
            (State::Ended, State::Broken) => Poll::Ready(Ended::ClientGone),
            (State::Broken, State::Broken) => Poll::Ready(Ended::ClientGone),
            (State::Open | State::Ending, _) | (_, State::Open | State::Ending) => Poll::Pending,
        }
    }
}

/// One direction.
#[derive(Debug)]
struct Way {
    /// Read and not taken yet.
    held: Vec<u8>,
    /// Bytes of `held` that were taken.
    taken: usize,
    /// Whether what was taken may still lie in the writer.
    is_unflushed: bool,
    state: State,
    sent: u64,
    moved: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// More may come.
    Open,
    /// The source has ended; what is held and the end itself are still to be passed on.
    Ending,
    /// The end was passed on.
    Ended,
    /// The sink takes no more. What the source says is no longer read.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    On,
    SourceBroken,
}

impl Way {
    fn new(held: Vec<u8>) -> Self {
        let is_unflushed = !held.is_empty();
        Self { held, taken: 0, is_unflushed, state: State::Open, sent: 0, moved: 0 }
    }

    fn poll<S: AsyncRead + Unpin, T: AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        source: &mut S,
        sink: &mut T,
        scratch: &mut [u8],
    ) -> Flow {
        let most = scratch.len().min(PIECE);
        let Some(piece) = scratch.get_mut(..most) else { return Flow::On };
        for _ in 0..TURNS {
            if matches!(self.state, State::Ended | State::Broken) || self.poll_held(context, sink).is_pending() {
                return Flow::On;
            }
            match self.state {
                State::Open => {}
                State::Ending => {
                    if Pin::new(&mut *sink).poll_shutdown(context).is_ready() {
                        self.state = State::Ended;
                    }
                    return Flow::On;
                }
                State::Ended | State::Broken => return Flow::On,
            }
            let mut read = ReadBuf::new(piece);
            match Pin::new(&mut *source).poll_read(context, &mut read) {
                Poll::Pending => return Flow::On,
                Poll::Ready(Err(_)) => return Flow::SourceBroken,
                Poll::Ready(Ok(())) if read.filled().is_empty() => self.state = State::Ending,
                Poll::Ready(Ok(())) => self.pass(context, read.filled(), sink),
            }
        }
        // The other connections of this thread have their turn.
        context.waker().wake_by_ref();
        Flow::On
    }

    /// Sends what is held; ready when nothing is any more.
    fn poll_held<T: AsyncWrite + Unpin>(&mut self, context: &mut Context<'_>, sink: &mut T) -> Poll<()> {
        if !self.is_unflushed {
            return Poll::Ready(());
        }
        let before = self.taken;
        let result = poll_send(sink, context, &self.held, &mut self.taken);
        self.count(self.taken - before);
        match result {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => self.state = State::Broken,
        }
        self.is_unflushed = false;
        // The memory goes as well: most tunnels are idle most of the time.
        self.held = Vec::new();
        self.taken = 0;
        Poll::Ready(())
    }

    /// Sends bytes from where they were read; keeps what is not taken. Nothing is held.
    fn pass<T: AsyncWrite + Unpin>(&mut self, context: &mut Context<'_>, bytes: &[u8], sink: &mut T) {
        self.moved += bytes.len() as u64;
        let mut taken = 0;
        let result = poll_send(sink, context, bytes, &mut taken);
        self.count(taken);
        match result {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => self.state = State::Broken,
            Poll::Pending => {
                self.held.extend_from_slice(bytes.get(taken..).unwrap_or_default());
                self.is_unflushed = true;
            }
        }
    }

    fn count(&mut self, taken: usize) {
        self.sent += taken as u64;
        self.moved += taken as u64;
    }
}

/// One read takes so much at most, and so much is held at most in each direction.
const PIECE: usize = 64 * 1024;
/// So many reads of one direction, then it is somebody else's turn.
const TURNS: usize = 32;

#[cfg(test)]
mod tests;
