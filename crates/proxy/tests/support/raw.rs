//! HTTP/2 frames, byte by byte, for what no library sends.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use h2::Reason;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;

/// A connection.
pub struct Raw {
    pub stream: TcpStream,
    input: Vec<u8>,
}

/// One frame.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// The code of RST_STREAM.
    pub fn code(&self) -> Reason {
        Reason::from(u32::from_be_bytes(self.payload[..4].try_into().unwrap()))
    }

    /// The code of GOAWAY.
    pub fn goaway_code(&self) -> Reason {
        Reason::from(u32::from_be_bytes(self.payload[4..8].try_into().unwrap()))
    }
}

/// A literal field without indexing (RFC 7541 6.2.2), up to 126 bytes each.
pub fn field(name: &str, value: &str) -> Vec<u8> {
    assert!(name.len() < 127 && value.len() < 127);
    let mut block = vec![0, name.len() as u8];
    block.extend_from_slice(name.as_bytes());
    block.push(value.len() as u8);
    block.extend_from_slice(value.as_bytes());
    block
}

impl Raw {
    /// Connects, sends preface and SETTINGS.
    pub fn connect(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut raw = Self { stream, input: Vec::new() };
        raw.stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        raw.frame(SETTINGS, 0, 0, &[]);
        raw
    }

    pub fn bytes(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    pub fn try_frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        self.stream.write_all(&Self::bytes(kind, flags, stream, payload))
    }

    /// Sends a frame; the peer may be gone.
    pub fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let _ = self.try_frame(kind, flags, stream, payload);
    }

    pub fn headers(&mut self, stream: u32, block: &[u8], flags: u8) {
        self.frame(HEADERS, flags, stream, block);
    }

    /// Waits until everything sent before was seen.
    pub fn ping(&mut self) {
        self.frame(PING, 0, 0, b"waitwait");
        while let Some(frame) = self.next() {
            if frame.kind == PING && frame.flags & 1 == 1 {
                return;
            }
            if frame.kind == GOAWAY {
                self.input.splice(0..0, Self::bytes(GOAWAY, frame.flags, 0, &frame.payload));
                return;
            }
        }
    }

    /// The next frame of this kind; others are passed over.
    pub fn expect(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.next().unwrap_or_else(|| panic!("the connection ended before a frame of kind {kind}"));
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// A frame of this kind, if one is there already.
    pub fn poll(&mut self, kind: u8) -> Option<Frame> {
        self.stream.set_nonblocking(true).unwrap();
        let mut bytes = [0; 4096];
        while let Ok(length) = self.stream.read(&mut bytes) {
            self.input.extend_from_slice(&bytes[..length]);
            if length == 0 {
                break;
            }
        }
        self.stream.set_nonblocking(false).unwrap();
        while let Some(frame) = self.take() {
            if frame.kind == kind {
                return Some(frame);
            }
        }
        None
    }

    /// All frames up to the end of the connection.
    pub fn rest(&mut self) -> Vec<Frame> {
        std::iter::from_fn(|| self.next()).collect()
    }

    fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.take() {
                return Some(frame);
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) | Err(_) => return None,
                Ok(length) => self.input.extend_from_slice(&bytes[..length]),
            }
        }
    }

    fn take(&mut self) -> Option<Frame> {
        let head = self.input.get(..9)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        let stream = u32::from_be_bytes(head[5..9].try_into().unwrap()) & 0x7fff_ffff;
        let payload = self.input.get(9..9 + length)?.to_vec();
        self.input.drain(..9 + length);
        Some(Frame { kind, flags, stream, payload })
    }
}
