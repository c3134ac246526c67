//! A connection as the rest of a shell sees it: bytes in and out, whether or not TLS lies between.
//!
//! The plain kind is the common one inside a site and costs one branch. Under TLS a write may stay in the session's buffer
//! until `flush`; over plain TCP `flush` does nothing.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use model::tls::Alpn;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::{client, server};

use crate::Stream;

/// A connection `S`, or a TLS session `T` over one.
pub enum MaybeTls<S, T> {
    /// TCP alone.
    Plain(S),
    /// TLS over TCP, after its handshake. Boxed: a session is a kilobyte that a plain connection need not carry.
    Tls(Box<T>),
}

/// A TLS session after its handshake, of either side.
pub trait Session: AsyncRead + AsyncWrite + Unpin + 'static {
    /// The connection below.
    fn transport(&self) -> &dyn Stream;

    /// The protocol that ALPN chose.
    fn protocol(&self) -> Option<&[u8]>;
}

impl<S: Stream> Session for client::TlsStream<S> {
    fn transport(&self) -> &dyn Stream {
        self.get_ref().0
    }

    fn protocol(&self) -> Option<&[u8]> {
        self.get_ref().1.alpn_protocol()
    }
}

impl<S: Stream> Session for server::TlsStream<S> {
    fn transport(&self) -> &dyn Stream {
        self.get_ref().0
    }

    fn protocol(&self) -> Option<&[u8]> {
        self.get_ref().1.alpn_protocol()
    }
}

impl<S: Stream, T: Session> MaybeTls<S, T> {
    /// What ALPN chose; `None`: nothing that we speak, or there is no TLS.
    pub fn alpn(&self) -> Option<Alpn> {
        let Self::Tls(session) = self else { return None };
        let chosen = session.protocol()?;
        [Alpn::Http2, Alpn::Http11].into_iter().find(|known| known.as_str().as_bytes() == chosen)
    }

    /// The TCP connection below.
    fn transport(&self) -> &dyn Stream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(session) => session.transport(),
        }
    }
}

impl<S: Stream, T: Session> Stream for MaybeTls<S, T> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.transport().peer_addr()
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.transport().local_addr()
    }

    #[inline]
    fn poll_recv(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Plain(stream) => stream.poll_recv(context, buffer),
            Self::Tls(session) => {
                let mut buffer = ReadBuf::new(buffer);
                ready!(Pin::new(session).poll_read(context, &mut buffer))?;
                Poll::Ready(Ok(buffer.filled().len()))
            }
        }
    }

    #[inline]
    fn try_recv(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.try_recv(buffer),
            Self::Tls(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    #[inline]
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.try_write(bytes),
            Self::Tls(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    #[inline]
    fn is_known_quiet(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_known_quiet(),
            Self::Tls(_) => false,
        }
    }

    fn reset_on_drop(&self) {
        self.transport().reset_on_drop();
    }

    fn watch_peer(&self) {
        self.transport().watch_peer();
    }

    fn as_tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Plain(stream) => stream.as_tcp(),
            Self::Tls(_) => None,
        }
    }
}

impl<S: AsyncRead + Unpin, T: AsyncRead + Unpin> AsyncRead for MaybeTls<S, T> {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(session) => Pin::new(session).poll_read(context, buffer),
        }
    }
}

impl<S: AsyncWrite + Unpin, T: AsyncWrite + Unpin> AsyncWrite for MaybeTls<S, T> {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(session) => Pin::new(session).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls(session) => Pin::new(session).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(session) => session.is_write_vectored(),
        }
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(session) => Pin::new(session).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            // Sends close_notify, then ends our side of TCP.
            Self::Tls(session) => Pin::new(session).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn pieces_leave_in_one_write() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
        let mut near = MaybeTls::<_, client::TlsStream<TcpStream>>::Plain(near.unwrap());
        assert!(near.is_write_vectored());
        let pieces = [io::IoSlice::new(b"head"), io::IoSlice::new(b"body")];
        assert_eq!(near.write_vectored(&pieces).await.unwrap(), 8);
        drop(near);
        let mut seen = Vec::new();
        far.unwrap().0.read_to_end(&mut seen).await.unwrap();
        assert_eq!(seen, b"headbody");
    }
}
