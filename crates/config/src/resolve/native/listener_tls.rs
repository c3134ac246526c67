//! `tls` of a listener: certificates, versions, clients' certificates, tickets, protocols.

use std::path::PathBuf;

use model::tls::{Alpn, CertificateFiles, ClientAuth, ListenerTls, TlsVersion};

use crate::defaults::LISTENER_PROTOCOLS;
use crate::raw::section::{Field, Reading};
use crate::raw::{Value, scalar};

/// Resolves the block. `None` when there is no certificate; that is noted.
pub fn resolve(r: &mut Reading<'_>, field: &Field<'_>) -> Option<ListenerTls> {
    let mut s = field.section(r)?;
    let certificates = match s.take(r, "certificates") {
        Some(list) => certificates(r, &list),
        None => {
            let expected = "expected `certificates: [{certificate: site.pem, key: site.key}]`";
            r.error(field.key_span, "`tls` has no certificates", expected);
            Vec::new()
        }
    };
    let min_version = s.take(r, "min_version").and_then(|field| version(r, &field)).unwrap_or_default();
    let client_auth = s.take(r, "client_auth").and_then(|field| client_auth(r, &field)).unwrap_or_default();
    let ticket_keys = s.take(r, "ticket_keys").and_then(|field| field.file(r));
    let protocols = match s.take(r, "protocols") {
        Some(field) => protocols(r, &field),
        None => LISTENER_PROTOCOLS.to_vec(),
    };
    s.finish(r);
    (!certificates.is_empty()).then_some(ListenerTls { certificates, min_version, client_auth, ticket_keys, protocols })
}

fn certificates(r: &mut Reading<'_>, list: &Field<'_>) -> Vec<CertificateFiles> {
    let items = list.list(r);
    if items.is_empty() {
        list.refuse(r, "`certificates` is empty", "expected at least one; the first serves clients that name no other");
    }
    let mut all = Vec::new();
    for (at, mut item) in items.into_iter().enumerate() {
        // Each has a name of its own, so that what is wrong with its files is said at its place.
        item.path = item.path.join(&at.to_string());
        let Some(mut s) = item.section(r) else { continue };
        let mut file = |key| match s.take(r, key) {
            Some(field) => field.file(r),
            None => {
                r.error(
                    item.node.span,
                    format!("the certificate has no `{key}`"),
                    format!("expected `{key}: FILE.pem`"),
                );
                None
            }
        };
        let files: (Option<PathBuf>, Option<PathBuf>) = (file("certificate"), file("key"));
        s.finish(r);
        if let (Some(certificate), Some(key)) = files {
            all.push(CertificateFiles { certificate, key });
        }
    }
    all
}

fn version(r: &mut Reading<'_>, field: &Field<'_>) -> Option<TlsVersion> {
    match field.node.scalar() {
        Some("1.2") => Some(TlsVersion::Tls12),
        Some("1.3") => Some(TlsVersion::Tls13),
        Some(_) | None => {
            field.refuse(r, "`min_version` is no version of TLS that is spoken here", "expected \"1.2\" or \"1.3\"");
            None
        }
    }
}

/// `off`, or `{mode: optional | required, ca: FILE}`.
fn client_auth(r: &mut Reading<'_>, field: &Field<'_>) -> Option<ClientAuth> {
    match &field.node.value {
        Value::Bool(false) => return Some(ClientAuth::Off),
        Value::Text(text) if text == "off" => return Some(ClientAuth::Off),
        Value::Map(_) => {}
        Value::Null | Value::Bool(true) | Value::Text(_) | Value::Number(_) | Value::List(_) => {
            let expected = "expected off, or {mode: required, ca: FILE} with the authorities of clients' certificates";
            field.refuse(r, "`client_auth` does not say who judges clients' certificates", expected);
            return None;
        }
    }
    let mut s = field.section(r)?;
    type Mode = fn(PathBuf) -> ClientAuth;
    let words: [(&str, Mode); 2] = [("optional", ClientAuth::Optional), ("required", ClientAuth::Required)];
    let mode = match s.take(r, "mode") {
        Some(mode) => mode.word(r, &words),
        None => {
            r.error(field.node.span, "`client_auth` has no `mode`", "expected `mode: optional` or `mode: required`");
            None
        }
    };
    let ca = match s.take(r, "ca") {
        Some(ca) => ca.file(r),
        None => {
            r.error(field.node.span, "`client_auth` has no `ca`", "expected the authorities of clients' certificates");
            None
        }
    };
    s.finish(r);
    Some(mode?(ca?))
}

fn protocols(r: &mut Reading<'_>, field: &Field<'_>) -> Vec<Alpn> {
    let mut protocols = Vec::new();
    for item in field.list(r) {
        let Some(text) = item.text(r) else { continue };
        match LISTENER_PROTOCOLS.iter().find(|protocol| protocol.as_str() == text) {
            Some(protocol) if protocols.contains(protocol) => {
                item.refuse(r, format!("`{text}` stands here twice"), "expected it once");
            }
            Some(protocol) => protocols.push(*protocol),
            None => {
                let known: Vec<_> = LISTENER_PROTOCOLS.iter().map(|protocol| protocol.as_str()).collect();
                let expected = format!("expected {}", scalar::join_or(&known));
                item.refuse(r, format!("`{text}` is not spoken by listeners"), expected);
            }
        }
    }
    if protocols.is_empty() && !r.has_errors() {
        field.refuse(r, "`protocols` is empty", "expected at least one");
    }
    protocols
}
