//! `dns`: how names of destinations are looked up; and what a cluster says about its own.

use std::net::IpAddr;
use std::time::Duration;

use model::config::Dns;
use model::upstream::{Family, Outbound, SendProxy, Tunnels};

use crate::raw::Value;
use crate::raw::section::{Field, Reading, Section};

/// Resolves the block.
pub fn resolve(r: &mut Reading<'_>, mut s: Section<'_>) -> Dns {
    let default = Dns::default();
    let mut servers = Vec::new();
    if let Some(field) = s.take(r, "servers") {
        for item in field.list(r) {
            let Some(text) = item.text(r) else { continue };
            match text.parse().ok().or_else(|| text.parse().ok().map(|ip: IpAddr| (ip, PORT).into())) {
                Some(server) if servers.len() < MOST_SERVERS => servers.push(server),
                Some(_) => item.refuse(r, "too many name servers", format!("expected {MOST_SERVERS} at most")),
                None => {
                    item.refuse(
                        r,
                        format!("`{text}` is no name server"),
                        "expected an address such as 10.0.0.53 or 10.0.0.53:53",
                    );
                }
            }
        }
    }
    let min_ttl = s.take(r, "min_ttl");
    let least = min_ttl.as_ref().and_then(|field| lifetime(r, field)).unwrap_or(default.min_ttl);
    let most = s.take(r, "max_ttl").and_then(|field| lifetime(r, &field)).unwrap_or(default.max_ttl.max(least));
    if let Some(field) = min_ttl.filter(|_| least > most) {
        field.refuse(r, "`min_ttl` is longer than `max_ttl`", "expected a shorter one");
    }
    s.finish(r);
    Dns { servers, min_ttl: least, max_ttl: most }
}

/// A lifetime, from a second to a day.
fn lifetime(r: &mut Reading<'_>, field: &Field<'_>) -> Option<Duration> {
    let span = field.duration(r)?;
    if span < SHORTEST || span > LONGEST {
        field.refuse(r, format!("`{}` is out of range", field.name), "expected 1s to 24h");
        return None;
    }
    Some(span)
}

/// Takes `family` of a cluster.
pub fn family(r: &mut Reading<'_>, s: &mut Section<'_>) -> Family {
    let words = [("auto", Family::Auto), ("v4", Family::V4), ("v6", Family::V6), ("both", Family::Both)];
    s.take(r, "family").and_then(|field| field.word(r, &words)).unwrap_or_default()
}

/// Takes `proxy_protocol` of a cluster.
fn proxy_protocol(r: &mut Reading<'_>, s: &mut Section<'_>) -> SendProxy {
    let Some(field) = s.take(r, "proxy_protocol") else { return SendProxy::Off };
    match field.node.value {
        Value::Bool(false) => SendProxy::Off,
        Value::Null | Value::Bool(true) | Value::Text(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => {
            field.word(r, &[("off", SendProxy::Off), ("v2", SendProxy::V2)]).unwrap_or_default()
        }
    }
}

/// Takes what a cluster says about the start of its connections.
pub fn outbound(r: &mut Reading<'_>, s: &mut Section<'_>) -> Outbound {
    let mut outbound = Outbound { proxy_protocol: proxy_protocol(r, s), ..Outbound::default() };
    if let Some(field) = s.take(r, "source_addresses") {
        for item in field.list(r) {
            let Some(text) = item.text(r) else { continue };
            match text.parse::<IpAddr>() {
                Ok(ip) if !ip.is_unspecified() && !ip.is_multicast() => outbound.source_addresses.push(ip),
                Ok(_) | Err(_) => {
                    item.refuse(
                        r,
                        format!("`{text}` is no address of this host"),
                        "expected an IP address without a port",
                    );
                }
            }
        }
    }
    outbound.tunnels = match s.take(r, "close_on_unhealthy").and_then(|field| field.flag(r)) {
        Some(true) => Tunnels::CloseOnUnhealthy,
        Some(false) | None => Tunnels::Keep,
    };
    outbound
}

const PORT: u16 = 53;
const MOST_SERVERS: usize = 8;
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(86_400);
