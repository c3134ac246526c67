//! A network in memory on tokio's clock.
//!
//! An address behaves as a host would: it accepts while somebody listens there and refuses otherwise, unless a
//! [`Behaviour`] is set for it. With tokio's clock paused, everything runs in virtual time; nothing is random.
//!
//! ```text
//!   connect(a) ──> Behaviour of a? ──refuse, unreachable, fail──> error
//!                    │        └───────hang──> never
//!                    └──accept, after the latency──> pair of streams ──> queue of a's listener ──> accept()
//! ```

mod pipe;
mod stream;

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use model::time::Timestamp;
use tokio::time::Instant;

pub use self::stream::SimStream;
use crate::{Io, Listener, NEVER, Share};

/// The simulated network; copies are the same network. Make it inside the runtime whose clock it shall follow.
#[derive(Clone)]
pub struct Sim {
    start: Instant,
    network: Arc<Mutex<Network>>,
}

/// What becomes of connections to an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Behaviour {
    /// Accepted while somebody listens, refused otherwise.
    #[default]
    Accept,
    /// Refused at once.
    Refuse,
    /// The network says that there is no way to it.
    Unreachable,
    /// Packets vanish: connecting never ends.
    Hang,
    /// Fails with this error of the system (`errno`).
    Fail(i32),
}

impl Sim {
    /// An empty network; time starts here.
    #[expect(clippy::new_without_default, reason = "reads the clock: two defaults would not be equal")]
    pub fn new() -> Self {
        Self { start: Instant::now(), network: Arc::new(Mutex::new(Network::default())) }
    }

    /// What becomes of connections to `address` from now on.
    pub fn set_behaviour(&self, address: SocketAddr, behaviour: Behaviour) {
        self.network().behaviours.insert(address, behaviour);
    }

    /// Connecting to `address` takes `latency`, and so does each write until the other end can read it, both ways;
    /// for connections made from now on.
    pub fn set_latency(&self, address: SocketAddr, latency: Duration) {
        self.network().latencies.insert(address, latency);
    }

    /// Connections to `address` that were accepted by the network so far.
    pub fn accepted(&self, address: SocketAddr) -> u64 {
        self.network().accepted.get(&address).copied().unwrap_or(0)
    }

    fn network(&self) -> MutexGuard<'_, Network> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Io for Sim {
    type Stream = SimStream;
    type Bound = SimListener;
    type Listener = SimListener;

    fn now(&self) -> Timestamp {
        Timestamp::ZERO + self.start.elapsed()
    }

    fn instant(&self, at: Timestamp) -> Instant {
        self.start + at.since(Timestamp::ZERO).min(NEVER)
    }

    async fn connect_from(&self, from: Option<IpAddr>, to: SocketAddr) -> io::Result<SimStream> {
        let latency = self.network().latencies.get(&to).copied().unwrap_or(Duration::ZERO);
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        let behaviour = self.network().behaviours.get(&to).copied().unwrap_or_default();
        match behaviour {
            Behaviour::Accept => self.network().connect(from, to, latency),
            Behaviour::Refuse => Err(io::ErrorKind::ConnectionRefused.into()),
            Behaviour::Unreachable => Err(io::ErrorKind::HostUnreachable.into()),
            Behaviour::Hang => std::future::pending().await,
            Behaviour::Fail(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    fn bind(&self, address: SocketAddr, share: Share) -> io::Result<SimListener> {
        let address = self.network().bind(address, share)?;
        Ok(SimListener { address, network: Arc::clone(&self.network) })
    }

    fn bound_addr(&self, bound: &SimListener) -> io::Result<SocketAddr> {
        Ok(bound.address)
    }

    fn share_bound(&self, bound: &SimListener) -> io::Result<SimListener> {
        self.bind(bound.address, Share::Join)
    }

    fn listen(&self, bound: SimListener) -> io::Result<SimListener> {
        Ok(bound)
    }
}

/// A listening address. Dropping the last one of an address closes it and resets what waits there.
pub struct SimListener {
    address: SocketAddr,
    network: Arc<Mutex<Network>>,
}

impl SimListener {
    fn network(&self) -> MutexGuard<'_, Network> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for SimListener {
    type Stream = SimStream;

    async fn accept(&self) -> io::Result<(SimStream, SocketAddr)> {
        let stream = poll_fn(|context| {
            let mut network = self.network();
            match network.ports.get_mut(&self.address) {
                None => Poll::Ready(Err(io::Error::from(io::ErrorKind::NotConnected))),
                Some(port) => match port.waiting.pop_front() {
                    Some(stream) => Poll::Ready(Ok(stream)),
                    None => {
                        port.wakers.push(context.waker().clone());
                        Poll::Pending
                    }
                },
            }
        })
        .await?;
        let peer = crate::Stream::peer_addr(&stream)?;
        Ok((stream, peer))
    }

    fn accept_waiting(&self) -> io::Result<Option<(SimStream, SocketAddr)>> {
        let waiting = self.network().ports.get_mut(&self.address).and_then(|port| port.waiting.pop_front());
        let Some(stream) = waiting else { return Ok(None) };
        let peer = crate::Stream::peer_addr(&stream)?;
        Ok(Some((stream, peer)))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        let mut network = self.network();
        let Some(port) = network.ports.get_mut(&self.address) else { return };
        port.listeners -= 1;
        if port.listeners == 0 {
            let closed = network.ports.remove(&self.address);
            drop(network);
            for stream in closed.into_iter().flat_map(|port| port.waiting) {
                crate::Stream::reset_on_drop(&stream);
            }
        }
    }
}

#[derive(Default)]
struct Network {
    behaviours: BTreeMap<SocketAddr, Behaviour>,
    latencies: BTreeMap<SocketAddr, Duration>,
    accepted: BTreeMap<SocketAddr, u64>,
    ports: BTreeMap<SocketAddr, Port>,
    last_port: u16,
}

/// The queue of connections that nobody accepted yet, shared by all listeners of the address.
#[derive(Default)]
struct Port {
    listeners: usize,
    waiting: VecDeque<SimStream>,
    wakers: Vec<Waker>,
}

impl Network {
    fn connect(&mut self, from: Option<IpAddr>, to: SocketAddr, latency: Duration) -> io::Result<SimStream> {
        let from = SocketAddr::new(from.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), self.free_port());
        let port = self.ports.get_mut(&to).ok_or(io::ErrorKind::ConnectionRefused)?;
        let (near, far) = stream::pair(from, to, latency);
        port.waiting.push_back(far);
        port.wakers.drain(..).for_each(Waker::wake);
        *self.accepted.entry(to).or_default() += 1;
        Ok(near)
    }

    fn bind(&mut self, mut address: SocketAddr, share: Share) -> io::Result<SocketAddr> {
        if address.port() == 0 {
            address.set_port(self.free_port());
        }
        let port = self.ports.entry(address).or_default();
        if share == Share::First && port.listeners > 0 {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        port.listeners += 1;
        Ok(address)
    }

    fn free_port(&mut self) -> u16 {
        self.last_port =
            if self.last_port < FIRST_FREE_PORT { FIRST_FREE_PORT } else { self.last_port.wrapping_add(1) };
        self.last_port.max(FIRST_FREE_PORT)
    }
}

/// Ports below are left to those who ask for them by number.
const FIRST_FREE_PORT: u16 = 32_768;

#[cfg(test)]
mod tests;
