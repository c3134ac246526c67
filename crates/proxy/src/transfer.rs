//! One read, one write: what every connection is asked for, in the ways that cost least.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::io::Stream;
use tokio::io::AsyncWrite;

/// Reads once. Empty: the end.
pub(crate) fn poll_read<'b, S: Stream>(
    stream: &mut S,
    context: &mut Context<'_>,
    scratch: &'b mut [u8],
) -> Poll<io::Result<&'b [u8]>> {
    let length = ready!(stream.poll_recv(context, scratch))?;
    Poll::Ready(Ok(scratch.get(..length).unwrap_or_default()))
}

/// The same for a task that may have been woken for this: then the bytes are there, and reading them is tried before the
/// runtime is asked.
#[inline]
pub(crate) fn poll_read_woken<'b, S: Stream>(
    stream: &mut S,
    context: &mut Context<'_>,
    scratch: &'b mut [u8],
    wake: &mut Wake,
) -> Poll<io::Result<&'b [u8]>> {
    if std::mem::replace(wake, Wake::Same) == Wake::New {
        match stream.try_recv(scratch) {
            Ok(length) => return Poll::Ready(Ok(scratch.get(..length).unwrap_or_default())),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // The kernel tells it once.
            Err(error) => return Poll::Ready(Err(error)),
        }
    }
    poll_read(stream, context, scratch)
}

/// Whether a task has been put off since it read last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// It was, and has been woken.
    New,
    /// It goes on. What it reads counts against its turn, so that it leaves the others theirs.
    Same,
}

/// Writes until all of `bytes` from `at` on is taken.
pub(crate) fn poll_send<S: AsyncWrite + Unpin>(
    stream: &mut S,
    context: &mut Context<'_>,
    bytes: &[u8],
    at: &mut usize,
) -> Poll<io::Result<()>> {
    while let Some(rest) = bytes.get(*at..).filter(|rest| !rest.is_empty()) {
        match ready!(Pin::new(&mut *stream).poll_write(context, rest))? {
            0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            taken => *at += taken,
        }
    }
    // Over plain TCP this does nothing; under TLS it moves what the session still holds.
    Pin::new(stream).poll_flush(context)
}

/// The same for heads and what is small: it is nearly always taken at once.
#[inline]
pub(crate) fn poll_send_small<S: Stream>(
    stream: &mut S,
    context: &mut Context<'_>,
    bytes: &[u8],
    at: &mut usize,
) -> Poll<io::Result<()>> {
    let rest = bytes.get(*at..).unwrap_or_default();
    if (1..=SMALL).contains(&rest.len())
        && let Ok(taken) = stream.try_write(rest)
    {
        *at += taken;
    }
    // What was not taken, and why, shows here.
    poll_send(stream, context, bytes, at)
}

/// What is longer may well not be taken whole, and then the runtime is to be asked in any case.
pub(crate) const SMALL: usize = 16 * 1024;
