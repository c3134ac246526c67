//! A connection to a destination: plain, or under TLS.
//!
//! Under TLS a write may stay in the session's buffer until `flush`; over plain TCP `flush` does nothing.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use model::tls::Alpn;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection to a destination.
pub enum Stream<S> {
    /// TCP as it is.
    Plain(S),
    /// TLS over TCP. Boxed: a session is a kilobyte, and most connections are plain.
    Tls(Box<TlsStream<S>>),
}

impl<S> Stream<S> {
    /// The TCP connection underneath.
    pub fn transport(&self) -> &S {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }
}

impl<S: ::io::Stream> Stream<S> {
    /// What ALPN chose; `None`: nothing, or there is no TLS.
    pub fn alpn(&self) -> Option<Alpn> {
        let Self::Tls(stream) = self else { return None };
        let chosen = stream.get_ref().1.alpn_protocol()?;
        [Alpn::Http2, Alpn::Http11].into_iter().find(|known| known.as_str().as_bytes() == chosen)
    }
}

impl<S: ::io::Stream> ::io::Stream for Stream<S> {
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
            Self::Tls(stream) => {
                let mut buffer = ReadBuf::new(buffer);
                ready!(Pin::new(stream).poll_read(context, &mut buffer))?;
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

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
