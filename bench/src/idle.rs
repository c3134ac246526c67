//! What a connection costs that waits: resident memory before, with, and after a crowd of kept connections.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

use crate::certificate;
use crate::engine::Engine;
use crate::peers::Peer;
use crate::proxy::Proxy;
use crate::work::{Transport, Work};

/// One proxy's memory.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Memory {
    pub(crate) proxy: &'static str,
    pub(crate) version: String,
    pub(crate) kind: &'static str,
    pub(crate) connections: usize,
    /// Bytes for each connection, each of which has had one answer.
    pub(crate) bytes: i64,
    /// KiB with no connection, with all, and 5 s after they left.
    pub(crate) resident: [u64; 3],
}

/// Measures every proxy that takes part.
pub(crate) fn measure(folder: &Path, only: &[String], connections: usize) -> Result<Vec<Memory>> {
    let mut all = Vec::new();
    for (kind, work, transport) in [
        ("plain", Work::Small, Transport::Plain),
        ("TLS", Work::Tls, Transport::Tls),
        ("TLS, HTTP/2", Work::Http2, Transport::Http2),
    ] {
        let protocol = if transport == Transport::Http2 { "h2" } else { "http/1.1" };
        let mut engine = Engine::new(work.messages(), transport, certificate::client(folder, protocol)?)?;
        for name in ["nginx", "haproxy", "lazaret"] {
            if !only.is_empty() && !only.iter().any(|wanted| wanted == name) {
                continue;
            }
            let proxy = Proxy::start(&Peer::new(name, work, folder)?)?;
            all.push(one(&mut engine, &proxy, proxy.addr, kind, connections)?);
        }
    }
    Ok(all)
}

fn one(engine: &mut Engine, proxy: &Proxy, addr: SocketAddr, kind: &'static str, connections: usize) -> Result<Memory> {
    // What the first requests allocate for good is not the connections'.
    engine.aim(addr, 64)?;
    engine.once_each()?;
    engine.idle(Duration::from_secs(1))?;
    let before = proxy.resident()?;
    engine.aim(addr, connections)?;
    engine.once_each()?;
    engine.idle(Duration::from_secs(2))?;
    let with = proxy.resident()?;
    let answered = engine.tally.answered.max(1);
    engine.aim(addr, 0)?;
    engine.idle(Duration::from_secs(5))?;
    let after = proxy.resident()?;
    let bytes = (i64::try_from(with)? - i64::try_from(before)?) * 1024 / i64::try_from(answered)?;
    let (proxy, version) = (proxy.name, proxy.version.clone());
    Ok(Memory { proxy, version, kind, connections: usize::try_from(answered)?, bytes, resident: [before, with, after] })
}
