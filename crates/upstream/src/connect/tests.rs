//! Connections over loopback TLS and, for everything that waits, over the simulated network.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ::io::real::Real;
use ::io::sim::{Behaviour, Sim};
use ::io::{Listener, Share};
use model::cluster::Verify;
use testkit::certificates::Authority;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::resolve::TableResolver;

const FAR: Timestamp = Timestamp::from_secs(3600);

fn sim() -> (Sim, Connector<Sim, TableResolver>) {
    let io = Sim::new();
    let names = TableResolver::new([
        ("two.test", vec!["fd00::1".parse().unwrap(), "10.0.0.1".parse().unwrap()]),
        ("empty.test", Vec::new()),
    ]);
    (io.clone(), Connector::new(io, names, Tls::new()))
}

fn plain(address: &str) -> Target<'_> {
    Target {
        host: "x",
        port: 80,
        literal: Some(address.parse().unwrap()),
        tls: None,
        http: UpstreamHttp::Http1,
        sources: &[],
        on_behalf: None,
    }
}

fn named(host: &str) -> Target<'_> {
    Target { host, port: 80, literal: None, tls: None, http: UpstreamHttp::Http1, sources: &[], on_behalf: None }
}

async fn kind(connector: &Connector<Sim, TableResolver>, target: Target<'_>, deadline: Timestamp) -> FailureKind {
    match connector.connect(target, deadline).await {
        Ok(_) => panic!("connected"),
        Err(error) => error.kind,
    }
}

