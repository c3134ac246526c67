//! Opens a connection: name, TCP and TLS under one deadline, and every way to fail as one [`FailureKind`].
//!
//! A name with several addresses: IPv4 first, the next one when an address refuses, cannot be reached or does not
//! answer within its share of the time left. The first address that takes the TCP connection is the one: what TLS says
//! then is the destination's answer. A PROXY header, where one is wanted, goes ahead of TLS.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use ::io::Io;
use ::io::deadline::Deadline;
use http1::proxy_header::{self, OnBehalf};
use model::address::{Scheme, Url};
use model::cluster::UpstreamTls;
use model::outcome::FailureKind;
use model::time::Timestamp;
use model::tls::Alpn;
use model::upstream::{Outbound, SendProxy, UpstreamHttp};
use tokio::io::AsyncWriteExt;

use crate::resolve::Resolve;
use crate::stream::Stream;
use crate::tls::Tls;

/// Opens connections to destinations. Clones share the resolver's cache and the TLS settings.
#[derive(Clone)]
pub struct Connector<I, R> {
    io: I,
    resolver: R,
    tls: Tls,
    /// Where it stands among the addresses to connect from, as a share of all of them.
    turn: Rc<Cell<u64>>,
}

/// Where to connect.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Host name or IP literal without brackets; also the name that a certificate must hold for, unless `tls` says
    /// another.
    pub host: &'a str,
    /// The port.
    pub port: u16,
    /// The address, when it is known already.
    pub literal: Option<SocketAddr>,
    /// TLS on top; `None`: plain.
    pub tls: Option<&'a UpstreamTls>,
    /// Own addresses to connect from, used evenly; without one of the destination's family the system chooses.
    pub sources: &'a [IpAddr],
    /// Whom the connection stands for, told in a PROXY header ahead of everything else; `None`: not told.
    pub on_behalf: Option<OnBehalf>,
    /// What is spoken: offered by ALPN, and for HTTP/2 alone required.
    pub http: UpstreamHttp,
}

impl<'a> Target<'a> {
    /// Where a connection of our own to `url` begins; `tls` counts when it is https.
    pub fn of(url: &'a Url, tls: &'a UpstreamTls, http: UpstreamHttp, outbound: &'a Outbound) -> Self {
        let tls = match url.scheme {
            Scheme::Http => None,
            Scheme::Https => Some(tls),
        };
        let on_behalf = match outbound.proxy_protocol {
            SendProxy::Off => None,
            SendProxy::V2 => Some(OnBehalf::Ourselves),
        };
        let sources = &outbound.source_addresses;
        Self { host: &url.host, port: url.port, literal: url.literal(), tls, sources, on_behalf, http }
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub struct ConnectError {
    /// The reason as policies, logs and metrics know it.
    pub kind: FailureKind,
    /// The address that was tried last.
    pub address: Option<SocketAddr>,
    /// What the system, the resolver or TLS said.
    pub source: io::Error,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => write!(f, "{address}: {}: {}", self.kind.as_str(), self.source),
            None => write!(f, "{}: {}", self.kind.as_str(), self.source),
        }
    }
}

impl<I: Io, R: Resolve> Connector<I, R> {
    /// Joins the parts.
    pub fn new(io: I, resolver: R, tls: Tls) -> Self {
        Self { io, resolver, tls, turn: Rc::default() }
    }

    /// The network and the clock it works with.
    pub fn io(&self) -> &I {
        &self.io
    }

    /// The TLS settings it works with.
    pub fn tls(&self) -> &Tls {
        &self.tls
    }

    /// Connects to `target`; TCP and TLS are up by `deadline`, or it fails then.
    pub async fn connect(&self, target: Target<'_>, deadline: Timestamp) -> Result<Stream<I::Stream>, ConnectError> {
        self.connect_within(target, &Deadline::new(self.io.clone(), deadline)).await
    }

    /// The same under a deadline that holds for what follows, too.
    pub async fn connect_within(
        &self,
        target: Target<'_>,
        deadline: &Deadline<I>,
    ) -> Result<Stream<I::Stream>, ConnectError> {
        let (mut stream, address) = match target.literal {
            Some(address) => (self.tcp(target.sources, address, deadline).await?, address),
            None => {
                let addresses = self.resolve(target, deadline).await?;
                self.first_of(target.sources, &addresses, deadline).await?
            }
        };
        if let Some(who) = target.on_behalf {
            self.announce(&mut stream, address, who, deadline).await?;
        }
        match target.tls {
            None => Ok(Stream::Plain(stream)),
            Some(settings) => self.handshake(stream, address, target, settings, deadline).await,
        }
    }

    async fn resolve(&self, target: Target<'_>, deadline: &Deadline<I>) -> Result<Vec<SocketAddr>, ConnectError> {
        let lookup = deadline.within(self.resolver.resolve(target.host)).await;
        let failure = match lookup {
            Ok(Ok(found)) if !found.is_empty() => {
                let v4 = found.iter().filter(|ip| ip.is_ipv4());
                let v6 = found.iter().filter(|ip| ip.is_ipv6());
                return Ok(v4.chain(v6).map(|&ip| SocketAddr::new(ip, target.port)).collect());
            }
            Ok(Ok(_)) => format!("{}: the name has no address", target.host),
            Ok(Err(error)) => format!("{}: {error}", target.host),
            Err(_) => format!("{}: no answer to the name in time", target.host),
        };
        Err(ConnectError { kind: FailureKind::Dns, address: None, source: io::Error::other(failure) })
    }

