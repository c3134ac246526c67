//! Conversations of WebSocket frames, good and bad ones, as bytes (RFC 6455): what a server answers to them directly is
//! what it must answer through a proxy.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// A frame of a client: masked.
#[derive(Clone, Debug)]
pub struct Frame {
    /// FIN, RSV and opcode.
    pub first: u8,
    /// Its content before masking.
    pub payload: Vec<u8>,
}

/// A frame with this first byte.
pub fn frame(first: u8, payload: impl AsRef<[u8]>) -> Frame {
    Frame { first, payload: payload.as_ref().to_vec() }
}

impl Frame {
    /// Its bytes on the wire.
    pub fn bytes(&self) -> Vec<u8> {
        const KEY: [u8; 4] = [7, 130, 33, 99];
        let mut bytes = vec![self.first];
        match self.payload.len() {
            length @ 0..126 => bytes.push(0x80 | length as u8),
            length @ 126..65_536 => {
                bytes.push(0x80 | 126);
                bytes.extend_from_slice(&(length as u16).to_be_bytes());
            }
            length => {
                bytes.push(0x80 | 127);
                bytes.extend_from_slice(&(length as u64).to_be_bytes());
            }
        }
        bytes.extend_from_slice(&KEY);
        bytes.extend(self.payload.iter().zip(KEY.iter().cycle()).map(|(byte, key)| byte ^ key));
        bytes
    }
}

/// A close frame with a status.
pub fn close(code: u16, reason: &str) -> Frame {
    frame(0x88, [&code.to_be_bytes()[..], reason.as_bytes()].concat())
}

/// Opens a WebSocket at `/socket`, sends all frames in pieces of `piece` bytes, and gives everything that came until the
/// server closed. The head of the answer is left out: its `Date` may differ.
pub fn converse(to: SocketAddr, frames: &[Frame], piece: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect_timeout(&to, Duration::from_secs(5)).expect("somebody listens");
    stream.set_nodelay(true).expect("an open socket");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("an open socket");
    let opening = "GET /socket HTTP/1.1\r\nHost: site.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(opening.as_bytes()).expect("an open socket");
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a whole head");
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    let bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
    let reading = stream.try_clone().expect("an open socket");
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || {
            let mut reading = reading;
            let mut got = Vec::new();
            let mut buffer = [0; 16 * 1024];
            // A server that closes over unread frames resets; what came before counts.
            while let Ok(1..) = reading.read(&mut buffer).inspect(|&n| got.extend_from_slice(&buffer[..n])) {}
            got
        });
        for part in bytes.chunks(piece) {
            if stream.write_all(part).is_err() {
                break;
            }
        }
        let got = reading.join().expect("reading does not panic");
        let _ = stream.shutdown(Shutdown::Both);
        got
    })
}
