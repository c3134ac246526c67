//! One end of a simulated connection.
//!
//! It behaves as TCP does: dropping it is an orderly end; with bytes left unread, or after
//! [`reset_on_drop`](crate::Stream::reset_on_drop), it is a reset, and the other end loses what it had not read.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::pipe::{End, Found, Pipe};

/// One end of a simulated connection.
pub struct SimStream {
    local: SocketAddr,
    peer: SocketAddr,
    latency: Duration,
    incoming: Arc<Mutex<Pipe>>,
    outgoing: Arc<Mutex<Pipe>>,
    arrival: Option<Pin<Box<Sleep>>>,
    resets: AtomicBool,
}

/// A connection between two addresses: the end that asked for it, and the end that accepts it.
pub(super) fn pair(from: SocketAddr, to: SocketAddr, latency: Duration) -> (SimStream, SimStream) {
    let there = Arc::new(Mutex::new(Pipe::default()));
    let back = Arc::new(Mutex::new(Pipe::default()));
    let near = SimStream {
        local: from,
        peer: to,
        latency,
        incoming: Arc::clone(&back),
        outgoing: Arc::clone(&there),
        arrival: None,
        resets: AtomicBool::new(false),
    };
    let far = SimStream {
        local: to,
        peer: from,
        latency,
        incoming: there,
        outgoing: back,
        arrival: None,
        resets: AtomicBool::new(false),
    };
    (near, far)
}

impl crate::Stream for SimStream {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }

    fn reset_on_drop(&self) {
        self.resets.store(true, Ordering::Relaxed);
    }
}

impl AsyncRead for SimStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            let found = lock(&self.incoming).read(Instant::now(), context.waker(), |bytes| {
                let n = bytes.len().min(buffer.remaining());
                buffer.put_slice(bytes.get(..n).unwrap_or_default());
                n
            });
            match found {
                Found::Bytes | Found::End(End::Orderly) => return Poll::Ready(Ok(())),
                Found::End(End::Reset) => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                Found::Nothing => return Poll::Pending,
                Found::Later(at) => {
                    let mut arrival = Box::pin(tokio::time::sleep_until(at));
                    let poll = arrival.as_mut().poll(context);
                    self.arrival = Some(arrival);
                    if poll.is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl AsyncWrite for SimStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = lock(&self.outgoing).write(bytes, Instant::now() + self.latency, context.waker());
        match written {
            Ok(Some(n)) => Poll::Ready(Ok(n)),
            Ok(None) => Poll::Pending,
            Err(End::Orderly) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Err(End::Reset) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.outgoing).finish(End::Orderly);
        Poll::Ready(Ok(()))
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        let is_unread = lock(&self.incoming).abandon();
        if is_unread || self.resets.load(Ordering::Relaxed) {
            lock(&self.outgoing).finish(End::Reset);
            lock(&self.incoming).finish(End::Reset);
        } else {
            lock(&self.outgoing).finish(End::Orderly);
        }
    }
}

fn lock(pipe: &Mutex<Pipe>) -> MutexGuard<'_, Pipe> {
    pipe.lock().unwrap_or_else(PoisonError::into_inner)
}