#[tokio::test]
async fn a_proxy_header_goes_ahead_of_everything_else() {
    let io = Real::new();
    let connector = Connector::new(io, TableResolver::default(), Tls::new());
    let (client, server) = ("192.0.2.7:1025".parse().unwrap(), "198.51.100.1:443".parse().unwrap());
    let settings = UpstreamTls::default();
    for who in [OnBehalf::Ourselves, OnBehalf::Client { client, server }] {
        for tls in [None, Some(&settings)] {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let literal = Some(listener.local_addr().unwrap());
            let target = Target { literal, on_behalf: Some(who), tls, ..named("a.test") };
            let expected = proxy_header::write(who);
            let taking = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut header = vec![0; expected.len()];
                stream.read_exact(&mut header).await.unwrap();
                assert_eq!(header, expected, "{who:?}");
                if tls.is_some() {
                    assert_eq!(stream.read_u8().await.unwrap(), 0x16, "a TLS handshake follows");
                }
            };
            let ((), connected) = tokio::join!(taking, connector.connect(target, FAR));
            assert_eq!(connected.is_ok(), tls.is_none());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_way_to_fail_has_its_own_reason() {
    let (io, connector) = sim();
    let address = "10.0.0.9:80";
    for (behaviour, expected) in [
        (Behaviour::Accept, FailureKind::Refused),
        (Behaviour::Refuse, FailureKind::Refused),
        (Behaviour::Unreachable, FailureKind::Unreachable),
        (Behaviour::Hang, FailureKind::ConnectTimeout),
        (Behaviour::Fail(EMFILE), FailureKind::Local),
        (Behaviour::Fail(ENFILE), FailureKind::Local),
        (Behaviour::Fail(ENOBUFS), FailureKind::Local),
        // ENOMEM, EADDRINUSE, EADDRNOTAVAIL, ENETUNREACH, ETIMEDOUT, EPERM
        (Behaviour::Fail(12), FailureKind::Local),
        (Behaviour::Fail(EAGAIN), FailureKind::Local),
        (Behaviour::Fail(98), FailureKind::Local),
        (Behaviour::Fail(99), FailureKind::Local),
        (Behaviour::Fail(101), FailureKind::Unreachable),
        (Behaviour::Fail(110), FailureKind::ConnectTimeout),
        (Behaviour::Fail(1), FailureKind::Unreachable),
    ] {
        io.set_behaviour(address.parse().unwrap(), behaviour);
        assert_eq!(
            kind(&connector, plain(address), io.now() + Duration::from_secs(1)).await,
            expected,
            "{behaviour:?}"
        );
    }
    assert_eq!(kind(&connector, named("nobody.test"), FAR).await, FailureKind::Dns);
    assert_eq!(kind(&connector, named("empty.test"), FAR).await, FailureKind::Dns);
}

#[tokio::test(start_paused = true)]
async fn connections_start_at_the_addresses_of_their_family_evenly() {
    let (io, connector) = sim();
    let sources: Vec<IpAddr> = ["10.9.0.1", "2001:db8::9", "10.9.0.2"].map(|ip| ip.parse().unwrap()).into();
    let address = "10.0.0.9:80".parse().unwrap();
    let _listening = io.bind(address, Share::First).unwrap();
    let mut seen = Vec::new();
    for _ in 0..4 {
        let target = Target { sources: &sources, ..plain("10.0.0.9:80") };
        let Stream::Plain(stream) = connector.connect(target, FAR).await.unwrap() else { panic!("plain") };
        seen.push(::io::Stream::local_addr(&stream).unwrap().ip().to_string());
    }
    assert_eq!(seen, ["10.9.0.1", "10.9.0.2", "10.9.0.1", "10.9.0.2"]);
    // Two clusters by turns: each one's connections start at all addresses, too.
    let mut times = [[0; 2]; 2];
    for number in 0..200 {
        let target = Target { sources: &sources, ..plain("10.0.0.9:80") };
        let Stream::Plain(stream) = connector.connect(target, FAR).await.unwrap() else { panic!("plain") };
        let from = ::io::Stream::local_addr(&stream).unwrap().ip();
        times[number % 2][usize::from(from == sources[2])] += 1;
    }
    assert!(times.iter().flatten().all(|times| (45..=55).contains(times)), "{times:?}");
    let six = Target { sources: &sources[..1], ..plain("[2001:db8::1]:80") };
    let _listening = io.bind("[2001:db8::1]:80".parse().unwrap(), Share::First).unwrap();
    assert!(connector.connect(six, FAR).await.is_ok(), "none of its family: the system chooses");
}

#[tokio::test(start_paused = true)]
async fn a_connect_that_hangs_ends_at_its_deadline() {
    let (io, connector) = sim();
    io.set_behaviour("10.0.0.9:80".parse().unwrap(), Behaviour::Hang);
    assert_eq!(kind(&connector, plain("10.0.0.9:80"), Timestamp::from_millis(700)).await, FailureKind::ConnectTimeout);
    assert_eq!(io.now(), Timestamp::from_millis(700));
}

#[tokio::test(start_paused = true)]
async fn the_next_address_is_tried_after_a_refusal_and_after_its_share_of_silence() {
    let (io, connector) = sim();
    let (v4, v6) = ("10.0.0.1:80".parse().unwrap(), "[fd00::1]:80".parse().unwrap());
    let _listener = io.bind(v6, Share::First).unwrap();
    let stream = connector.connect(named("two.test"), FAR).await.unwrap();
    assert_eq!(::io::Stream::peer_addr(&stream).unwrap(), v6);
    assert_eq!(io.now(), Timestamp::ZERO);

    io.set_behaviour(v4, Behaviour::Hang);
    connector.connect(named("two.test"), Timestamp::from_secs(2)).await.unwrap();
    assert_eq!(io.now(), Timestamp::from_secs(1));

    // IPv4 comes first though the resolver names it last.
    io.set_behaviour(v4, Behaviour::Accept);
    let _listener = io.bind(v4, Share::First).unwrap();
    let stream = connector.connect(named("two.test"), FAR).await.unwrap();
    assert_eq!(::io::Stream::peer_addr(&stream).unwrap(), v4);

    io.set_behaviour(v4, Behaviour::Refuse);
    io.set_behaviour(v6, Behaviour::Unreachable);
    assert_eq!(kind(&connector, named("two.test"), FAR).await, FailureKind::Unreachable);
}

#[tokio::test(start_paused = true)]
async fn tcp_and_tls_share_one_deadline() {
    let (io, connector) = sim();
    let address = "10.0.0.9:80";
    io.set_latency(address.parse().unwrap(), Duration::from_millis(400));
    let listener = io.bind(address.parse().unwrap(), Share::First).unwrap();
    let settings = UpstreamTls { verify: Verify::DangerousNone, ..UpstreamTls::default() };
    let target = Target { tls: Some(&settings), ..plain(address) };
    // The peer takes the connection and says nothing.
    let (kind, _held) = tokio::join!(kind(&connector, target, Timestamp::from_secs(1)), listener.accept());
    assert_eq!(kind, FailureKind::ConnectTimeout);
    assert_eq!(io.now(), Timestamp::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_speak_tls_is_a_tls_failure() {
    let (io, connector) = sim();
    let address = "10.0.0.9:80";
    let listener = io.bind(address.parse().unwrap(), Share::First).unwrap();
    let settings = UpstreamTls { verify: Verify::DangerousNone, ..UpstreamTls::default() };
    let target = Target { tls: Some(&settings), ..plain(address) };
    for answer in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b""] {
        let (kind, ()) = tokio::join!(kind(&connector, target, FAR), async {
            let mut stream = listener.accept().await.unwrap().0;
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer).await;
        });
        assert_eq!(kind, FailureKind::Tls);
    }
}

/// A TLS server on loopback that greets each client; its certificate holds for `localhost` alone.
struct TlsServer {
    address: SocketAddr,
    ca: PathBuf,
    _folder: tempfile::TempDir,
}

fn tls_server(protocols: &[&str]) -> TlsServer {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let ca = authority.write(folder.path());
    let mut config = (*authority.issue(&["localhost"]).server_config()).clone();
    config.alpn_protocols = protocols.iter().map(|one| one.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let io = Real::new();
    let listener = io.listen(io.bind("127.0.0.1:0".parse().unwrap(), Share::First).unwrap()).unwrap();
    let address = Listener::local_addr(&listener).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let protocol = stream.get_ref().1.alpn_protocol().unwrap_or_default().to_vec();
                let _ = stream.write_all(&protocol).await;
                let _ = stream.shutdown().await;
            }
        }
    });
    TlsServer { address, ca, _folder: folder }
}

