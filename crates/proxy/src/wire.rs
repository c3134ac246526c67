//! A client's connection as the rest of the proxy sees it: bytes in and out, whether or not TLS lies between.
//!
//! The plain kind is the common one inside a site and costs one branch. The session of the other kind is boxed: it is
//! some hundred bytes that a plain connection need not carry.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::io::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::ahead::Ahead;

/// A client's connection.
pub(crate) enum Wire<S> {
    /// TCP alone.
    Plain(S),
    /// TLS over TCP, after its handshake.
    Tls(Box<TlsStream<Ahead<S>>>),
}

impl<S: Stream> Wire<S> {
    /// The TCP connection below.
    fn socket(&self) -> &dyn Stream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref().0,
        }
    }
}

impl<S: Stream> Stream for Wire<S> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.socket().peer_addr()
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket().local_addr()
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

    fn reset_on_drop(&self) {
        self.socket().reset_on_drop();
    }

    fn watch_peer(&self) {
        self.socket().watch_peer();
    }

    fn as_tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Plain(stream) => stream.as_tcp(),
            Self::Tls(_) => None,
        }
    }
}

impl<S: Stream> AsyncRead for Wire<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl<S: Stream> AsyncWrite for Wire<S> {
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

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            // Sends close_notify, then ends our side of TCP.
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
