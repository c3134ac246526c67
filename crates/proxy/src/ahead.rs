//! A connection of which some bytes were read before it was known what they are.
//!
//! A PROXY header has no length that is known before it is read, and a client that speaks plain HTTP to a TLS port shows
//! that with its first byte. What was read is read again from here.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use ::io::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection, and what was read of it.
pub(crate) struct Ahead<S> {
    stream: S,
    read: Vec<u8>,
    /// So much of it was read again.
    taken: usize,
}

impl<S> Ahead<S> {
    /// `read` comes first.
    pub(crate) fn new(stream: S, read: Vec<u8>) -> Self {
        Self { stream, read, taken: 0 }
    }

    /// The connection, and what is left of the bytes.
    pub(crate) fn into_parts(mut self) -> (S, Vec<u8>) {
        self.read.drain(..self.taken.min(self.read.len()));
        (self.stream, self.read)
    }

    /// What was read and not read again.
    pub(crate) fn left(&self) -> &[u8] {
        self.read.get(self.taken..).unwrap_or_default()
    }

    /// Passes over some of it.
    pub(crate) fn pass_over(&mut self, bytes: usize) {
        self.taken += bytes;
        if self.taken >= self.read.len() {
            // The memory is not kept for the life of the connection.
            self.read = Vec::new();
            self.taken = 0;
        }
    }
}

impl<S: Stream> Ahead<S> {
    /// Reads on from the connection itself. `Ok(0)`: its end.
    pub(crate) fn poll_more(&mut self, context: &mut Context<'_>, scratch: &mut [u8]) -> Poll<io::Result<usize>> {
        crate::transfer::poll_read(&mut self.stream, context, scratch).map_ok(|bytes| {
            self.read.extend_from_slice(bytes);
            bytes.len()
        })
    }
}

impl<S: Stream> Stream for Ahead<S> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    fn reset_on_drop(&self) {
        self.stream.reset_on_drop();
    }

    fn watch_peer(&self) {
        self.stream.watch_peer();
    }
}

impl<S: Stream> AsyncRead for Ahead<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = self.left();
        if left.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let n = left.len().min(buffer.remaining());
        buffer.put_slice(left.get(..n).unwrap_or_default());
        self.pass_over(n);
        Poll::Ready(Ok(()))
    }
}

impl<S: Stream> AsyncWrite for Ahead<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
