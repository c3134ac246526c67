//! The kernel's sockets and clock.
//!
//! Listeners are bound with IP_FREEBIND (an address that is not up yet is no obstacle), SO_REUSEPORT (one socket per
//! worker) and TCP_NODELAY (which accepted connections inherit, so that accepting costs one system call).

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdListener};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant as StdInstant};

use model::time::Timestamp;
use nix::sys::socket::{setsockopt, sockopt};
use rustix::net::{RecvFlags, SendFlags};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::Instant;

use crate::{Io, Listener, NEVER, Share, Stream};

mod descriptors;
pub mod pass;
mod pipe;

pub use descriptors::raise_descriptor_limit;
pub use pipe::Pipe;

use descriptors::Descriptors;

/// The kernel. Copies share one start of time, so make one per process.
#[derive(Clone, Copy, Debug)]
pub struct Real {
    start: StdInstant,
    descriptors: Descriptors,
}

impl Real {
    /// Time starts here.
    #[expect(clippy::new_without_default, reason = "reads the clock: two defaults would not be equal")]
    pub fn new() -> Self {
        Self { start: StdInstant::now(), descriptors: Descriptors::UNBOUNDED }
    }

    /// A clock that goes on from another process's: it shows `now` at this moment.
    pub fn at(now: Timestamp) -> Self {
        let elapsed = now.since(Timestamp::ZERO);
        let start = StdInstant::now();
        Self { start: start.checked_sub(elapsed).unwrap_or(start), descriptors: Descriptors::UNBOUNDED }
    }

    /// The same for traffic: of the descriptors that the process may have now, it leaves some to the others.
    #[must_use]
    pub fn for_traffic(self) -> Self {
        Self { descriptors: Descriptors::below_limit(), ..self }
    }
}

impl Io for Real {
    type Stream = TcpStream;
    type Bound = StdListener;
    type Listener = RealListener;

    fn now(&self) -> Timestamp {
        Timestamp::ZERO + self.start.elapsed()
    }

    fn instant(&self, at: Timestamp) -> Instant {
        let span = at.since(Timestamp::ZERO).min(NEVER);
        Instant::from_std(self.start.checked_add(span).unwrap_or_else(StdInstant::now))
    }

    async fn connect_from(&self, from: Option<IpAddr>, to: SocketAddr) -> io::Result<TcpStream> {
        let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        self.descriptors.admit_destination(&socket)?;
        socket.set_nodelay(true)?;
        if let Some(from) = from {
            // The port is chosen when the destination is known: one port serves once per destination, not once in all.
            setsockopt(&socket, sockopt::IpBindAddressNoPort, &true)?;
            socket.bind(SocketAddr::new(from, 0))?;
        }
        socket.connect(to).await
    }

    fn bind(&self, address: SocketAddr, share: Share) -> io::Result<StdListener> {
        if share == Share::First && address.port() != 0 {
            // Dropped at once: it only asks whether the address is free.
            socket(address)?.bind(&address.into())?;
        }
        let socket = socket(address)?;
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    }

    fn bound_addr(&self, bound: &StdListener) -> io::Result<SocketAddr> {
        bound.local_addr()
    }

    fn share_bound(&self, bound: &StdListener) -> io::Result<StdListener> {
        bound.try_clone()
    }

    fn pipe(&self) -> io::Result<Pipe> {
        Pipe::open(self.descriptors)
    }

    fn listen(&self, bound: StdListener) -> io::Result<RealListener> {
        bound.set_nonblocking(true)?;
        Ok(RealListener { socket: TcpListener::from_std(bound)?, descriptors: self.descriptors })
    }
}

