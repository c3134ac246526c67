//! TLS of a Kestrel endpoint: certificates in PEM, protocols, versions, clients' certificates.

use std::path::PathBuf;

use model::tls::{Alpn, CertificateFiles, ClientAuth, ListenerTls, TlsVersion};

use super::ignored::{self, warning};
use crate::defaults::LISTENER_PROTOCOLS;
use crate::origin::Origin;
use crate::raw::path::Path;
use crate::raw::section::{Field, Reading, Section};
use crate::source::Span;

/// A certificate and where its two files stand.
#[derive(Clone)]
pub struct Certificate {
    files: CertificateFiles,
    certificate: Span,
    key: Span,
}

/// What an endpoint says of TLS.
pub struct Wish {
    certificates: Vec<Certificate>,
    protocols: Vec<Alpn>,
    min_version: TlsVersion,
    client_auth: ClientAuth,
}

impl Default for Wish {
    fn default() -> Self {
        Self {
            certificates: Vec::new(),
            protocols: LISTENER_PROTOCOLS.to_vec(),
            min_version: TlsVersion::default(),
            client_auth: ClientAuth::Off,
        }
    }
}

/// Takes an endpoint's keys.
pub fn take(r: &mut Reading<'_>, s: &mut Section<'_>) -> Wish {
    let mut wish = Wish::default();
    wish.certificates.extend(s.take(r, "Certificate").and_then(|field| certificate(r, &field)));
    // Their names are read from the certificates themselves.
    if let Some(mut names) = s.take(r, "Sni").and_then(|field| field.section(r)) {
        for field in names.take_all(r) {
            let Some(mut name) = field.section(r) else { continue };
            wish.certificates.extend(name.take(r, "Certificate").and_then(|field| certificate(r, &field)));
            let effect = "what the endpoint itself says holds for all names";
            let keys = ["Protocols", "SslProtocols", "ClientCertificateMode"].map(|key| warning(key, effect, &[]));
            ignored::name(r, &mut name, &keys);
            name.finish(r);
        }
    }
    if let Some(protocols) = s.take(r, "Protocols").and_then(|field| protocols(r, &field)) {
        wish.protocols = protocols;
    }
    if let Some(field) = s.take(r, "SslProtocols") {
        wish.min_version = versions(r, &field);
    }
    wish.client_auth = client_auth(r, s);
    wish
}

/// `Path` and `KeyPath`, both PEM.
pub fn certificate(r: &mut Reading<'_>, field: &Field<'_>) -> Option<Certificate> {
    let mut s = field.section(r)?;
    let path = s.take(r, "Path");
    let key = s.take(r, "KeyPath");
    let unread = "certificates are read from PEM files without a password";
    let keys = ["Password", "Subject", "Store", "Location", "AllowInvalid"].map(|key| warning(key, unread, &["false"]));
    ignored::name(r, &mut s, &keys);
    s.finish(r);
    let Some(path) = path else {
        r.error(field.key_span, "the certificate has no `Path`", "expected `Path` and `KeyPath` of PEM files");
        return None;
    };
    let text = path.text(r)?;
    let extension = text.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    if matches!(extension.as_deref(), Some("pfx" | "p12")) {
        let mend = "expected PEM: openssl pkcs12 -in FILE.pfx -nodes -out FILE.pem, then `Path` and `KeyPath`";
        path.refuse(r, format!("`{text}` is no PEM file"), mend);
        return None;
    }
    let Some(key) = key else {
        r.error(field.key_span, "the certificate has no `KeyPath`", "expected the PEM file of its key");
        return None;
    };
    let files = CertificateFiles { certificate: PathBuf::from(text), key: key.file(r)? };
    Some(Certificate { files, certificate: path.node.span, key: key.node.span })
}

/// The settings of the listener `name`; `default` serves where it names no certificate. `None`: there is none at all.
pub fn settings(r: &mut Reading<'_>, name: &str, wish: &Wish, default: Option<&Certificate>) -> Option<ListenerTls> {
    let certificates: Vec<&Certificate> =
        if wish.certificates.is_empty() { default.into_iter().collect() } else { wish.certificates.iter().collect() };
    if certificates.is_empty() {
        return None;
    }
    for (at, one) in certificates.iter().enumerate() {
        for (key, span) in [("certificate", one.certificate), ("key", one.key)] {
            let path = Path::of(["listeners", name, "tls", "certificates", &at.to_string(), key]);
            let origin = Origin::File { line: r.line(span) };
            r.origins.record(path, origin, span);
        }
    }
    Some(ListenerTls {
        certificates: certificates.into_iter().map(|one| one.files.clone()).collect(),
        min_version: wish.min_version,
        client_auth: wish.client_auth.clone(),
        ticket_keys: None,
        protocols: wish.protocols.clone(),
    })
}

fn protocols(r: &mut Reading<'_>, field: &Field<'_>) -> Option<Vec<Alpn>> {
    let words: [(&str, &[Alpn]); 5] = [
        ("Http1", &[Alpn::Http11]),
        ("Http2", &[Alpn::Http2]),
        ("Http1AndHttp2", &LISTENER_PROTOCOLS),
        ("Http1AndHttp2AndHttp3", &LISTENER_PROTOCOLS),
        ("Http3", &[]),
    ];
    let protocols = field.word(r, &words)?;
    if protocols.is_empty() {
        field.refuse(r, "HTTP/3 is not served", "expected Http1, Http2 or Http1AndHttp2");
    }
    Some(protocols.to_vec())
}

fn versions(r: &mut Reading<'_>, field: &Field<'_>) -> TlsVersion {
    let mut named = Vec::new();
    for item in field.list(r) {
        let words = [("None", 0), ("Tls12", 12), ("Tls13", 13), ("Tls11", 11), ("Tls", 10)];
        named.extend(item.word(r, &words));
    }
    if named.iter().any(|version| matches!(version, 10 | 11)) {
        r.warn(field.node.span, "TLS below 1.2 is not spoken");
    }
    match (named.contains(&12), named.contains(&13)) {
        (false, true) if named.len() == 1 => TlsVersion::Tls13,
        (true, false) => {
            r.warn(field.node.span, "TLS 1.3 is spoken, too");
            TlsVersion::Tls12
        }
        (true, true) | (false, true | false) => TlsVersion::Tls12,
    }
}

/// Kestrel asks the system's roots; here the file of `ClientCertificateCa`, a key of our own, judges.
fn client_auth(r: &mut Reading<'_>, s: &mut Section<'_>) -> ClientAuth {
    let ca = s.take(r, "ClientCertificateCa").and_then(|field| field.file(r));
    let Some(field) = s.take(r, "ClientCertificateMode") else { return ClientAuth::Off };
    let words = [
        ("NoCertificate", None),
        ("AllowCertificate", Some(false)),
        ("DelayCertificate", Some(false)),
        ("RequireCertificate", Some(true)),
    ];
    match (field.word(r, &words).flatten(), ca) {
        (None, _) => ClientAuth::Off,
        (Some(true), Some(ca)) => ClientAuth::Required(ca),
        (Some(false), Some(ca)) => ClientAuth::Optional(ca),
        (Some(true), None) => {
            let expected = "expected `ClientCertificateCa`, a PEM file with the authorities that issue them";
            field.refuse(r, "it is not said who judges clients' certificates", expected);
            ClientAuth::Off
        }
        (Some(false), None) => {
            r.warn(field.node.span, "clients are not asked for certificates without `ClientCertificateCa`");
            ClientAuth::Off
        }
    }
}
