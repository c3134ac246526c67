//! What is decided of a connection before its first byte of HTTP: whom it stands for, whether it may come, how many.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use model::entry::{AccessList, ConnectionLimit, ProxyProtocol};
use model::tls::{Alpn, CertificateFiles, ClientAuth, ListenerTls, TlsVersion};
use support::setup;
use testkit::certificates::Authority;
use testkit::client::End;
use testkit::destination::Destination;

const REQUIRED: ProxyProtocol = ProxyProtocol::Required { from: Vec::new() };
const V1: &str = "PROXY TCP4 192.0.2.7 10.0.0.1 1025 443\r\n";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x0a\0\0\x01\x04\x01\x01\xbb";
const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[test]
fn the_client_that_a_proxy_header_names_is_the_client_everywhere() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).listening(|listener| listener.entry.proxy_protocol = REQUIRED).start();
    for header in [V1.as_bytes(), V2] {
        let mut client = proxy.client();
        // In one piece, then cut where it hurts.
        client.send([header, GET.as_bytes()].concat());
        assert_eq!(client.response().status(), 200);
        assert_eq!(client.get("/again").status(), 200);
        let mut client = proxy.client();
        for byte in header {
            client.send([*byte]);
        }
        client.send(GET);
        assert_eq!(client.response().status(), 200);
    }
    for request in destination.requests() {
        assert_eq!(request.message.values("x-forwarded-for"), ["192.0.2.7"]);
    }
    assert!(proxy.log(6).iter().all(|line| line.contains("\"client\":\"192.0.2.7\"")));
}

#[test]
fn a_relay_that_speaks_for_itself_is_the_client() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).listening(|listener| listener.entry.proxy_protocol = REQUIRED).start();
    for header in [b"PROXY UNKNOWN\r\n".as_slice(), b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"] {
        let mut client = proxy.client();
        client.send([header, GET.as_bytes()].concat());
        assert_eq!(client.response().status(), 200);
    }
    for request in destination.requests() {
        assert_eq!(request.message.values("x-forwarded-for"), ["127.0.0.1"]);
    }
}

#[test]
fn a_connection_without_its_proxy_header_is_closed_and_counted() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()])
        .listening(|listener| {
            listener.entry.proxy_protocol = REQUIRED;
            listener.limits.header_timeout = Duration::from_millis(300);
        })
        .start();
    for bytes in [GET.as_bytes(), b"PROXY TCP4 nonsense\r\n", &[b"PROXY UNKNOWN ".as_slice(), &[b'x'; 100]].concat()] {
        let mut client = proxy.client();
        client.send(bytes);
        let (answer, end) = client.rest();
        assert!(answer.is_empty() && end != End::Open, "{bytes:?}");
    }
    proxy.counts(r#"lazaret_connections_refused_total{listener="web",reason="proxy-header"} 3"#);
    let mut slow = proxy.client();
    slow.send("PROXY TCP4 192.0.2.7 ");
    assert_ne!(slow.rest().1, End::Open);
    proxy.counts(r#"lazaret_connections_refused_total{listener="web",reason="proxy-header-timeout"} 1"#);
    assert!(destination.requests().is_empty());
}

#[test]
fn a_peer_that_is_no_relay_of_ours_cannot_name_a_client() {
    let destination = Destination::answering(200, "ok");
    let from = vec!["10.0.0.0/8".parse().unwrap()];
    let proxy = setup(&[destination.addr()])
        .listening(|listener| listener.entry.proxy_protocol = ProxyProtocol::Required { from })
        .start();
    let mut client = proxy.client();
    let _ = client.try_send([V1, GET].concat());
    assert!(client.rest().0.is_empty());
    proxy.counts(r#"lazaret_connections_refused_total{listener="web",reason="proxy-peer"} 1"#);
    assert!(destination.requests().is_empty());
}

#[test]
fn tls_may_follow_the_proxy_header_in_the_same_packet() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let (certificate, key) = authority.issue(&["a.test"]).write(folder.path(), "a");
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()])
        .listening(|listener| {
            listener.entry.proxy_protocol = REQUIRED;
            listener.tls = Some(ListenerTls {
                certificates: vec![CertificateFiles { certificate, key }],
                min_version: TlsVersion::Tls12,
                client_auth: ClientAuth::Off,
                ticket_keys: None,
                protocols: vec![Alpn::Http11],
            });
        })
        .start();
    let name = "a.test".try_into().unwrap();
    let mut tls = rustls::ClientConnection::new(authority.client_config(), name).unwrap();
    let mut first = V2.to_vec();
    tls.write_tls(&mut first).unwrap();
    let mut tcp = TcpStream::connect(proxy.addr).unwrap();
    tcp.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    tcp.write_all(&first).unwrap();
    let mut stream = rustls::StreamOwned::new(tls, tcp);
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert_eq!(destination.requests()[0].message.values("x-forwarded-for"), ["192.0.2.7"]);
}

#[test]
fn who_is_denied_is_closed_at_once_and_what_the_request_says_does_not_count() {
    let destination = Destination::answering(200, "ok");
    let access = |allow: &[&str], deny: &[&str]| AccessList {
        allow: allow.iter().map(|text| text.parse().unwrap()).collect(),
        deny: deny.iter().map(|text| text.parse().unwrap()).collect(),
    };
    let start = |access| {
        let setup = setup(&[destination.addr()]).listening(|listener| {
            listener.entry.access = access;
            listener.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        });
        setup.start()
    };
    let open = start(access(&["127.0.0.0/8"], &["192.0.2.0/24"]));
    let mut client = open.client();
    // The listener's own list knows connections, not requests.
    client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n");
    assert_eq!(client.response().status(), 200);
    for list in [access(&["10.0.0.0/8"], &[]), access(&[], &["127.0.0.1/32"])] {
        let closed = start(list);
        for _ in 0..3 {
            let mut client = closed.client();
            let _ = client.try_send("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n");
            assert!(client.rest().0.is_empty());
        }
        closed.counts(r#"lazaret_connections_refused_total{listener="web",reason="denied"} 3"#);
    }
    assert_eq!(destination.requests().len(), 1);
}

#[test]
fn the_client_of_the_proxy_header_is_the_one_that_is_judged() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()])
        .listening(|listener| {
            listener.entry.proxy_protocol = REQUIRED;
            listener.entry.access.deny = vec!["192.0.2.0/24".parse().unwrap()];
        })
        .start();
    let mut denied = proxy.client();
    denied.send([V1, GET].concat());
    assert!(denied.rest().0.is_empty());
    let mut other = proxy.client();
    other.send([&V1.replace("192.0.2.7", "192.0.3.7"), GET].concat());
    assert_eq!(other.response().status(), 200);
}

#[test]
fn a_client_has_no_more_connections_than_it_may_and_a_closed_one_makes_room() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()])
        .listening(|listener| listener.entry.limit_connections = Some(ConnectionLimit { per_client: 2 }))
        .start();
    let (mut one, mut two) = (proxy.client(), proxy.client());
    assert_eq!((one.get("/").status(), two.get("/").status()), (200, 200));
    let mut three = proxy.client();
    let _ = three.try_send(GET);
    assert!(three.rest().0.is_empty());
    proxy.counts(r#"lazaret_connections_refused_total{listener="web",reason="limit-connections"} 1"#);
    drop(one);
    testkit::wait::eventually("room for another connection", Duration::from_secs(5), || {
        let mut client = proxy.client();
        client.try_send(GET).ok()?;
        client.try_response(testkit::message::Expect::Response).1.ok()
    });
    assert_eq!(two.get("/").status(), 200);
}
