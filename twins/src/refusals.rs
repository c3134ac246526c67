//! Connections that were refused, as the kernel's answers tell: what nobody who listens can count.
//!
//! A connection to a port where nobody listens is answered with RST and ACK, and the sequence number is zero (RFC 9293,
//! section 3.10.7.1); the reset of a connection that came about has another one. A raw socket, which only root and
//! `CAP_NET_RAW` may have, gets a copy of each, and a filter in the kernel lets nothing else through, so that watching costs
//! nothing while all is well. The answer's own port says whose destination refused; which connection it was, it does not say:
//! probes go to another port.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

/// Watches until it is asked for what it saw, or dropped.
pub struct Watch {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Refusals>>>,
}

/// When connections to each port were refused, in order.
pub type Refusals = BTreeMap<u16, Vec<Instant>>;

/// A socket that can watch, or why there is none.
pub fn socket() -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::TCP))?;
    socket.attach_filter(&REFUSALS)?;
    socket.set_read_timeout(Some(LOOKS_UP))?;
    Ok(socket)
}

impl Watch {
    /// Watches these ports from now on.
    pub fn start(socket: Socket, ports: impl IntoIterator<Item = u16>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = ports.into_iter().map(|port| (port, Vec::new())).collect();
        let until = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || watch(&socket, seen, &until));
        Self { is_over, thread: Some(thread) }
    }

    /// What was seen. Takes a moment, so that what was refused just now is not missed.
    pub fn end(mut self) -> Result<Refusals> {
        self.is_over.store(true, Ordering::Relaxed);
        let thread = self.thread.take().context("it watches")?;
        let seen = thread.join().map_err(|_| anyhow!("who watched for refusals panicked"))?;
        seen.context("watching for refusals")
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Reads until it is over, and a moment longer.
fn watch(mut socket: &Socket, mut seen: Refusals, is_over: &AtomicBool) -> io::Result<Refusals> {
    let mut packet = [0; PACKET];
    let mut until = None;
    loop {
        if is_over.load(Ordering::Relaxed) && *until.get_or_insert_with(|| Instant::now() + LOOKS_UP) <= Instant::now()
        {
            return Ok(seen);
        }
        match socket.read(&mut packet) {
            Ok(length) => {
                let port = packet.get(..length).and_then(refusing_port);
                if let Some(times) = port.and_then(|port| seen.get_mut(&port)) {
                    if times.len() >= MOST {
                        return Err(io::Error::other("more connections were refused than any proxy would try"));
                    }
                    times.push(Instant::now());
                }
            }
            Err(error) if IDLE.contains(&error.kind()) => {}
            Err(error) => return Err(error),
        }
    }
}

/// The port that refuses, of an IPv4 packet that does so. The filter has looked already, but what came before it was in place
/// has not passed it.
fn refusing_port(packet: &[u8]) -> Option<u16> {
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let segment = packet.get(header..)?;
    let [port_high, port_low, _, _, sequence @ ..] = segment.get(..8)? else { return None };
    let is_refusal = sequence == [0; 4] && segment.get(FLAGS)? & ALL_FLAGS == RST_AND_ACK;
    is_refusal.then(|| u16::from_be_bytes([*port_high, *port_low]))
}

/// The same for the kernel (classic BPF, offsets from the beginning of the IPv4 header): operation, then how many to skip when
/// it is so and when not, and its operand.
const REFUSALS: [SockFilter; 8] = [
    // The length of the IPv4 header becomes the index.
    SockFilter::new(LOAD_HEADER_LENGTH, 0, 0, 0),
    SockFilter::new(LOAD_BYTE_AT_INDEX, 0, 0, FLAGS as u32),
    SockFilter::new(AND, 0, 0, ALL_FLAGS as u32),
    SockFilter::new(IS_EQUAL, 0, 3, RST_AND_ACK as u32),
    SockFilter::new(LOAD_WORD_AT_INDEX, 0, 0, SEQUENCE),
    SockFilter::new(IS_EQUAL, 0, 1, 0),
    SockFilter::new(RETURN, 0, 0, PACKET as u32),
    SockFilter::new(RETURN, 0, 0, 0),
];
const LOAD_HEADER_LENGTH: u16 = 0xb1;
const LOAD_BYTE_AT_INDEX: u16 = 0x50;
const LOAD_WORD_AT_INDEX: u16 = 0x40;
const AND: u16 = 0x54;
const IS_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// Places in a TCP header, and what stands there.
const SEQUENCE: u32 = 4;
const FLAGS: usize = 13;
const ALL_FLAGS: u8 = 0x3f;
const RST_AND_ACK: u8 = 0x14;

/// Of a packet, as much as both headers can have.
const PACKET: usize = 120;
/// Of one port.
const MOST: usize = 1_000_000;
const IDLE: [ErrorKind; 3] = [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted];
const LOOKS_UP: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// An IPv4 packet with options of so many words.
    fn packet(options: u8, sequence: u32, flags: u8) -> Vec<u8> {
        let mut packet = vec![0x45 + options];
        packet.resize(20 + usize::from(options) * 4, 0xff);
        packet.extend([0x1f, 0x90, 0xc0, 0x00]);
        packet.extend(sequence.to_be_bytes());
        packet.extend([0, 0, 0, 9, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        packet
    }

    #[test]
    fn a_refusal_is_a_reset_that_acknowledges_with_sequence_number_zero() {
        assert_eq!(refusing_port(&packet(0, 0, 0x14)), Some(8080));
        assert_eq!(refusing_port(&packet(2, 0, 0x14)), Some(8080));
        assert_eq!(refusing_port(&packet(0, 1, 0x14)), None, "of a connection that came about");
        assert_eq!(refusing_port(&packet(0, 0, 0x12)), None, "it is taken");
        assert_eq!(refusing_port(&packet(0, 0, 0x04)), None, "the connection's own end gives up");
        assert_eq!(refusing_port(&packet(0, 0, 0x14)[..30]), None);
        assert_eq!(refusing_port(&[]), None);
    }
}
