//! Bytes from one connection to another through a pipe, never copied into the process (splice(2), Linux).
//!
//! ```text
//!   source's socket ──poll_fill──> pipe (empty before) ──poll_drain──> sink's socket
//! ```
//! A pipe is filled only when it is empty: that the kernel would block then always means that the source has nothing.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::descriptors::Descriptors;
use super::is_to_be_repeated;

/// A pipe, and how much lies in it. Two descriptors.
#[derive(Debug)]
pub struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
    held: usize,
}

impl Pipe {
    /// An empty one, or why the system has none.
    pub(super) fn open(descriptors: Descriptors) -> io::Result<Self> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Bytes can be copied, too: the last descriptors are for connections to destinations.
        descriptors.admit_client(&out)?;
        descriptors.admit_client(&into)?;
        // One that must stay small works as well.
        let _ = fcntl_setpipe_size(&into, CAPACITY);
        Ok(Self { out, into, held: 0 })
    }

    /// Bytes that lie in it.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Takes `most` bytes at most from `source`; call it when nothing is held. 0: the source has ended.
    pub fn poll_fill(&mut self, context: &mut Context<'_>, source: &TcpStream, most: usize) -> Poll<io::Result<usize>> {
        loop {
            ready!(source.poll_read_ready(context))?;
            match source
                .try_io(Interest::READABLE, || Ok(splice(source, None, &self.into, None, most.min(CAPACITY), FLAGS)?))
            {
                Err(error) if is_to_be_repeated(&error) => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(taken) => {
                    self.held += taken;
                    return Poll::Ready(Ok(taken));
                }
            }
        }
    }

    /// Passes on to `sink` what it takes at once of what is held; the number of bytes.
    pub fn poll_drain(&mut self, context: &mut Context<'_>, sink: &TcpStream) -> Poll<io::Result<usize>> {
        if self.held == 0 {
            return Poll::Ready(Ok(0));
        }
        loop {
            ready!(sink.poll_write_ready(context))?;
            match sink.try_io(Interest::WRITABLE, || Ok(splice(&self.out, None, sink, None, self.held, FLAGS)?)) {
                Err(error) if is_to_be_repeated(&error) => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(taken) => {
                    self.held = self.held.saturating_sub(taken);
                    return Poll::Ready(Ok(taken));
                }
            }
        }
    }
}

const FLAGS: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);
/// Asked for; the kernel gives less when all pipes of the user have too much together.
const CAPACITY: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (near, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn bytes_go_through_whole_up_to_the_sources_end() {
        let ((mut from, source), (sink, mut to)) = (pair().await, pair().await);
        let sent: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[n as usize % 4]).collect();
        let expected = sent.clone();
        let writing = tokio::spawn(async move { from.write_all(&sent).await.unwrap() });
        let reading = tokio::spawn(async move {
            let mut seen = Vec::new();
            to.read_to_end(&mut seen).await.unwrap();
            seen
        });
        let mut pipe = Pipe::open(Descriptors::UNBOUNDED).unwrap();
        while poll_fn(|context| pipe.poll_fill(context, &source, usize::MAX)).await.unwrap() > 0 {
            while pipe.held() > 0 {
                poll_fn(|context| pipe.poll_drain(context, &sink)).await.unwrap();
            }
        }
        drop(sink);
        writing.await.unwrap();
        assert!(reading.await.unwrap() == expected);
    }

    #[tokio::test]
    async fn no_more_is_taken_than_asked_for() {
        let ((mut from, mut source), _) = (pair().await, ());
        from.write_all(b"onetwo").await.unwrap();
        let mut pipe = Pipe::open(Descriptors::UNBOUNDED).unwrap();
        assert_eq!(poll_fn(|context| pipe.poll_fill(context, &source, 3)).await.unwrap(), 3);
        assert_eq!(pipe.held(), 3);
        let mut rest = [0; 3];
        source.read_exact(&mut rest).await.unwrap();
        assert_eq!(&rest, b"two");
    }

    #[test]
    fn a_pipe_beyond_the_share_of_traffic_is_refused() {
        let none = Descriptors::below(0);
        assert!(Pipe::open(none).is_err());
    }
}