    /// The first of several addresses that takes the connection; each has an equal share of the time that is left.
    async fn first_of(
        &self,
        sources: &[IpAddr],
        addresses: &[SocketAddr],
        deadline: &Deadline<I>,
    ) -> Result<(I::Stream, SocketAddr), ConnectError> {
        let mut last = None;
        for (tried, &address) in addresses.iter().enumerate() {
            let part = deadline.part(u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX));
            let connected = self.tcp(sources, address, &part).await;
            deadline.follow(&part);
            match connected {
                Ok(stream) => return Ok((stream, address)),
                Err(error) if error.kind == FailureKind::Local => return Err(error),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| ConnectError {
            kind: FailureKind::Dns,
            address: None,
            source: io::Error::other("the name has no address"),
        }))
    }

    async fn tcp(
        &self,
        sources: &[IpAddr],
        address: SocketAddr,
        deadline: &Deadline<I>,
    ) -> Result<I::Stream, ConnectError> {
        let connecting = self.io.connect_from(self.source(sources, address), address);
        match deadline.within(connecting).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(source)) => Err(ConnectError { kind: tcp_failure(&source), address: Some(address), source }),
            Err(_) => Err(timed_out(address, "no connection in time")),
        }
    }

    async fn announce(
        &self,
        stream: &mut I::Stream,
        address: SocketAddr,
        who: OnBehalf,
        deadline: &Deadline<I>,
    ) -> Result<(), ConnectError> {
        let header = proxy_header::write(who);
        match deadline.within(stream.write_all(&header)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(source)) => Err(ConnectError { kind: FailureKind::Reset, address: Some(address), source }),
            Err(_) => Err(timed_out(address, "the PROXY header is not taken in time")),
        }
    }

    /// The next address to connect from, of the destination's family.
    fn source(&self, sources: &[IpAddr], to: SocketAddr) -> Option<IpAddr> {
        let fitting = || sources.iter().filter(|from| from.is_ipv4() == to.is_ipv4());
        let turn = self.turn.get();
        // Steps of the golden ratio cover the addresses evenly, and so do those of every second or third connection: each
        // of several clusters that are used by turns gets all of its addresses (Weyl's equidistribution).
        self.turn.set(turn.wrapping_add(GOLDEN));
        let place = (u128::from(turn) * fitting().count() as u128) >> u64::BITS;
        fitting().nth(usize::try_from(place).ok()?).copied()
    }

    async fn handshake(
        &self,
        stream: I::Stream,
        address: SocketAddr,
        target: Target<'_>,
        settings: &UpstreamTls,
        deadline: &Deadline<I>,
    ) -> Result<Stream<I::Stream>, ConnectError> {
        let refused = |source| ConnectError { kind: tls_failure(&source), address: Some(address), source };
        let client = self.tls.client(settings, target.http, target.host);
        let client = client.map_err(|error| refused(io::Error::other(error)))?;
        let stream = match deadline.within(client.handshake(stream)).await {
            Ok(Ok(stream)) => Stream::Tls(Box::new(stream)),
            Ok(Err(source)) => return Err(refused(source)),
            Err(_) => return Err(timed_out(address, "no end of the TLS handshake in time")),
        };
        // A server that knows no ALPN at all says nothing about it: then it does not speak HTTP/2 either (RFC 9113 3.2).
        if target.http == UpstreamHttp::Http2 && stream.alpn() != Some(Alpn::Http2) {
            let source = io::Error::other("the destination did not choose h2 by ALPN");
            return Err(ConnectError { kind: FailureKind::Protocol, address: Some(address), source });
        }
        Ok(stream)
    }
}

fn timed_out(address: SocketAddr, text: &'static str) -> ConnectError {
    ConnectError {
        kind: FailureKind::ConnectTimeout,
        address: Some(address),
        source: io::Error::new(io::ErrorKind::TimedOut, text),
    }
}

/// The reason behind a failed handshake. A server that speaks none of the protocols that were offered has TLS right.
fn tls_failure(error: &io::Error) -> FailureKind {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(
            rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol)
            | rustls::Error::NoApplicationProtocol,
        ) => FailureKind::Protocol,
        Some(_) | None => FailureKind::Tls,
    }
}

/// The reason behind a failed TCP connect. What our own side lacks is never held against the destination.
#[expect(clippy::wildcard_enum_match_arm, reason = "io::ErrorKind is not ours and not exhaustive")]
fn tcp_failure(error: &io::Error) -> FailureKind {
    if matches!(error.raw_os_error(), Some(ENFILE | EMFILE | ENOBUFS | EAGAIN)) {
        return FailureKind::Local;
    }
    match error.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable | io::ErrorKind::OutOfMemory => FailureKind::Local,
        io::ErrorKind::ConnectionRefused => FailureKind::Refused,
        io::ErrorKind::TimedOut => FailureKind::ConnectTimeout,
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => FailureKind::Reset,
        // No route, network down, forbidden by a firewall's rule: there is no way to it.
        _ => FailureKind::Unreachable,
    }
}

/// The golden ratio's fraction, of 2^64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// Too many open files in the system (Linux, asm-generic/errno-base.h).
const ENFILE: i32 = 23;
/// Too many open files in the process (Linux, asm-generic/errno-base.h).
const EMFILE: i32 = 24;
/// No free local port (connect(2)).
const EAGAIN: i32 = 11;
/// No buffer space (Linux, asm-generic/errno.h).
const ENOBUFS: i32 = 105;

#[cfg(test)]
mod tests;
