//! `listeners`: where clients connect, who may, and what they may send.

use model::entry::{AccessList, Entry, ProxyProtocol};
use model::listener::{Listener, SelfCheck};
use model::tls::{ClientAuth, ListenerTls, TlsVersion};

use super::{Writer, bytes, list, optional, quoted};
use crate::timespan;

/// Writes one listener.
pub fn write(w: &mut Writer<'_>, listener: &Listener) {
    w.value("address", quoted(&listener.address.to_string()));
    match &listener.tls {
        Some(settings) => w.block("tls", |w| tls(w, settings)),
        None => w.value("tls", "null".to_owned()),
    }
    entry(w, &listener.entry);
    w.value("trusted_proxies", networks(&listener.trusted_proxies));
    w.value("self_check", (listener.self_check == SelfCheck::On).to_string());
    let limits = &listener.limits;
    w.block("limits", |w| {
        w.value("header_timeout", timespan::format(limits.header_timeout));
        w.value("keepalive", timespan::format(limits.keepalive));
        w.value("tls_handshake", timespan::format(limits.tls_handshake));
        w.value("request_line", bytes(limits.request_line as u64));
        w.value("header_bytes", bytes(limits.header_bytes as u64));
        w.value("header_fields", limits.header_fields.to_string());
        w.value("body", limits.body.map_or_else(|| "none".to_owned(), bytes));
    });
    w.block("http2", |w| w.value("streams", listener.http2.streams.to_string()));
}

fn tls(w: &mut Writer<'_>, tls: &ListenerTls) {
    w.block("certificates", |w| {
        for (at, files) in tls.certificates.iter().enumerate() {
            w.item_at(at, |w| {
                w.value("certificate", quoted(&files.certificate.display().to_string()));
                w.value("key", quoted(&files.key.display().to_string()));
            });
        }
    });
    let version = match tls.min_version {
        TlsVersion::Tls12 => "1.2",
        TlsVersion::Tls13 => "1.3",
    };
    w.value("min_version", quoted(version));
    let judged = |w: &mut Writer<'_>, mode: &str, ca: &std::path::Path| {
        w.block("client_auth", |w| {
            w.value("mode", mode.to_owned());
            w.value("ca", quoted(&ca.display().to_string()));
        });
    };
    match &tls.client_auth {
        ClientAuth::Off => w.value("client_auth", quoted("off")),
        ClientAuth::Optional(ca) => judged(w, "optional", ca),
        ClientAuth::Required(ca) => judged(w, "required", ca),
    }
    let ticket_keys = tls.ticket_keys.as_ref().map(|path| path.display().to_string());
    w.value("ticket_keys", optional(ticket_keys.as_deref()));
    w.value("protocols", list(tls.protocols.iter().map(|protocol| protocol.as_str())));
}

fn entry(w: &mut Writer<'_>, entry: &Entry) {
    match &entry.proxy_protocol {
        ProxyProtocol::Off => w.value("proxy_protocol", quoted("off")),
        ProxyProtocol::Required { from } if from.is_empty() => w.value("proxy_protocol", "required".to_owned()),
        ProxyProtocol::Required { from } => w.block("proxy_protocol", |w| w.value("from", networks(from))),
    }
    access(w, &entry.access);
    let limit = entry.limit_connections.map(|limit| limit.per_client.to_string());
    w.value("limit_connections", limit.unwrap_or_else(|| "null".to_owned()));
}

/// An absent `allow` admits all, an empty one would be refused.
fn access(w: &mut Writer<'_>, access: &AccessList) {
    let allow = if access.allow.is_empty() { "null".to_owned() } else { networks(&access.allow) };
    w.value("allow", allow);
    w.value("deny", networks(&access.deny));
}

fn networks(networks: &[ipnet::IpNet]) -> String {
    let networks: Vec<_> = networks.iter().map(ToString::to_string).collect();
    list(networks.iter().map(String::as_str))
}
