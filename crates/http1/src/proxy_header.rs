//! The PROXY header, versions 1 and 2: what a relay of connections says of the client it stands for, in front of the
//! connection's own bytes (HAProxy, "The PROXY protocol", versions 1 and 2, 2020).
//!
//! It is no part of HTTP, and stands here because it is one more thing that a connection's bytes are read for: bytes in,
//! facts out. A header is bounded by [`MAX_BYTES`]; nothing is guessed, and what is not exactly one is refused as soon
//! as that shows. What it says is believed or not by those who know the relay. [`write()`] is the other way, in version 2.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What bytes come to so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// More is needed.
    Partial,
    /// It is complete.
    Complete {
        /// Its bytes; what follows belongs to the connection.
        length: usize,
        /// The client that the relay stands for; `None`: the relay speaks for itself (LOCAL), or does not say whom it
        /// stands for (UNKNOWN, UNSPEC, UNIX). Then the peer is the client.
        client: Option<SocketAddr>,
        /// The address that the client connected to; named whenever the client is.
        server: Option<SocketAddr>,
    },
}

/// What a header of ours says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnBehalf {
    /// The connection is our own (LOCAL).
    Ourselves,
    /// It stands for a client.
    Client {
        /// The client.
        client: SocketAddr,
        /// The address that it connected to.
        server: SocketAddr,
    },
}

/// Why bytes are no PROXY header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeaderError {
    /// They begin otherwise.
    Absent,
    /// It is longer than it may be.
    TooLong,
    /// It breaks the rules of its version.
    Malformed,
}

impl ProxyHeaderError {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "no PROXY header",
            Self::TooLong => "a PROXY header that is too long",
            Self::Malformed => "a malformed PROXY header",
        }
    }
}

/// No header is longer: 107 in version 1, 536 in version 2.
pub const MAX_BYTES: usize = 536;

/// Looks at the bytes that a connection began with, from its very first one.
///
/// # Errors
/// No more bytes can make a header of them.
pub fn parse(bytes: &[u8]) -> Result<ProxyHeader, ProxyHeaderError> {
    if begins(bytes, V1) {
        return if bytes.len() < V1.len() { Ok(ProxyHeader::Partial) } else { text(bytes) };
    }
    if begins(bytes, V2) {
        return if bytes.len() < V2_FIXED { Ok(ProxyHeader::Partial) } else { binary(bytes) };
    }
    Err(ProxyHeaderError::Absent)
}

/// The header of version 2 that says `who`; 52 bytes at most. One family stands for both addresses: when they differ, the
/// IPv4 one is written as IPv6 has it (`::ffff:192.0.2.7`).
pub fn write(who: OnBehalf) -> Vec<u8> {
    let OnBehalf::Client { client, server } = who else { return [V2, &[LOCAL, UNSPEC, 0, 0]].concat() };
    let ports = [client.port().to_be_bytes(), server.port().to_be_bytes()].concat();
    match (client.ip().to_canonical(), server.ip().to_canonical()) {
        (IpAddr::V4(client), IpAddr::V4(server)) => {
            [V2, &[PROXY, TCP4, 0, 12], &client.octets(), &server.octets(), &ports].concat()
        }
        (client, server) => {
            let octets = |ip: IpAddr| match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            [V2, &[PROXY, TCP6, 0, 36], &octets(client), &octets(server), &ports].concat()
        }
    }
}

/// Whether the bytes begin with `signature`, as far as there are any.
fn begins(bytes: &[u8], signature: &[u8]) -> bool {
    bytes.iter().zip(signature).all(|(one, other)| one == other)
}

