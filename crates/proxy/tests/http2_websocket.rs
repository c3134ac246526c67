//! WebSocket over HTTP/2 (RFC 8441) to a destination that speaks HTTP/1.1.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use h2::ext::Protocol;
use http::Request;
use model::outcome::OutcomeClass;
use support::http2::{H2, answer, run};
use support::setup;
use testkit::destination::Destination;
use testkit::wait::eventually;

/// Accepts one upgrade, answers with this `Sec-WebSocket-Accept` or the right one, and sends back what comes; its head.
fn echo(accept: Option<&'static str>) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
        let accept = accept.map_or_else(|| http2::websocket::accept(key), str::to_owned);
        let answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: chat\r\n\r\nfirst"
        );
        stream.write_all(answer.as_bytes()).unwrap();
        let mut bytes = [0; 1024];
        while let Ok(length) = stream.read(&mut bytes) {
            if length == 0 || stream.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        head
    });
    (addr, serving)
}

fn opening(protocol: &'static str) -> Request<()> {
    let request = Request::connect("http://a.test/chat?x").extension(Protocol::from_static(protocol));
    request.header("sec-websocket-version", "13").header("sec-websocket-protocol", "chat").body(()).unwrap()
}

/// A connection whose SETTINGS have come: only then may `:protocol` be sent.
async fn connect(addr: SocketAddr) -> H2 {
    let client = H2::connect(addr).await;
    let mut send = client.send.clone().ready().await.unwrap();
    while !send.is_extended_connect_protocol_enabled() {
        tokio::task::yield_now().await;
        send = client.send.clone().ready().await.unwrap();
    }
    client
}

#[test]
fn frames_go_both_ways_after_an_upgrade_that_the_destination_has_proved() {
    let (addr, serving) = echo(None);
    let proxy = setup(&[addr]).start();
    run(async {
        let client = connect(proxy.addr).await;
        let (response, mut send) = client.start(opening("websocket"), false).await;
        let response = response.await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["sec-websocket-protocol"]),
            (200, &"chat".parse().unwrap())
        );
        assert!(!response.headers().contains_key("sec-websocket-accept"));
        let mut body = response.into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), "first");
        proxy.counts("lazaret_tunnels_open{cluster=\"c\"} 1");
        for message in ["one", "two"] {
            send.send_data(Bytes::from_static(message.as_bytes()), false).unwrap();
            assert_eq!(body.data().await.unwrap().unwrap(), message);
        }
        send.send_data(Bytes::from_static(b"last"), true).unwrap();
        assert_eq!(body.data().await.unwrap().unwrap(), "last");
        // The end may come as an empty frame.
        while let Some(piece) = body.data().await {
            assert_eq!(piece.unwrap(), "", "an orderly end");
        }
    });
    let head = serving.join().unwrap();
    assert!(head.starts_with("GET /chat?x HTTP/1.1\r\n"), "{head}");
    for line in
        ["Connection: upgrade", "Upgrade: websocket", "sec-websocket-version: 13", "sec-websocket-protocol: chat"]
    {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{head}");
    }
    assert!(proxy.log(1)[0].contains("\"status\":101"));
}

#[test]
fn an_upgrade_without_its_proof_is_no_http() {
    let (addr, _serving) = echo(Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    let proxy = setup(&[addr]).start();
    run(async {
        let client = connect(proxy.addr).await;
        let (response, _send) = client.start(opening("websocket"), false).await;
        let found = answer(response).await.unwrap();
        assert_eq!(found.status, 502);
        assert!(found.value("proxy-status").unwrap().contains("not-http"));
    });
}

#[test]
fn other_protocols_are_not_spoken() {
    let (addr, _serving) = echo(None);
    let proxy = setup(&[addr]).start();
    run(async {
        let client = connect(proxy.addr).await;
        let (response, _send) = client.start(opening("connect-udp"), false).await;
        assert_eq!(answer(response).await.unwrap().status, 501);
    });
}

/// A 200 would say that the tunnel is there (RFC 8441 5), and the content would be read as frames of WebSocket.
#[test]
fn an_answer_that_switches_nothing_is_never_told_as_a_tunnel_and_is_charged_to_nobody() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).start();
    run(async {
        let client = connect(proxy.addr).await;
        let (response, _send) = client.start(opening("websocket"), false).await;
        let found = answer(response).await.unwrap();
        assert_eq!(found.status, 400);
        assert!(found.value("proxy-status").unwrap().contains("no-tunnel"));
    });
    eventually("the attempt to be counted", Duration::from_secs(5), || {
        (proxy.count(0, OutcomeClass::Neutral) == 1).then_some(())
    });
}

#[test]
fn an_answer_that_refuses_the_upgrade_reaches_the_client() {
    let destination = Destination::answering(404, "none here");
    let proxy = setup(&[destination.addr()]).start();
    run(async {
        let client = connect(proxy.addr).await;
        let (response, _send) = client.start(opening("websocket"), false).await;
        assert_eq!(answer(response).await.unwrap().status, 404);
    });
}

#[test]
fn a_refused_connect_that_calls_itself_grpc_is_not_answered_with_a_200() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).start();
    run(async {
        let client = connect(proxy.addr).await;
        let mut extended = opening("connect-udp");
        let mut plain = Request::connect("a.test:443").body(()).unwrap();
        for request in [&mut extended, &mut plain] {
            request.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
        }
        for request in [extended, plain] {
            let (response, _send) = client.start(request, false).await;
            assert_eq!(answer(response).await.unwrap().status, 501);
        }
    });
}
