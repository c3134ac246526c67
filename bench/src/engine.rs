//! The load generator and the destinations: one thread, one epoll instance, no waiting.
//!
//! ```text
//!   client ──request──> proxy (other core) ──request──> destination
//!     ^                                                      │
//!     └──────────────── response <───────────────────────────┘      all ends of this picture are one loop
//! ```
//!
//! Requests are never pipelined.

mod client;
mod destination;
pub(crate) mod http2;

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use self::client::{Client, Outcome};
use self::destination::{Answered, Destination, Payload};
use crate::work::{Messages, Transport};

/// Where the destinations listen; also in the peers' configurations.
pub(crate) const DESTINATIONS: [u16; 3] = [19001, 19002, 19003];

pub(crate) struct Engine {
    epoll: Epoll,
    ends: Vec<End>,
    free: Vec<usize>,
    /// Indexes of the client ends, those that wait for work last.
    idle: Vec<usize>,
    events: Vec<EpollEvent>,
    buffer: Vec<u8>,
    request: Vec<u8>,
    payload: Payload,
    transport: Transport,
    tls: Arc<rustls::ClientConfig>,
    /// Requests whose time has come while no connection was free.
    due: VecDeque<Instant>,
    pace: Pace,
    pub(crate) tally: Tally,
    /// What a destination and a client saw last of the load, since it is aimed there.
    pub(crate) seen: Seen,
}

/// What was done since the tally was last taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    /// From the intended send time to the whole response; at a fixed rate only.
    pub(crate) latencies: Vec<Duration>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) request: Vec<u8>,
    /// Head and beginning of the body.
    pub(crate) response: Vec<u8>,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// Each connection sends its next one as soon as it has the answer.
    Closed,
    /// At random times, so many a second on average, whatever the proxy does.
    Poisson { rate: f64 },
}

enum End {
    Free,
    Listener(TcpListener),
    Destination(Destination),
    Client(Client),
}

impl Engine {
    pub(crate) fn new(messages: Messages, transport: Transport, tls: Arc<rustls::ClientConfig>) -> Result<Self> {
        let mut engine = Self {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            ends: Vec::new(),
            free: Vec::new(),
            idle: Vec::new(),
            events: vec![EpollEvent::empty(); 256],
            buffer: vec![0; 256 * 1024],
            request: Vec::new(),
            payload: Payload::new(&messages),
            transport,
            tls,
            due: VecDeque::new(),
            pace: Pace::Closed,
            tally: Tally::default(),
            seen: Seen::default(),
        };
        engine.request = match transport {
            Transport::Plain | Transport::Tls | Transport::TlsOnce => messages.request,
            Transport::Http2 => http2::request(client::SERVER_NAME),
        };
        for port in DESTINATIONS {
            let listener = TcpListener::bind(("127.0.0.1", port)).with_context(|| format!("127.0.0.1:{port}"))?;
            listener.set_nonblocking(true)?;
            engine.add(End::Listener(listener))?;
        }
        Ok(engine)
    }

    /// Opens client connections to a proxy, in place of the former ones.
    pub(crate) fn aim(&mut self, proxy: SocketAddr, connections: usize) -> Result<()> {
        for at in 0..self.ends.len() {
            if matches!(self.ends.get(at), Some(End::Client(_))) {
                self.release(at);
            }
        }
        self.idle.clear();
        self.due.clear();
        self.pace = Pace::Closed;
        for number in 0..connections {
            self.connect(proxy)?;
            // A proxy that accepts in turns has to come to it.
            if number % 256 == 255 {
                self.turn()?;
            }
        }
        self.tally = Tally::default();
        self.seen = Seen::default();
        Ok(())
    }

    /// Sends at `pace` for so long; `sample` is called each `window`.
    pub(crate) fn run(
        &mut self,
        pace: Pace,
        length: Duration,
        window: Duration,
        mut sample: impl FnMut(&Tally),
    ) -> Result<()> {
        self.pace = pace;
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let start = Instant::now();
        let (mut next_window, mut next_arrival) = (start + window, start);
        loop {
            let now = Instant::now();
            if now >= next_window {
                sample(&self.tally);
                next_window += window;
            }
            if now >= start + length {
                return Ok(());
            }
            match pace {
                Pace::Closed => {
                    while let Some(at) = self.idle.pop() {
                        self.send(at, now)?;
                    }
                }
                Pace::Poisson { rate } => {
                    while next_arrival <= now {
                        self.due.push_back(next_arrival);
                        next_arrival += gap(&mut random, rate);
                    }
                    while let Some(&intended) = self.due.front() {
                        let Some(at) = self.idle.pop() else { break };
                        self.due.pop_front();
                        self.send(at, intended)?;
                    }
                }
            }
            self.turn()?;
        }
    }

    /// Each connection sends one request, a few at a time.
    pub(crate) fn once_each(&mut self) -> Result<()> {
        let all = std::mem::take(&mut self.idle);
        for some in all.chunks(64) {
            let before = self.tally.answered + self.tally.failed;
            for &at in some {
                self.send(at, Instant::now())?;
            }
            let deadline = Instant::now() + Duration::from_secs(5);
            while self.tally.answered + self.tally.failed < before + some.len() as u64 && Instant::now() < deadline {
                self.turn()?;
            }
        }
        Ok(())
    }

    /// Waits for the answers that are still out.
    pub(crate) fn settle(&mut self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(5);
        self.due.clear();
        while Instant::now() < deadline
            && self.ends.iter().any(|end| matches!(end, End::Client(client) if client.is_waiting()))
        {
            self.turn()?;
        }
        Ok(())
    }