/// Version 1: one line of text.
fn text(bytes: &[u8]) -> Result<ProxyHeader, ProxyHeaderError> {
    let window = bytes.get(..V1_MAX).unwrap_or(bytes);
    let Some(end) = window.windows(2).position(|pair| pair == b"\r\n") else {
        let is_full = bytes.len() >= V1_MAX;
        return if is_full { Err(ProxyHeaderError::TooLong) } else { Ok(ProxyHeader::Partial) };
    };
    let line = window.get(V1.len()..end).and_then(|line| std::str::from_utf8(line).ok());
    let mut words = line.ok_or(ProxyHeaderError::Malformed)?.split(' ');
    let length = end + 2;
    let family = words.next();
    // What follows UNKNOWN is to be passed over, whatever it is.
    if family == Some("UNKNOWN") {
        return Ok(ProxyHeader::Complete { length, client: None, server: None });
    }
    let mut word = || words.next().ok_or(ProxyHeaderError::Malformed);
    let (source, destination, port, destination_port) = (word()?, word()?, word()?, word()?);
    let address = |text: &str| match family {
        Some("TCP4") => text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        Some("TCP6") => text.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        Some(_) | None => None,
    };
    let all = (address(source), address(destination), port_of(port), port_of(destination_port), words.next());
    let (Some(source), Some(destination), Some(port), Some(destination_port), None) = all else {
        return Err(ProxyHeaderError::Malformed);
    };
    let client = Some(SocketAddr::new(source, port));
    Ok(ProxyHeader::Complete { length, client, server: Some(SocketAddr::new(destination, destination_port)) })
}

/// A port as it has to be written: digits without a leading zero.
fn port_of(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}

/// Version 2: signature, version and command, family, length, addresses, extensions (which are passed over).
fn binary(bytes: &[u8]) -> Result<ProxyHeader, ProxyHeaderError> {
    let fixed = bytes.get(V2.len()..V2_FIXED).unwrap_or_default();
    let &[command, family, high, low] = fixed else { return Err(ProxyHeaderError::Malformed) };
    let length = V2_FIXED + usize::from(u16::from_be_bytes([high, low]));
    if length > MAX_BYTES {
        return Err(ProxyHeaderError::TooLong);
    }
    let is_local = match command {
        LOCAL => true,
        PROXY => false,
        0..=0x1f | 0x22..=0xff => return Err(ProxyHeaderError::Malformed),
    };
    let Some(body) = bytes.get(V2_FIXED..length) else { return Ok(ProxyHeader::Partial) };
    let (client, server) = match (is_local, family) {
        (true, _) | (false, UNSPEC | UNIX_STREAM) => {
            return Ok(ProxyHeader::Complete { length, client: None, server: None });
        }
        (false, TCP4) => {
            let ip = |at| part::<4>(body, at).map(|octets| IpAddr::V4(Ipv4Addr::from(octets)));
            addresses(body, ip(0)?, ip(4)?, 8)?
        }
        (false, TCP6) => {
            let ip = |at| part::<16>(body, at).map(|octets| IpAddr::V6(Ipv6Addr::from(octets)));
            addresses(body, ip(0)?, ip(16)?, 32)?
        }
        (false, _) => return Err(ProxyHeaderError::Malformed),
    };
    Ok(ProxyHeader::Complete { length, client: Some(client), server: Some(server) })
}

/// Both addresses, with their ports, which lie at `ports`.
fn addresses(
    body: &[u8],
    client: IpAddr,
    server: IpAddr,
    ports: usize,
) -> Result<(SocketAddr, SocketAddr), ProxyHeaderError> {
    let port = |at| part::<2>(body, at).map(u16::from_be_bytes);
    Ok((SocketAddr::new(client, port(ports)?), SocketAddr::new(server, port(ports + 2)?)))
}

/// The bytes at `at`.
fn part<const N: usize>(body: &[u8], at: usize) -> Result<[u8; N], ProxyHeaderError> {
    let part = body.get(at..).and_then(|rest| rest.first_chunk::<N>());
    part.copied().ok_or(ProxyHeaderError::Malformed)
}

const V1: &[u8] = b"PROXY ";
const V1_MAX: usize = 107;
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const V2_FIXED: usize = 16;
const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;
const UNSPEC: u8 = 0x00;
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;
const UNIX_STREAM: u8 = 0x31;