impl Stream for TcpStream {
    fn watch_peer(&self) {
        let asking = TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_EVERY).with_retries(PROBES);
        // Fails only on a socket that is no TCP socket.
        let _ = SockRef::from(self).set_tcp_keepalive(&asking);
    }

    fn as_tcp(&self) -> Option<&Self> {
        Some(self)
    }

    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Self::peer_addr(self)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Self::local_addr(self)
    }

    #[inline]
    fn poll_recv(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.poll_read_ready(context))?;
            match self.try_recv(buffer) {
                Err(error) if is_to_be_repeated(&error) => {}
                result => return Poll::Ready(result),
            }
        }
    }

    #[inline]
    fn try_recv(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut received = None;
        let result = self.try_io(Interest::READABLE, || {
            let (length, _) = rustix::net::recv(&*self, &mut *buffer, RecvFlags::empty())?;
            received = Some(length);
            // Less than there was room for: that nothing more is there need not be found out by another call.
            if (1..buffer.len()).contains(&length) { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        match received {
            Some(length) => Ok(length),
            None => Err(result.err().unwrap_or_else(|| io::ErrorKind::WouldBlock.into())),
        }
    }

    #[inline]
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        // Without the C library, as reading: its `send` and `recv` make sure first that a thread that is cancelled
        // meanwhile would end, which costs more than what else they do.
        self.try_io(Interest::WRITABLE, || Ok(rustix::net::send(self, bytes, SendFlags::NOSIGNAL)?))
    }

    #[inline]
    fn is_known_quiet(&self) -> bool {
        // Runs only where the runtime has heard of something to read.
        self.try_io(Interest::READABLE, || Ok(())).is_err()
    }

    fn reset_on_drop(&self) {
        // Fails only on a socket that is no TCP socket.
        let _ = SockRef::from(self).set_linger(Some(Duration::ZERO));
    }
}

/// Whether a call found nothing to do, or was interrupted.
fn is_to_be_repeated(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// A listening socket of the kernel's.
pub struct RealListener {
    socket: TcpListener,
    descriptors: Descriptors,
}

impl Listener for RealListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.socket.accept().await?;
        self.descriptors.admit_client(&stream)?;
        Ok((stream, peer))
    }

    fn accept_waiting(&self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        // Asks the kernel itself: the runtime may not have heard yet of what came a moment ago.
        let (socket, peer) = match SockRef::from(&self.socket).accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        };
        self.descriptors.admit_client(&socket)?;
        socket.set_nonblocking(true)?;
        let peer = peer.as_socket().ok_or(io::ErrorKind::InvalidData)?;
        Ok(Some((TcpStream::from_std(socket.into())?, peer)))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_tcp_nodelay(true)?;
    match address {
        SocketAddr::V4(_) => socket.set_freebind_v4(true)?,
        SocketAddr::V6(_) => {
            // [::] also takes IPv4, whatever net.ipv6.bindv6only says.
            socket.set_only_v6(false)?;
            socket.set_freebind_v6(true)?;
        }
    }
    Ok(socket)
}

