//! The files of listeners' TLS: what changes while connections live, what sites share, what is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::process::Command;

use model::tls::{CertificateFiles, ClientAuth, ListenerTls};
use proxy::ServerTls;
use rustls::HandshakeKind;
use support::setup;
use support::tls::{Offer, TLS12, TLS13, ask, der, files, secured, shown, tls};
use testkit::certificates::Authority;
use testkit::client::Client;
use testkit::destination::Destination;

#[test]
fn a_renewed_certificate_is_shown_and_a_bad_one_leaves_the_one_before() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let (old, new) = (authority.issue(&["a.test"]), authority.issue(&["a.test"]));
    let at = files(folder.path(), &old, "a");
    let destination = Destination::answering(200, "ok");
    let proxy = secured(&destination, tls(vec![at.clone()])).start();
    let config = || Offer::new(&authority).config();
    let mut living = Client::connect_tls(proxy.addr, "a.test", &config());
    assert_eq!(living.get("/").status(), 200);
    assert_eq!(shown(&proxy, "a.test", &config()), der(&old));

    // Half of the pair.
    std::fs::write(&at.certificate, &new.certificate).unwrap();
    assert_eq!(proxy.server_tls.refresh(), Default::default(), "the first look only sees a change");
    let second = proxy.server_tls.refresh();
    assert!(second.is_stale && second.refused.len() == 1, "{second:?}");
    assert!(second.refused[0].contains("a.key: not the key of"), "{second:?}");
    let third = proxy.server_tls.refresh();
    assert!(third.is_stale && third.refused.is_empty(), "told once: {third:?}");
    assert_eq!(shown(&proxy, "a.test", &config()), der(&old));

    std::fs::write(&at.key, &new.key).unwrap();
    proxy.server_tls.refresh();
    let taken = proxy.server_tls.refresh();
    assert!(!taken.is_stale && taken.taken.len() == 1 && taken.refused.is_empty(), "{taken:?}");
    assert_eq!(shown(&proxy, "a.test", &config()), der(&new));
    assert_eq!(living.get("/").status(), 200);
}

/// The key is of a file, so a client goes on with its session at another process.
#[test]
fn sessions_are_taken_up_again_at_every_site_that_shares_the_ticket_keys() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let at = files(folder.path(), &authority.issue(&["a.test"]), "a");
    let keys = folder.path().join("tickets.keys");
    std::fs::write(&keys, "ab".repeat(32)).unwrap();
    let clients = Authority::new();
    let ca = clients.write(folder.path());
    let shared = ListenerTls { ticket_keys: Some(keys), ..tls(vec![at.clone()]) };
    let destination = Destination::answering(200, "ok");
    let sites = [(); 2].map(|()| secured(&destination, shared.clone()).start());
    let strict = secured(&destination, ListenerTls { client_auth: ClientAuth::Required(ca), ..shared.clone() }).start();
    for versions in [TLS13, TLS12] {
        let config = Offer { versions, ..Offer::new(&authority) }.config();
        assert_eq!(ask(sites[0].addr, "a.test", &config).unwrap().1, HandshakeKind::Full);
        assert_eq!(ask(sites[1].addr, "a.test", &config).unwrap().1, HandshakeKind::Resumed);
        // A session of a listener that asks for no certificate opens none that does.
        assert!(ask(strict.addr, "a.test", &config).is_err());
    }
    let alone = [(); 2].map(|()| secured(&destination, tls(vec![at.clone()])).start());
    let config = Offer::new(&authority).config();
    assert_eq!(ask(alone[0].addr, "a.test", &config).unwrap().1, HandshakeKind::Full);
    assert_eq!(ask(alone[0].addr, "a.test", &config).unwrap().1, HandshakeKind::Resumed);
    assert_eq!(ask(alone[1].addr, "a.test", &config).unwrap().1, HandshakeKind::Full);
}

#[test]
fn files_that_cannot_be_used_are_refused_with_what_mends_them() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let (one, other) = (authority.issue(&["a.test"]), authority.issue(&["a.test"]));
    let good = files(folder.path(), &one, "one");
    let other = files(folder.path(), &other, "other");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let encrypted =
        write("enc.key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n");
    let empty = write("empty.pem", "");
    let garbage = write("bad.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let certificate = |path| tls(vec![CertificateFiles { certificate: path, ..good.clone() }]);
    let key = |path| tls(vec![CertificateFiles { key: path, ..good.clone() }]);
    let cases = [
        (certificate(folder.path().join("none.pem")), "certificates.0.certificate", "cannot read the certificate"),
        // Nobody waits for what may never be written.
        (certificate(pipe), "certificates.0.certificate", "not a regular file"),
        (certificate(empty.clone()), "certificates.0.certificate", "there is no certificate in it"),
        (certificate(garbage.clone()), "certificates.0.certificate", "no certificate"),
        (key(folder.path().join("none.key")), "certificates.0.key", "cannot read the key"),
        (key(empty.clone()), "certificates.0.key", "there is no private key in it"),
        (key(encrypted), "certificates.0.key", "the key is encrypted"),
        (key(other.key.clone()), "certificates.0.key", "not the key of"),
        (
            tls(vec![good.clone(), CertificateFiles { key: good.key.clone(), ..other }]),
            "certificates.1.key",
            "not the key",
        ),
        (
            ListenerTls { client_auth: ClientAuth::Required(empty.clone()), ..tls(vec![good.clone()]) },
            "client_auth",
            "",
        ),
        (ListenerTls { ticket_keys: Some(garbage), ..tls(vec![good.clone()]) }, "ticket_keys", "line 1 is no key"),
    ];
    for (settings, place, what) in cases {
        let listener = setup(&[]).listening(|listener| listener.tls = Some(settings)).listener;
        let faults = ServerTls::new().prepare(&[listener]).err().unwrap_or_else(|| panic!("{place} {what}"));
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!(faults[0].setting().join("."), format!("listeners.web.tls.{place}"));
        assert!(faults[0].message().contains(what) && !faults[0].mend().is_empty(), "{faults:?}");
    }
}
