//! A stream that counts what comes in: the sign of life of a connection.
//!
//! A request that waits in vain tells nothing by itself: the destination may be slow. When not one byte came on its
//! whole connection meanwhile, the connection is dead, whatever the kernel says (a router on the way has forgotten it).

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// What came in so far.
#[derive(Debug, Default)]
pub(super) struct Received {
    bytes: Cell<u64>,
    /// Told when the first byte comes.
    first: Rc<Notify>,
}

impl Received {
    pub(super) fn new(first: Rc<Notify>) -> Self {
        Self { bytes: Cell::new(0), first }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }
}

/// A stream that counts.
pub(super) struct Watched<S> {
    inner: S,
    received: Rc<Received>,
}

impl<S> Watched<S> {
    pub(super) fn new(inner: S, received: Rc<Received>) -> Self {
        Self { inner, received }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        let come = buffer.filled().len() - before;
        if come > 0 {
            let so_far = self.received.bytes.get();
            self.received.bytes.set(so_far + come as u64);
            if so_far == 0 {
                self.received.first.notify_waiters();
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
