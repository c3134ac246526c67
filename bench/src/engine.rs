//! The load generator and the destinations: one thread, one epoll instance, no waiting.
//!
//! ```text
//!   client ──request──> proxy (other core) ──request──> destination
//!     ^                                                      │
//!     └──────────────── response <───────────────────────────┘      all ends of this picture are one loop
//! ```
//!
//! Requests never are pipelined and every message fits one read, so both ends are one read and one write per message.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// Where the destinations listen; also in the peers' configurations.
pub(crate) const DESTINATIONS: [u16; 3] = [19001, 19002, 19003];

/// About 330 bytes, as a browser sends them.
pub(crate) const REQUEST: &str = "GET /assets/articles/2024/overview?page=3 HTTP/1.1\r\n\
    Host: www.example.test\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Accept-Language: en-US,en;q=0.5\r\n\
    Accept-Encoding: gzip, deflate, br\r\n\
    Cookie: theme=dark; id=2f1c9a7be0\r\n\r\n";

/// 256 bytes of body behind 6 fields.
pub(crate) fn response() -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\n\
        Content-Type: text/html; charset=utf-8\r\n\
        Content-Length: 256\r\n\
        Cache-Control: max-age=60\r\n\
        ETag: \"5f3a-62c1\"\r\n\
        Date: Sun, 29 Nov 2026 12:00:00 GMT\r\n\
        Server: destination\r\n\r\n";
    [head.as_bytes(), &[b'x'; 256]].concat()
}

pub(crate) struct Engine {
    epoll: Epoll,
    ends: Vec<End>,
    /// Indexes of the client ends, those that wait for work last.
    idle: Vec<usize>,
    events: Vec<EpollEvent>,
    buffer: Vec<u8>,
    response: Vec<u8>,
    /// Requests whose time has come while no connection was free.
    due: VecDeque<Instant>,
    pace: Pace,
    pub(crate) tally: Tally,
    /// What a destination and a client saw last.
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
    pub(crate) response: Vec<u8>,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// Each connection sends its next one as soon as it has the answer.
    Closed,
    /// At random times, so many a second on average, whatever the proxy does.
    Poisson { rate: f64 },
}

enum End {
    Free,
    Listener(TcpListener),
    Destination(TcpStream),
    Client(Client),
}

struct Client {
    stream: TcpStream,
    /// When its request should have been sent; `None` while it is idle.
    intended: Option<Instant>,
    /// Bytes of the response so far.
    received: Vec<u8>,
    /// How long a whole response was the last time.
    usual: usize,
}

