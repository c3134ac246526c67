//! What a connection sends, collected until its task has done what there was to do.
//!
//! The `h2` crate flushes after every frame of 256 bytes or more, so each answer would be a system call, and over TLS a
//! record, of its own. Here a flush does nothing: frames are put together, and leave when the task says so, or when
//! [`MOST`] bytes wait. Reads pass through.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transfer::poll_send;

/// A connection; the `h2` crate has one handle of it, the task the other.
pub(super) struct Outlet<S>(Rc<RefCell<Collected<S>>>);

struct Collected<S> {
    stream: S,
    out: Vec<u8>,
    /// So much of it has left.
    sent: usize,
}

impl<S> Outlet<S> {
    /// Over this connection.
    pub(super) fn new(stream: S) -> Self {
        Self(Rc::new(RefCell::new(Collected { stream, out: Vec::new(), sent: 0 })))
    }

    /// The other handle.
    pub(super) fn handle(&self) -> Self {
        Self(Rc::clone(&self.0))
    }

    /// Memory to collect in, for as long as the task runs; not needed where something waits already.
    pub(super) fn lend(&self, memory: &mut Vec<u8>) {
        let mut collected = self.0.borrow_mut();
        if collected.out.is_empty() {
            std::mem::swap(&mut collected.out, memory);
        }
    }

    /// Gives it back, unless something waits.
    pub(super) fn give_back(&self, memory: &mut Vec<u8>) {
        let mut collected = self.0.borrow_mut();
        if collected.out.is_empty() {
            std::mem::swap(&mut collected.out, memory);
            collected.out = Vec::new();
        }
    }
}

impl<S: AsyncWrite + Unpin> Outlet<S> {
    /// Sends what was collected. Pending: the task is woken when more can be sent.
    pub(super) fn poll_send(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().poll_send(context)
    }
}

impl<S: AsyncWrite + Unpin> Collected<S> {
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(poll_send(&mut self.stream, context, &self.out, &mut self.sent))?;
        self.out.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Outlet<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.borrow_mut().stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Outlet<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut collected = self.0.borrow_mut();
        if collected.out.len() >= MOST {
            ready!(collected.poll_send(context))?;
        }
        collected.out.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut collected = self.0.borrow_mut();
        ready!(collected.poll_send(context))?;
        Pin::new(&mut collected.stream).poll_shutdown(context)
    }
}

/// So much is collected, and one frame more. Two TLS records of the longest kind.
const MOST: usize = 32 * 1024;