/// Asked for; the kernel cuts it to net.core.somaxconn.
const BACKLOG: i32 = 4096;
/// A watched peer is asked when it has said nothing for so long, then this often, and so many times in vain. Together two
/// minutes. Not TCP_USER_TIMEOUT: that would also end a connection whose peer is there and does not read.
const PROBE_AFTER: Duration = Duration::from_secs(60);
const PROBE_EVERY: Duration = Duration::from_secs(15);
const PROBES: u32 = 4;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn an_address_that_is_not_up_can_be_bound() {
        // 192.0.2.0/24 is TEST-NET-1: no host has it.
        let bound = Real::new().bind("192.0.2.77:0".parse().unwrap(), Share::First).unwrap();
        assert_eq!(bound.local_addr().unwrap().ip().to_string(), "192.0.2.77");
        let bound = Real::new().bind("[2001:db8::77]:0".parse().unwrap(), Share::First);
        match bound {
            Ok(bound) => assert_eq!(bound.local_addr().unwrap().ip().to_string(), "2001:db8::77"),
            // A host without IPv6.
            Err(error) => assert_eq!(error.raw_os_error(), Some(97), "{error}"),
        }
    }

    #[test]
    fn workers_share_an_address_that_others_may_not_take() {
        let io = Real::new();
        let first = io.bind("127.0.0.1:0".parse().unwrap(), Share::First).unwrap();
        let address = first.local_addr().unwrap();
        let _second = io.bind(address, Share::Join).unwrap();
        let refused = io.bind(address, Share::First).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
    }

    #[tokio::test]
    async fn connections_carry_bytes_without_delay_and_reset_when_told() {
        let io = Real::new();
        let listener = io.listen(io.bind("127.0.0.1:0".parse().unwrap(), Share::First).unwrap()).unwrap();
        let address = Listener::local_addr(&listener).unwrap();
        let (client, server) = tokio::join!(io.connect(address), Listener::accept(&listener));
        let (mut client, (mut server, peer)) = (client.unwrap(), server.unwrap());
        assert_eq!(Stream::local_addr(&client).unwrap(), peer);
        assert!(client.nodelay().unwrap() && server.nodelay().unwrap());
        client.write_all(b"ping").await.unwrap();
        let mut seen = [0; 4];
        server.read_exact(&mut seen).await.unwrap();
        assert_eq!(&seen, b"ping");
        server.reset_on_drop();
        drop(server);
        assert_eq!(client.read(&mut seen).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test]
    async fn what_waits_in_the_queue_can_be_taken_before_the_listener_is_closed() {
        let io = Real::new();
        let listener = io.listen(io.bind("127.0.0.1:0".parse().unwrap(), Share::First).unwrap()).unwrap();
        let address = Listener::local_addr(&listener).unwrap();
        assert!(listener.accept_waiting().unwrap().is_none());
        let mut waiting = std::net::TcpStream::connect(address).unwrap();
        let (mut taken, peer) = listener.accept_waiting().unwrap().unwrap();
        assert!(listener.accept_waiting().unwrap().is_none());
        drop(listener);
        assert_eq!(waiting.local_addr().unwrap(), peer);
        taken.write_all(b"pong").await.unwrap();
        let mut seen = [0; 4];
        io::Read::read_exact(&mut waiting, &mut seen).unwrap();
        assert_eq!(&seen, b"pong");
    }

    #[tokio::test]
    async fn a_queue_lives_as_long_as_one_descriptor_of_its_socket() {
        let io = Real::new();
        let bound = io.bind("127.0.0.1:0".parse().unwrap(), Share::First).unwrap();
        let address = bound.local_addr().unwrap();
        let other = io.share_bound(&bound).unwrap();
        let _waiting = std::net::TcpStream::connect(address).unwrap();
        drop(bound);
        let other = io.listen(other).unwrap();
        assert!(other.accept_waiting().unwrap().is_some());
    }

    #[test]
    fn a_clock_goes_on_from_another_one() {
        let earlier = Timestamp::from_secs(1);
        let io = Real::at(earlier);
        assert!(io.now() >= earlier && io.now() < Timestamp::from_secs(1000));
    }

    #[tokio::test]
    async fn connections_start_where_they_are_told_to() {
        let io = Real::new();
        let listener = io.listen(io.bind("127.0.0.1:0".parse().unwrap(), Share::First).unwrap()).unwrap();
        let address = Listener::local_addr(&listener).unwrap();
        let client = io.connect_from(Some("127.0.0.7".parse().unwrap()), address).await.unwrap();
        assert_eq!(Stream::local_addr(&client).unwrap().ip().to_string(), "127.0.0.7");
        // An address that no interface of this host has (TEST-NET-1).
        let error = io.connect_from(Some("192.0.2.77".parse().unwrap()), address).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    }

    #[tokio::test]
    async fn the_end_of_time_does_not_come() {
        let io = Real::new();
        let asleep = io.sleep_until(Timestamp::MAX);
        assert!(tokio::time::timeout(Duration::from_millis(5), asleep).await.is_err());
        io.sleep_until(Timestamp::ZERO).await;
    }
}