    /// Sends nothing for a while, but goes on answering as the destinations: probes must not find them dead.
    pub(crate) fn idle(&mut self, span: Duration) -> Result<()> {
        let deadline = Instant::now() + span;
        while Instant::now() < deadline {
            self.turn()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Answers as the destinations until `is_over` says so; others make the load.
    pub(crate) fn answer_until(&mut self, mut is_over: impl FnMut() -> Result<bool>) -> Result<()> {
        let mut looked = Instant::now();
        loop {
            self.wait(EpollTimeout::from(5_u8))?;
            if looked.elapsed() > Duration::from_millis(20) {
                looked = Instant::now();
                if is_over()? {
                    return Ok(());
                }
            }
        }
    }

    fn turn(&mut self) -> Result<()> {
        self.wait(EpollTimeout::ZERO)
    }

    fn wait(&mut self, timeout: EpollTimeout) -> Result<()> {
        let mut events = std::mem::take(&mut self.events);
        let n = match self.epoll.wait(&mut events, timeout) {
            Ok(n) => n,
            Err(nix::Error::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        for event in events.iter().take(n) {
            self.ready(event.data() as usize)?;
        }
        self.events = events;
        Ok(())
    }

    fn ready(&mut self, at: usize) -> Result<()> {
        match self.ends.get_mut(at) {
            Some(End::Listener(listener)) => {
                let accepted = listener.accept();
                let Ok((stream, _)) = accepted else { return Ok(()) };
                self.add(End::Destination(Destination::new(stream)?))?;
            }
            Some(End::Destination(destination)) => {
                let answered = destination.turn(&mut self.buffer, &self.payload, &mut self.seen.request);
                match answered {
                    Answered::Waits => {}
                    Answered::Blocked => self.watch(at, EpollFlags::EPOLLOUT)?,
                    Answered::Unblocked => self.watch(at, EpollFlags::EPOLLIN)?,
                    Answered::Over => self.release(at),
                }
            }
            Some(End::Client(client)) => {
                let outcome = client.read(&mut self.buffer);
                self.judge(at, outcome)?;
            }
            Some(End::Free) | None => {}
        }
        Ok(())
    }

    fn judge(&mut self, at: usize, outcome: Outcome) -> Result<()> {
        let Some(End::Client(client)) = self.ends.get_mut(at) else { return Ok(()) };
        match outcome {
            Outcome::Partial => {}
            Outcome::Whole(intended) => {
                self.tally.answered += 1;
                if matches!(self.pace, Pace::Poisson { .. }) {
                    self.tally.latencies.push(intended.elapsed());
                }
                if self.seen.response != client.beginning() {
                    self.seen.response = client.beginning().to_vec();
                }
                client.next();
                if self.transport == Transport::TlsOnce {
                    let proxy = client.proxy();
                    self.release(at);
                    self.connect(proxy)?;
                } else {
                    self.idle.push(at);
                }
            }
            Outcome::Refused => {
                self.tally.failed += 1;
                client.next();
                self.idle.push(at);
            }
            Outcome::Broken => {
                self.tally.failed += 1;
                let proxy = client.proxy();
                self.release(at);
                ensure!(self.tally.failed < 1000, "a proxy closes connections");
                // A peer that is gone altogether ends the run.
                self.connect(proxy)?;
            }
        }
        Ok(())
    }

    fn connect(&mut self, proxy: SocketAddr) -> Result<()> {
        let tls = match self.transport {
            Transport::Plain => None,
            Transport::Tls | Transport::TlsOnce | Transport::Http2 => Some(Arc::clone(&self.tls)),
        };
        let client = Client::connect(proxy, tls)?;
        let client = if self.transport == Transport::Http2 { client.in_http2() } else { client };
        let at = self.add(End::Client(client))?;
        self.idle.push(at);
        Ok(())
    }

    fn send(&mut self, at: usize, intended: Instant) -> Result<()> {
        if let Some(End::Client(client)) = self.ends.get_mut(at)
            && client.send(&self.request, intended).is_err()
        {
            self.judge(at, Outcome::Broken)?;
        }
        Ok(())
    }

    fn add(&mut self, end: End) -> Result<usize> {
        let at = self.free.pop().unwrap_or_else(|| {
            self.ends.push(End::Free);
            self.ends.len() - 1
        });
        let event = EpollEvent::new(EpollFlags::EPOLLIN, at as u64);
        match &end {
            End::Free => {}
            End::Listener(listener) => self.epoll.add(listener, event)?,
            End::Destination(destination) => self.epoll.add(&destination.stream, event)?,
            End::Client(client) => self.epoll.add(&client.stream, event)?,
        }
        if let Some(place) = self.ends.get_mut(at) {
            *place = end;
        }
        Ok(at)
    }

    fn watch(&self, at: usize, flags: EpollFlags) -> Result<()> {
        if let Some(End::Destination(destination)) = self.ends.get(at) {
            self.epoll.modify(&destination.stream, &mut EpollEvent::new(flags, at as u64))?;
        }
        Ok(())
    }

    /// Closing takes it out of epoll.
    fn release(&mut self, at: usize) {
        if let Some(end) = self.ends.get_mut(at) {
            *end = End::Free;
            self.free.push(at);
        }
    }
}

/// Exponential gaps make Poisson arrivals.
fn gap(random: &mut u64, rate: f64) -> Duration {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    let unit = ((*random >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
    Duration::from_secs_f64((-unit.ln() / rate).min(1.0))
}