impl Engine {
    pub(crate) fn new() -> Result<Self> {
        let mut engine = Self {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            ends: Vec::new(),
            idle: Vec::new(),
            events: vec![EpollEvent::empty(); 256],
            buffer: vec![0; 64 * 1024],
            response: response(),
            due: VecDeque::new(),
            pace: Pace::Closed,
            tally: Tally::default(),
            seen: Seen::default(),
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
        for end in &mut self.ends {
            if matches!(end, End::Client(_)) {
                *end = End::Free;
            }
        }
        self.idle.clear();
        self.due.clear();
        self.pace = Pace::Closed;
        for _ in 0..connections {
            let stream = TcpStream::connect_timeout(&proxy, Duration::from_secs(2)).context("connecting a client")?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let client = Client { stream, intended: None, received: Vec::with_capacity(4096), usual: 0 };
            let at = self.add(End::Client(client))?;
            self.idle.push(at);
        }
        self.tally = Tally::default();
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

    /// Waits for the answers that are still out.
    pub(crate) fn settle(&mut self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(2);
        self.due.clear();
        while Instant::now() < deadline
            && self.ends.iter().any(|end| matches!(end, End::Client(client) if client.intended.is_some()))
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

    fn turn(&mut self) -> Result<()> {
        let mut events = std::mem::take(&mut self.events);
        let n = self.epoll.wait(&mut events, EpollTimeout::ZERO)?;
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
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                self.add(End::Destination(stream))?;
            }
            Some(End::Destination(stream)) => match stream.read(&mut self.buffer) {
                Ok(0) => self.free(at),
                Ok(n) => {
                    let request = self.buffer.get(..n).unwrap_or_default();
                    // A head in two pieces is answered after its second one.
                    if request.ends_with(b"\r\n\r\n") {
                        if self.seen.request != request {
                            self.seen.request = request.to_vec();
                        }
                        stream.write_all(&self.response).context("a destination answers")?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.free(at),
            },
            Some(End::Client(client)) => {
                let outcome = match client.stream.read(&mut self.buffer) {
                    Ok(0) => Outcome::Broken,
                    Ok(n) => client.take(self.buffer.get(..n).unwrap_or_default()),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => Outcome::Partial,
                    Err(_) => Outcome::Broken,
                };
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
                if self.seen.response != client.received {
                    self.seen.response.clone_from(&client.received);
                }
                client.received.clear();
                self.idle.push(at);
            }
            Outcome::Refused => {
                self.tally.failed += 1;
                client.received.clear();
                self.idle.push(at);
            }
            Outcome::Broken => {
                self.tally.failed += 1;
                let proxy = client.stream.peer_addr();
                self.free(at);
                ensure!(self.tally.failed < 1000, "a proxy closes connections");
                // A peer that is gone altogether ends the run.
                let stream = TcpStream::connect(proxy.context("a connection that was reset")?)?;
                stream.set_nonblocking(true)?;
                let client = Client { stream, intended: None, received: Vec::new(), usual: 0 };
                let at = self.add(End::Client(client))?;
                self.idle.push(at);
            }
        }
        Ok(())
    }

    fn send(&mut self, at: usize, intended: Instant) -> Result<()> {
        if let Some(End::Client(client)) = self.ends.get_mut(at) {
            client.intended = Some(intended);
            if client.stream.write_all(REQUEST.as_bytes()).is_err() {
                self.judge(at, Outcome::Broken)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, end: End) -> Result<usize> {
        let free = self.ends.iter().position(|end| matches!(end, End::Free));
        let at = free.unwrap_or_else(|| {
            self.ends.push(End::Free);
            self.ends.len() - 1
        });
        let event = EpollEvent::new(EpollFlags::EPOLLIN, at as u64);
        match &end {
            End::Free => {}
            End::Listener(listener) => self.epoll.add(listener, event)?,
            End::Destination(stream) | End::Client(Client { stream, .. }) => self.epoll.add(stream, event)?,
        }
        if let Some(place) = self.ends.get_mut(at) {
            *place = end;
        }
        Ok(at)
    }

    /// Closing takes it out of epoll.
    fn free(&mut self, at: usize) {
        if let Some(end) = self.ends.get_mut(at) {
            *end = End::Free;
        }
    }
}

enum Outcome {
    Partial,
    /// With the time when its request should have been sent.
    Whole(Instant),
    /// Whole, but not the destination's.
    Refused,
    Broken,
}

impl Client {
    fn take(&mut self, bytes: &[u8]) -> Outcome {
        self.received.extend_from_slice(bytes);
        let is_usual = self.received.len() == self.usual;
        if !is_usual {
            let Some(length) = length(&self.received) else { return Outcome::Partial };
            if self.received.len() < length {
                return Outcome::Partial;
            }
            self.usual = length;
        }
        let intended = self.intended.take();
        match intended {
            Some(intended) if self.received.get(9..12) == Some(b"200") && self.received.len() == self.usual => {
                Outcome::Whole(intended)
            }
            Some(_) | None => Outcome::Refused,
        }
    }
}

/// Length of the whole response, when its head is there.
fn length(received: &[u8]) -> Option<usize> {
    let head = received.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(received.get(..head)?).to_lowercase();
    let value = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    Some(head + value.and_then(|value| value.trim().parse::<usize>().ok()).unwrap_or(0))
}

/// Exponential gaps make Poisson arrivals.
fn gap(random: &mut u64, rate: f64) -> Duration {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    let unit = ((*random >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
    Duration::from_secs_f64((-unit.ln() / rate).min(1.0))
}
