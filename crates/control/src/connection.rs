//! A connection that is given up when its peer stops reading.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A peer that takes no byte for so long is gone, or as good as.
const STALL: Duration = Duration::from_secs(30);

/// Fails a write that has waited for longer than [`STALL`].
pub(crate) struct StallGuard<S> {
    stream: S,
    /// Counts only while `is_waiting`.
    deadline: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<S> StallGuard<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, deadline: Box::pin(sleep(STALL)), is_waiting: false }
    }

    fn watch<T>(&mut self, result: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.is_waiting = false;
            return result;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.deadline.as_mut().reset(Instant::now() + STALL);
        }
        ready!(pin!(&mut self.deadline).poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer stopped reading")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(result, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(result, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_stops_reading_is_given_up_and_a_slow_one_is_not() {
        let (ours, mut theirs) = duplex(8);
        let mut guard = StallGuard::new(ours);
        let reader = tokio::spawn(async move {
            let mut eight = [0; 8];
            for _ in 0..3 {
                sleep(STALL - Duration::from_secs(1)).await;
                theirs.read_exact(&mut eight).await.unwrap();
            }
            theirs
        });
        guard.write_all(&[1; 32]).await.unwrap();
        let _kept = reader.await.unwrap();
        let error = guard.write_all(&[1; 8]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
