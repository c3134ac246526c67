//! What is refused, and what shares a configuration.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use testkit::certificates::Authority;

use super::*;

const HTTP: UpstreamHttp = UpstreamHttp::Http1;

fn ca(path: &Path) -> UpstreamTls {
    UpstreamTls { ca: Some(path.to_owned()), ..UpstreamTls::default() }
}

#[test]
fn bad_authorities_are_named_with_their_file_and_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    let tls = Tls::new();
    let said = |tls: &Tls| tls.prepare(&ca(&path), HTTP).unwrap_err().to_string();
    assert!(said(&tls).contains("ca.pem: cannot read the certificate authorities: "), "{}", said(&tls));
    std::fs::write(&path, "nothing\n").unwrap();
    assert!(said(&tls).ends_with("ca.pem: there is no certificate (BEGIN CERTIFICATE) in it"));
    std::fs::write(&path, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    assert!(said(&tls).contains("ca.pem: certificate 1: "), "{}", said(&tls));
}

#[test]
fn a_client_certificate_that_cannot_be_used_is_named_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let (certificate, key) = authority.issue(&["client.test"]).write(folder.path(), "client");
    let (_, other) = authority.issue(&["other.test"]).write(folder.path(), "other");
    let of = |certificate: &Path, key: &Path| UpstreamTls {
        verify: Verify::DangerousNone,
        client_certificate: Some(CertificateFiles { certificate: certificate.to_owned(), key: key.to_owned() }),
        ..UpstreamTls::default()
    };
    let said = |settings: &UpstreamTls| Tls::new().prepare(settings, HTTP).unwrap_err().to_string();
    Tls::new().prepare(&of(&certificate, &key), HTTP).unwrap();
    let missing = folder.path().join("none.pem");
    assert!(said(&of(&missing, &key)).contains("none.pem: cannot read the client certificate: "));
    assert!(said(&of(&certificate, &missing)).contains("none.pem: cannot read its private key: "));
    assert!(said(&of(&key, &key)).ends_with("client.key: there is no certificate (BEGIN CERTIFICATE) in it"));
    assert!(said(&of(&certificate, &certificate)).contains("client.pem: no private key that can be used: "));
    let pair = said(&of(&certificate, &other));
    assert!(pair.contains("other.key: the key does not belong to the certificate: "), "{pair}");
}

#[test]
fn equal_settings_share_a_configuration_until_a_file_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    let write = || {
        let authority = Authority::new();
        authority.write(folder.path());
        let (certificate, key) = authority.issue(&["client.test"]).write(folder.path(), "client");
        Some(CertificateFiles { certificate, key })
    };
    let client_certificate = write();
    let tls = Tls::new();
    let first = tls.client(&ca(&path), HTTP, "a").unwrap().config;
    let other = UpstreamTls { server_name: Some("b".to_owned()), ..ca(&path) };
    tls.prepare(&other, HTTP).unwrap();
    assert!(Arc::ptr_eq(&first, &tls.client(&other, HTTP, "a").unwrap().config));
    let shown = UpstreamTls { client_certificate, ..UpstreamTls { verify: Verify::DangerousNone, ..other.clone() } };
    let with_certificate = tls.client(&shown, HTTP, "a").unwrap().config;
    write();
    tls.prepare(&other, HTTP).unwrap();
    tls.prepare(&shown, HTTP).unwrap();
    assert!(!Arc::ptr_eq(&first, &tls.client(&ca(&path), HTTP, "a").unwrap().config));
    assert!(!Arc::ptr_eq(&with_certificate, &tls.client(&shown, HTTP, "a").unwrap().config));
}

#[test]
fn trust_client_certificate_and_version_of_http_each_have_a_configuration_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let path = authority.write(folder.path());
    let (certificate, key) = authority.issue(&["client.test"]).write(folder.path(), "client");
    let client_certificate = Some(CertificateFiles { certificate, key });
    let tls = Tls::new();
    let no_verify = UpstreamTls { verify: Verify::DangerousNone, ..ca(&path) };
    let shown = UpstreamTls { client_certificate, ..ca(&path) };
    let mut seen: Vec<Arc<ClientConfig>> = Vec::new();
    for settings in [ca(&path), no_verify, shown] {
        for http in [UpstreamHttp::Http1, UpstreamHttp::Http2, UpstreamHttp::Http2OrHttp1] {
            let config = tls.client(&settings, http, "a").unwrap().config;
            assert!(seen.iter().all(|other| !Arc::ptr_eq(other, &config)));
            seen.push(config);
        }
    }
    let offered: Vec<usize> = seen.iter().take(3).map(|config| config.alpn_protocols.len()).collect();
    assert_eq!(offered, [1, 1, 2]);
}

#[test]
fn a_name_that_no_certificate_can_hold_for_is_refused() {
    let settings = UpstreamTls { verify: Verify::DangerousNone, ..UpstreamTls::default() };
    assert!(matches!(Tls::new().client(&settings, HTTP, "a b"), Err(TlsError::Name(_))));
    assert!(Tls::new().client(&settings, HTTP, "::1").is_ok());
    assert!(Tls::new().client(&settings, HTTP, "a.test.").is_ok());
}
