//! `listeners`: where clients connect and what they may send.

use ipnet::IpNet;
use model::id::ListenerId;
use model::listener::{Http2Limits, Listener, SelfCheck};
use model::timeouts::ClientLimits;

use super::{Context, listener_entry, listener_tls, networks};
use crate::raw::path::Path;
use crate::raw::section::{Field, Reading, Section};
use crate::raw::{Value, scalar};
use crate::report::Diagnostic;

/// Resolves one listener. `trusted` holds where it names no trusted proxies of its own.
pub fn resolve(r: &mut Reading<'_>, context: &Context<'_>, field: &Field<'_>, trusted: &[IpNet]) -> Option<Listener> {
    let mut s = field.section(r)?;
    let address = match s.take(r, "address") {
        Some(address) => address.socket_address(r),
        None => {
            r.error(field.key_span, format!("listener `{}` has no address", field.name), "expected `address: ip:port`");
            None
        }
    };
    let limits = match s.take(r, "limits").and_then(|field| field.section(r)) {
        Some(section) => limits(r, section, context.defaults.limits),
        None => context.defaults.limits,
    };
    let trusted_proxies = match s.take(r, "trusted_proxies") {
        Some(field) => networks(r, &field),
        None => trusted.to_vec(),
    };
    let self_check = match s.take(r, "self_check").and_then(|field| field.flag(r)) {
        Some(true) => SelfCheck::On,
        Some(false) | None => SelfCheck::Off,
    };
    let tls = s.take(r, "tls").and_then(|field| listener_tls::resolve(r, &field));
    let entry = listener_entry::resolve(r, &mut s);
    let http2 = match s.take(r, "http2").and_then(|field| field.section(r)) {
        Some(section) => http2(r, section),
        None => Http2Limits::default(),
    };
    s.finish(r);
    Some(Listener {
        id: ListenerId::from(field.name.as_str()),
        address: address?,
        limits,
        trusted_proxies,
        self_check,
        entry,
        tls,
        http2,
    })
}

fn http2(r: &mut Reading<'_>, mut s: Section<'_>) -> Http2Limits {
    let default = Http2Limits::default();
    let streams = s.take(r, "streams").and_then(|field| field.whole(r, 1..=MAX_STREAMS));
    s.finish(r);
    Http2Limits { streams: streams.and_then(|n| u32::try_from(n).ok()).unwrap_or(default.streams) }
}

fn limits(r: &mut Reading<'_>, mut s: Section<'_>, default: ClientLimits) -> ClientLimits {
    let size = |r: &mut Reading<'_>, field: Option<Field<'_>>, default: usize| {
        let Some(field) = field else { return default };
        match field.bytes(r).map(usize::try_from) {
            Some(Ok(bytes)) if (MIN_HEAD..=MAX_HEAD).contains(&bytes) => bytes,
            Some(_) => {
                field.refuse(r, format!("`{}` is out of range", field.name), "expected 256B to 1MiB");
                default
            }
            None => default,
        }
    };
    let header_timeout = s.take(r, "header_timeout").and_then(|f| f.duration(r)).unwrap_or(default.header_timeout);
    let keepalive = s.take(r, "keepalive").and_then(|f| f.duration(r)).unwrap_or(default.keepalive);
    let tls_handshake = s.take(r, "tls_handshake").and_then(|f| f.duration(r)).unwrap_or(default.tls_handshake);
    let field = s.take(r, "request_line");
    let request_line = size(r, field, default.request_line);
    let field = s.take(r, "header_bytes");
    let header_bytes = size(r, field, default.header_bytes);
    let header_fields = s.take(r, "header_fields").and_then(|f| f.whole(r, 1..=1000));
    let header_fields = header_fields.and_then(|n| usize::try_from(n).ok()).unwrap_or(default.header_fields);
    let body = s.take(r, "body").map_or(default.body, |field| body_limit(r, &field));
    s.finish(r);
    ClientLimits { header_timeout, keepalive, tls_handshake, request_line, header_bytes, header_fields, body }
}

/// A size, or `none`.
pub fn body_limit(r: &mut Reading<'_>, field: &Field<'_>) -> Option<u64> {
    match &field.node.value {
        Value::Text(text) if text == "none" => None,
        Value::Text(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => {
            field.bytes(r)
        }
    }
}

/// Two listeners cannot have one address.
pub fn refuse_shared_addresses(r: &mut Reading<'_>, listeners: &[Listener]) {
    for (index, listener) in listeners.iter().enumerate() {
        let first = listeners.iter().take(index).find(|other| other.address == listener.address);
        let Some(first) = first.filter(|_| listener.address.port() != 0) else { continue };
        let place = |id: &ListenerId| Path::of(["listeners", id.as_str(), "address"]);
        let (here, there) = (r.origins.span_of(&place(&listener.id)), r.origins.span_of(&place(&first.id)));
        let names = scalar::join_or(&[listener.id.as_str(), first.id.as_str()]);
        let diagnostic = Diagnostic::error(format!("two listeners have the address {}", listener.address))
            .label(format!("expected it in {names}, not in both"))
            .related(r.source, there, "the first one");
        r.note(here, diagnostic);
    }
}

const MIN_HEAD: usize = 256;
const MAX_HEAD: usize = 1 << 20;
/// Each stream may hold two windows of 64 KiB.
const MAX_STREAMS: i64 = 1000;