#[tokio::test]
async fn a_certificate_counts_by_its_authority_and_its_name() {
    let server = tls_server(&["h2", "http/1.1"]);
    let connector = Connector::new(Real::new(), TableResolver::default(), Tls::new());
    let deadline = connector.io().now() + Duration::from_secs(30);
    let ours = UpstreamTls { ca: Some(server.ca.clone()), ..UpstreamTls::default() };
    let (port, literal, http) = (server.address.port(), Some(server.address), UpstreamHttp::Http1);
    let target = |host, tls| Target { host, port, literal, tls, http, sources: &[], on_behalf: None };

    let mut stream = connector.connect(target("localhost", Some(&ours)), deadline).await.unwrap();
    let mut greeting = String::new();
    stream.read_to_string(&mut greeting).await.unwrap();
    assert_eq!(greeting, "http/1.1");

    // The address is no name of the certificate, unless the settings name one.
    let renamed = UpstreamTls { server_name: Some("localhost".to_owned()), ..ours.clone() };
    assert!(connector.connect(target("127.0.0.1", Some(&renamed)), deadline).await.is_ok());
    for (host, settings) in [("127.0.0.1", &ours), ("other.test", &ours)] {
        let error = connector.connect(target(host, Some(settings)), deadline).await.err().unwrap();
        assert_eq!(error.kind, FailureKind::Tls);
        assert!(error.to_string().contains("not valid for name"), "{error}");
    }
    // The platform does not know our authority.
    let platform = UpstreamTls::default();
    let error = connector.connect(target("localhost", Some(&platform)), deadline).await.err().unwrap();
    assert_eq!(error.kind, FailureKind::Tls, "{error}");

    let nobody = UpstreamTls { verify: Verify::DangerousNone, ..UpstreamTls::default() };
    assert!(connector.connect(target("other.test", Some(&nobody)), deadline).await.is_ok());
}

#[tokio::test]
async fn alpn_offers_what_the_cluster_speaks_and_http2_alone_must_be_chosen() {
    use UpstreamHttp::{Http1, Http2, Http2OrHttp1};
    let nobody = UpstreamTls { verify: Verify::DangerousNone, ..UpstreamTls::default() };
    let connector = Connector::new(Real::new(), TableResolver::default(), Tls::new());
    let deadline = connector.io().now() + Duration::from_secs(30);
    for (offered, http, chosen) in [
        (&["h2", "http/1.1"][..], Http1, Ok(Some(Alpn::Http11))),
        (&["h2", "http/1.1"], Http2, Ok(Some(Alpn::Http2))),
        (&["h2", "http/1.1"], Http2OrHttp1, Ok(Some(Alpn::Http2))),
        (&["http/1.1"], Http2OrHttp1, Ok(Some(Alpn::Http11))),
        (&[], Http2OrHttp1, Ok(None)),
        (&[], Http1, Ok(None)),
        (&["http/1.1"], Http2, Err(FailureKind::Protocol)),
        (&[], Http2, Err(FailureKind::Protocol)),
    ] {
        let server = tls_server(offered);
        let target = Target {
            host: "x",
            port: 0,
            literal: Some(server.address),
            tls: Some(&nobody),
            http,
            sources: &[],
            on_behalf: None,
        };
        let found = connector.connect(target, deadline).await;
        assert_eq!(found.map(|stream| stream.alpn()).map_err(|error| error.kind), chosen, "{offered:?} {http:?}");
    }
}

#[tokio::test]
async fn the_kernel_refuses_too() {
    let io = Real::new();
    let bound = io.bind("127.0.0.1:0".parse().unwrap(), Share::First).unwrap();
    let address = bound.local_addr().unwrap();
    drop(bound);
    let connector = Connector::new(io, TableResolver::new([("x", vec![IpAddr::from([127, 0, 0, 1])])]), Tls::new());
    let target = Target {
        host: "x",
        port: address.port(),
        literal: None,
        tls: None,
        http: UpstreamHttp::Http1,
        sources: &[],
        on_behalf: None,
    };
    let error = connector.connect(target, io.now() + Duration::from_secs(30)).await.err().unwrap();
    assert_eq!((error.kind, error.address), (FailureKind::Refused, Some(address)));
}
