//! TLS of listeners: who is shown what, and who is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use model::listener::Listener;
use model::tls::{ClientAuth, ListenerTls, TlsVersion};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use support::tls::{Offer, TLS12, ask, der, files, secured, shown, tls};
use testkit::certificates::Authority;
use testkit::client::{Client, End};
use testkit::destination::{Act, Destination, Moment};

#[test]
fn each_name_is_shown_its_certificate_and_every_other_one_the_first() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let first = authority.issue(&["a.test", "other.test", "127.0.0.1"]);
    let wild = authority.issue(&["*.b.test"]);
    let exact = authority.issue(&["x.b.test"]);
    let all = [(&first, "first"), (&wild, "wild"), (&exact, "exact")];
    let certificates = all.map(|(leaf, name)| files(folder.path(), leaf, name)).to_vec();
    let destination = Destination::answering(200, "ok");
    let proxy = secured(&destination, tls(certificates)).start();
    let config = Offer::new(&authority).config();
    assert_eq!(shown(&proxy, "a.test", &config), der(&first));
    assert_eq!(shown(&proxy, "y.b.test", &config), der(&wild));
    assert_eq!(shown(&proxy, "X.b.test", &config), der(&exact));
    assert_eq!(shown(&proxy, "other.test", &config), der(&first));
    // No SNI with an address.
    assert_eq!(shown(&proxy, "127.0.0.1", &config), der(&first));
    proxy.counts(r#"lazaret_tls_handshakes_total{listener="web",result="full"} 5"#);
}

#[test]
fn destinations_learn_that_the_client_came_by_tls() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let files = files(folder.path(), &authority.issue(&["a.test"]), "a");
    let destination = Destination::answering(200, "ok");
    let proxy = secured(&destination, tls(vec![files])).start();
    let mut client = Client::connect_tls(proxy.addr, "a.test", &Offer::new(&authority).config());
    for _ in 0..2 {
        assert_eq!(client.get("/").status(), 200);
    }
    let seen = destination.requests().pop().unwrap().message;
    assert_eq!(seen.values("x-forwarded-proto"), ["https"]);
}

#[test]
fn an_absolute_target_must_have_the_scheme_that_is_spoken() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let files = files(folder.path(), &authority.issue(&["a.test"]), "a");
    let destination = Destination::answering(200, "ok");
    let proxy = secured(&destination, tls(vec![files])).start();
    let mut client = Client::connect_tls(proxy.addr, "a.test", &Offer::new(&authority).config());
    for target in ["https://a.test/x", "HTTPS://a.test:443/x"] {
        client.send(format!("GET {target} HTTP/1.1\r\nHost: other.test\r\n\r\n"));
        assert_eq!(client.response().status(), 200, "{target}");
        let seen = destination.requests().pop().unwrap().message;
        assert_eq!(seen.target(), "/x");
        let authority = target.split('/').nth(2).unwrap();
        assert_eq!(seen.values("x-forwarded-host"), [authority]);
    }
    let served = destination.requests().len();
    client.send("GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let answer = client.response();
    assert_eq!(answer.status(), 400);
    assert!(answer.value("proxy-status").unwrap().contains("target-scheme"), "{answer:?}");
    assert_eq!(destination.requests().len(), served);
}

