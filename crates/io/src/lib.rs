//! Sockets and the clock behind one trait, so that a shell runs the same over the kernel and over a simulated network.
//!
//! [`real::Real`] is the kernel: every call is dispatched statically and nothing is boxed, so the trait costs nothing.
//! [`sim::Sim`] is a network in memory on tokio's clock: with that clock paused a test runs in virtual time, exactly
//! and without waiting. Nothing here asks for `Send`: each shell lives on one thread. [`MaybeTls`] is a connection of either
//! with or without TLS over it.
#![forbid(unsafe_code)]

pub mod deadline;
mod maybe_tls;
pub mod real;
pub mod sim;

pub use maybe_tls::{MaybeTls, Session};

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use model::time::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// The way to the network and to the clock.
pub trait Io: Clone + 'static {
    /// A connection.
    type Stream: Stream;
    /// A listening socket that belongs to no runtime yet.
    type Bound: 'static;
    /// A listening socket of this thread's runtime.
    type Listener: Listener<Stream = Self::Stream>;

    /// The time now.
    fn now(&self) -> Timestamp;

    /// `at` on tokio's clock, for those who keep a [`Sleep`] and set it anew.
    fn instant(&self, at: Timestamp) -> Instant;

    /// Connects over TCP from an address of ours, else from the one that the system chooses. Without a time limit of its
    /// own.
    fn connect_from(&self, from: Option<IpAddr>, to: SocketAddr) -> impl Future<Output = io::Result<Self::Stream>>;

    /// Connects over TCP. Without a time limit of its own.
    fn connect(&self, to: SocketAddr) -> impl Future<Output = io::Result<Self::Stream>> {
        self.connect_from(None, to)
    }

    /// Binds and listens, without a runtime: before threads start, so that a failure stops the start.
    fn bind(&self, address: SocketAddr, share: Share) -> io::Result<Self::Bound>;

    /// Where a bound socket listens, with the port that was found when port 0 was asked for.
    fn bound_addr(&self, bound: &Self::Bound) -> io::Result<SocketAddr>;

    /// Another descriptor of the same socket: both accept from one queue, which lives until the last one is closed.
    fn share_bound(&self, bound: &Self::Bound) -> io::Result<Self::Bound>;

    /// Hands a bound socket to the runtime of this thread.
    fn listen(&self, bound: Self::Bound) -> io::Result<Self::Listener>;

    /// A pipe for bytes between two of its connections; an error where there is none.
    fn pipe(&self) -> io::Result<real::Pipe> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Ends at `at`; at once when that is past, never at [`Timestamp::MAX`].
    fn sleep_until(&self, at: Timestamp) -> Sleep {
        tokio::time::sleep_until(self.instant(at))
    }

    /// Ends after `span`.
    fn sleep(&self, span: Duration) -> Sleep {
        self.sleep_until(self.now() + span)
    }
}

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + 'static {
    /// The other end.
    fn peer_addr(&self) -> io::Result<SocketAddr>;

    /// This end.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// Reads what is there, at once as much as `buffer` takes; 0: the end.
    fn poll_recv(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        ready!(Pin::new(self).poll_read(context, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    /// Reads what can be read at once, and has nobody woken: `WouldBlock` says that nothing was read, and that `poll_recv`
    /// is to be asked. It costs less than that, so who was woken tries here first, once: it does not count what a task
    /// reads in one turn.
    fn try_recv(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Writes what can be taken at once, and has nobody woken: `WouldBlock` says that nothing was taken, and that
    /// `poll_write` is to be asked. It costs less than that, so small messages are tried here first.
    fn try_write(&self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Whether it is known, without asking anybody, that nothing can be read now.
    fn is_known_quiet(&self) -> bool {
        false
    }

    /// When it is dropped the peer sees a reset in place of an orderly end, so that what was cut off cannot pass for
    /// whole.
    fn reset_on_drop(&self);

    /// Asks a peer that says nothing, now and then, whether it is still there; one that does not answer for two minutes
    /// has broken the connection. It can stay silent for as long as it likes.
    fn watch_peer(&self) {}

    /// The kernel's connection, where bytes go in and out as they are; `None`: they have to be read and written.
    fn as_tcp(&self) -> Option<&TcpStream> {
        None
    }
}

/// A listening socket.
pub trait Listener: 'static {
    /// Its connections.
    type Stream: Stream;

    /// The next connection and its peer. Cancel safe: a connection is never lost.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, SocketAddr)>>;

    /// A connection that waits in the queue already; `None`: none does. Never waits. Who closes a listener takes these
    /// first: what still lies in the queue of a closed one is reset.
    fn accept_waiting(&self) -> io::Result<Option<(Self::Stream, SocketAddr)>>;

    /// Where it listens, with the port that was found when port 0 was asked for.
    fn local_addr(&self) -> io::Result<SocketAddr>;
}

/// Whether an address may be taken already. Each worker has a socket of its own on the same address, which the kernel
/// allows to any process of the same user: so the first one makes sure that nobody else is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Fails when anybody listens there.
    First,
    /// Joins a socket of our own.
    Join,
}

/// Beyond this a deadline is never: tokio's clock does not reach the end of ours.
const NEVER: Duration = Duration::from_secs(30 * 365 * 86_400);
