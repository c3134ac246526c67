//! A destination that speaks HTTP/2 frame by frame, so that a test decides on each of them (RFC 9113 4, 6).
//!
//! ```no_run
//! use testkit::frames::{Frames, OK};
//!
//! let destination = Frames::start(|mut connection| {
//!     connection.greet(&[]);
//!     while let Some(request) = connection.request() {
//!         connection.headers(request.stream, OK, &[], true);
//!     }
//! });
//! assert_eq!(destination.connections(), 0);
//! ```
//! Fields are written as literals; those of requests stay compressed, a script goes by streams and numbers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// `:status: 200`, as HPACK's static table has it (RFC 7541 appendix A).
pub const OK: &[u8] = &[0x88];

/// A listening destination; its connections end with the test's process.
pub struct Frames {
    /// Where it listens.
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
    pings: Arc<AtomicUsize>,
}

/// One connection.
pub struct Connection {
    stream: TcpStream,
    /// Which one of its destination, from 1.
    pub number: usize,
    pings: Arc<AtomicUsize>,
}

/// A request that came whole.
pub struct Request {
    /// Its stream.
    pub stream: u32,
    /// Bytes of its body.
    pub body: usize,
}

impl Frames {
    /// Listens on loopback and runs `script` on a thread for each connection.
    pub fn start(script: impl Fn(Connection) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let pings = Arc::new(AtomicUsize::new(0));
        let of_all = Arc::clone(&pings);
        let (counted, script) = (Arc::clone(&connections), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
                let (script, pings) = (Arc::clone(&script), Arc::clone(&of_all));
                stream.set_read_timeout(Some(LONGEST)).expect("a timeout");
                stream.set_nodelay(true).expect("an option");
                std::thread::spawn(move || script(Connection { stream, number, pings }));
            }
        });
        Self { address, connections, pings }
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// PINGs that came so far, answered or not.
    pub fn pings(&self) -> usize {
        self.pings.load(Ordering::SeqCst)
    }
}

impl Connection {
    /// Reads the client's preface and sends SETTINGS of these identifiers and values.
    pub fn greet(&mut self, settings: &[(u16, u32)]) {
        let mut preface = [0; 24];
        if self.stream.read_exact(&mut preface).is_err() || &preface != b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" {
            return;
        }
        let values = settings.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat());
        self.frame(4, 0, 0, &values.collect::<Vec<_>>());
    }

    /// The next request that is whole; settings and pings are answered meanwhile, room is given back. `None`: the client
    /// is gone.
    pub fn request(&mut self) -> Option<Request> {
        let mut bodies = std::collections::BTreeMap::new();
        loop {
            let (kind, flags, stream, payload) = self.read()?;
            match kind {
                0 => {
                    *bodies.entry(stream).or_insert(0) += payload.len();
                    if !payload.is_empty() {
                        let room = u32::try_from(payload.len()).expect("a frame's length").to_be_bytes();
                        self.frame(8, 0, 0, &room);
                        self.frame(8, 0, stream, &room);
                    }
                }
                1 => {
                    bodies.entry(stream).or_insert(0);
                }
                4 if flags & 1 == 0 => self.frame(4, 1, 0, &[]),
                6 if flags & 1 == 0 => self.frame(6, 1, 0, &payload),
                7 => return None,
                _ => {}
            }
            if kind <= 1 && flags & END_STREAM != 0 {
                return Some(Request { stream, body: bodies.remove(&stream).unwrap_or_default() });
            }
        }
    }

    /// The stream of the next request whose head has come, whatever becomes of its body. `None`: the client is gone.
    pub fn head(&mut self) -> Option<u32> {
        loop {
            let (kind, flags, stream, _) = self.read()?;
            match kind {
                1 => return Some(stream),
                4 if flags & ACK == 0 => self.frame(4, ACK, 0, &[]),
                _ => {}
            }
        }
    }

    /// HEADERS: an encoded block, then literal fields.
    pub fn headers(&mut self, stream: u32, block: &[u8], fields: &[(&str, &str)], is_end: bool) {
        let mut block = block.to_vec();
        for (name, value) in fields {
            block.push(0);
            for text in [name, value] {
                block.push(u8::try_from(text.len()).ok().filter(|length| *length < 127).expect("a short text"));
                block.extend_from_slice(text.as_bytes());
            }
        }
        let end = if is_end { END_STREAM } else { 0 };
        self.frame(1, END_HEADERS | end, stream, &block);
    }

    /// DATA.
    pub fn data(&mut self, stream: u32, bytes: &[u8], is_end: bool) {
        self.frame(0, if is_end { END_STREAM } else { 0 }, stream, bytes);
    }

    /// RST_STREAM.
    pub fn reset(&mut self, stream: u32, code: u32) {
        self.frame(3, 0, stream, &code.to_be_bytes());
    }

    /// GOAWAY.
    pub fn go_away(&mut self, last: u32, code: u32) {
        self.frame(7, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat());
    }

    /// Any frame. A client that is gone does not get it.
    pub fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("a frame's length").to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend_from_slice(&[kind, flags]);
        frame.extend_from_slice(&stream.to_be_bytes());
        frame.extend_from_slice(payload);
        let _ = self.stream.write_all(&frame);
    }

    /// Reads and drops what comes until the client is gone.
    pub fn stall(&mut self) {
        while self.read().is_some() {}
    }

    fn read(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).ok()?;
        let [l1, l2, l3, kind, flags, s1, s2, s3, s4] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, l1, l2, l3]) as usize];
        self.stream.read_exact(&mut payload).ok()?;
        if kind == PING && flags & ACK == 0 {
            self.pings.fetch_add(1, Ordering::SeqCst);
        }
        Some((kind, flags, u32::from_be_bytes([s1 & 0x7f, s2, s3, s4]), payload))
    }
}

const PING: u8 = 6;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// No test waits longer for a frame.
const LONGEST: Duration = Duration::from_secs(30);