/// The settings of a listener are honoured, before and after a reload.
#[test]
fn a_listener_that_demands_a_certificate_and_tls_1_3_refuses_everyone_else() {
    let (authority, clients, folder) = (Authority::new(), Authority::new(), tempfile::tempdir().unwrap());
    let ca = folder.path().join("clients.pem");
    std::fs::write(&ca, clients.pem()).unwrap();
    let certificates = vec![files(folder.path(), &authority.issue(&["a.test"]), "a")];
    let strict =
        ListenerTls { min_version: TlsVersion::Tls13, client_auth: ClientAuth::Required(ca), ..tls(certificates) };
    let destination = Destination::answering(200, "ok");
    let mut proxy = secured(&destination, strict.clone()).start();
    for round in ["at the start", "after a reload"] {
        let good = || Offer { certificate: Some(clients.issue(&["client.test"])), ..Offer::new(&authority) };
        let answer = ask(proxy.addr, "a.test", &good().config()).unwrap();
        assert!(answer.2.starts_with("HTTP/1.1 200"), "{round}: {answer:?}");
        let bad = [
            Offer { certificate: None, ..good() },
            Offer { certificate: Some(Authority::new().issue(&["client.test"])), ..good() },
            Offer { versions: TLS12, ..good() },
            Offer { protocols: vec!["h3"], ..good() },
        ];
        for (case, offer) in bad.iter().enumerate() {
            assert!(ask(proxy.addr, "a.test", &offer.config()).is_err(), "case {case} {round}");
        }
        let listener = Listener { tls: Some(strict.clone()), ..proxy.listener() };
        let prepared = proxy.server_tls.prepare(std::slice::from_ref(&listener)).ok().unwrap();
        let listeners = proxy.workers.prepare_listeners(&[listener]).unwrap();
        proxy.server_tls.commit(prepared);
        proxy.workers.take_over(listeners);
    }
    for reason in ["no-client-certificate", "bad-client-certificate", "nothing-in-common", "no-application-protocol"] {
        proxy.counts(&format!(r#"lazaret_tls_handshakes_total{{listener="web",result="{reason}"}} 2"#));
    }
    assert_eq!(destination.requests().len(), 2);
}

#[test]
fn a_client_may_show_a_certificate_where_that_is_optional_but_none_of_a_stranger() {
    let (authority, clients, folder) = (Authority::new(), Authority::new(), tempfile::tempdir().unwrap());
    let ca = clients.write(folder.path());
    let certificates = vec![files(folder.path(), &authority.issue(&["a.test"]), "a")];
    let destination = Destination::answering(200, "ok");
    let proxy =
        secured(&destination, ListenerTls { client_auth: ClientAuth::Optional(ca), ..tls(certificates) }).start();
    let with = |certificate| Offer { certificate, ..Offer::new(&authority) }.config();
    assert!(ask(proxy.addr, "a.test", &with(None)).is_ok());
    assert!(ask(proxy.addr, "a.test", &with(Some(clients.issue(&["c.test"])))).is_ok());
    assert!(ask(proxy.addr, "a.test", &with(Some(authority.issue(&["c.test"])))).is_err());
}

#[test]
fn plain_http_at_a_tls_port_is_told_so() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let files = files(folder.path(), &authority.issue(&["a.test"]), "a");
    let destination = Destination::answering(200, "ok");
    let proxy = secured(&destination, tls(vec![files])).start();
    let mut client = proxy.client();
    let answer = client.get("/");
    assert_eq!(answer.status(), 400);
    assert!(answer.value("proxy-status").unwrap().contains("plain-http"), "{answer:?}");
    client.finish();
    assert_eq!(client.rest().1, End::Closed);
    assert!(destination.requests().is_empty());
    proxy.counts(r#"lazaret_tls_handshakes_total{listener="web",result="plain-http"} 1"#);
}

#[test]
fn over_tls_alpn_alone_leads_to_http2() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let files = files(folder.path(), &authority.issue(&["a.test"]), "a");
    let destination = Destination::answering(200, "ok");
    let proxy = secured(&destination, tls(vec![files])).start();
    for protocols in [vec![], vec!["http/1.1"]] {
        let offer = Offer { protocols, ..Offer::new(&authority) };
        let mut client = Client::connect_tls(proxy.addr, "a.test", &offer.config());
        client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        assert_eq!(client.response().status(), 505);
    }
}

#[test]
fn a_handshake_that_does_not_end_is_ended() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let files = files(folder.path(), &authority.issue(&["a.test"]), "a");
    let destination = Destination::answering(200, "ok");
    let proxy = secured(&destination, tls(vec![files]))
        .listening(|listener| listener.limits.tls_handshake = Duration::from_millis(300))
        .start();
    // One that says nothing, and one that begins a ClientHello.
    for start in [b"".as_slice(), b"\x16\x03\x01\x02\x00\x01"] {
        let mut client = proxy.client();
        client.send(start);
        assert_ne!(client.rest().1, End::Open);
    }
    proxy.counts(r#"lazaret_tls_handshakes_total{listener="web",result="tls-handshake-timeout"} 2"#);
    assert!(ask(proxy.addr, "a.test", &Offer::new(&authority).config()).is_ok());
}

#[test]
fn a_client_that_cuts_its_request_off_without_close_notify_is_gone() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let files = files(folder.path(), &authority.issue(&["a.test"]), "a");
    let destination = Destination::answering(200, "ok");
    let proxy = secured(&destination, tls(vec![files])).start();
    let mut client = Client::connect_tls(proxy.addr, "a.test", &Offer::new(&authority).config());
    client.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nhalf");
    client.finish();
    drop(client);
    let line = proxy.log(1).pop().unwrap();
    assert!(line.contains("\"status\":499") || line.contains("\"status\":400"), "{line}");
    assert!(destination.requests().iter().all(|request| request.message.body.len() < 10));
}

/// What a client takes late may have left its body's place and lie in the session, with nothing behind it that would push it
/// out: lengths in small steps put the end of some of them there.
#[test]
fn a_client_that_reads_late_gets_answers_of_every_length_whole() {
    const FIRST: usize = 2_500_000;
    const STEP: usize = 61_003;
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) => {
            let length: usize = request.message.target().trim_start_matches('/').parse().unwrap();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            vec![Act::ReadBody, Act::Send([head.into_bytes(), vec![b'x'; length]].concat())]
        }
    });
    let leaf = authority.issue(&["a.test"]);
    let proxy = secured(&destination, tls(vec![files(folder.path(), &leaf, "a")])).start();
    let config = Offer::new(&authority).config();
    let clients: Vec<_> = (0..64)
        .map(|n| {
            let (config, addr, length) = (Arc::clone(&config), proxy.addr, FIRST + n * STEP);
            std::thread::spawn(move || {
                let tcp = TcpStream::connect(addr).unwrap();
                tcp.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                let connection = ClientConnection::new(config, ServerName::try_from("a.test").unwrap()).unwrap();
                let mut stream = StreamOwned::new(connection, tcp);
                write!(stream, "GET /{length} HTTP/1.1\r\nHost: a.test\r\n\r\n").unwrap();
                stream.flush().unwrap();
                std::thread::sleep(Duration::from_millis(700));
                let (mut got, mut bytes) = (0, vec![0; 64 * 1024]);
                while got < length {
                    got += stream.read(&mut bytes).unwrap_or_else(|error| panic!("{got} of {length}: {error}"));
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
}
