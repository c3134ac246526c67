//! Large answers pass through the kernel, byte for byte, whole or visibly cut, with back-pressure (RFC 9112 6 and 8).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use model::outcome::OutcomeClass;
use support::{Proxy, setup};
use testkit::destination::{Act, Destination, Moment};
use testkit::message::Expect;
use testkit::wait::eventually;

/// No two neighbouring pieces are alike.
fn content(size: usize) -> Vec<u8> {
    (0..size).map(|at| u8::try_from((at + at / 251) % 251).unwrap()).collect()
}

fn with_length(size: usize) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n").into_bytes(), content(size)].concat()
}

/// Answers a request for `/n` with the n-th script.
fn scripted(scripts: Vec<Vec<Act>>) -> Destination {
    Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) => {
            let number: usize = request.message.target().trim_start_matches('/').parse().unwrap();
            scripts[number].clone()
        }
    })
}

fn field(line: &str, name: &str) -> String {
    let rest = line.split(&format!("\"{name}\":")).nth(1).unwrap();
    rest.split([',', '}']).next().unwrap().trim_matches('"').to_owned()
}

#[test]
fn answers_of_every_odd_size_arrive_byte_for_byte_over_one_connection() {
    let sizes = [65_535, 65_536, 65_537, 131_071, 196_613, 262_144, 262_145, 524_287, 1_048_583, 3_000_001, 5];
    let scripts = sizes.map(|size| vec![Act::ReadBody, Act::Send(with_length(size))]).to_vec();
    let destination = scripted(scripts);
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    for (number, size) in sizes.iter().enumerate() {
        let response = client.get(&format!("/{number}"));
        assert!(response.raw_body == content(*size), "{size}: {} bytes came", response.raw_body.len());
        let line = proxy.log(number + 1).remove(number);
        let sent: usize = field(&line, "bytes_out").parse().unwrap();
        assert!((*size..size + 500).contains(&sent), "{size}: {line}");
        assert_eq!(field(&line, "reason"), "");
    }
    assert_eq!(destination.connections(), 1);
}

#[test]
fn a_large_answer_may_come_in_pieces_and_end_with_the_connection() {
    let body = content(700_001);
    let mut pieces = vec![Act::ReadBody, Act::Send(b"HTTP/1.1 200 OK\r\n\r\n".to_vec())];
    for piece in body.chunks(99_991) {
        pieces.push(Act::Send(piece.to_vec()));
        pieces.push(Act::Pause(Duration::from_millis(1)));
    }
    pieces.push(Act::Close);
    let mut sized = pieces.clone();
    sized[1] = Act::Send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes());
    let destination = scripted(vec![pieces, sized]);
    let proxy = setup(&[destination.addr()]).start();
    for target in ["/0", "/1"] {
        assert!(proxy.client().get(target).raw_body == body, "{target}");
    }
    assert!(proxy.log(2).iter().all(|line| field(line, "reason").is_empty()));
}

#[test]
fn a_large_answer_that_breaks_off_never_looks_whole() {
    for end in [Act::Close, Act::Reset] {
        let cut = with_length(1_000_000)[..700_000].to_vec();
        let destination = scripted(vec![vec![Act::ReadBody, Act::Send(cut), end]]);
        let proxy = setup(&[destination.addr()]).retrying().start();
        let mut client = proxy.client();
        client.send("GET /0 HTTP/1.1\r\nHost: a\r\n\r\n");
        let (message, result) = client.try_response(Expect::Response);
        assert!(message.status() == 200 && result.is_err());
        assert!(content(1_000_000).starts_with(&message.raw_body));
        assert_eq!(field(&proxy.log(1).remove(0), "reason"), "body-cut");
        eventually("the cut is counted", Duration::from_secs(5), || {
            (proxy.count(0, OutcomeClass::Cut) == 1).then_some(())
        });
    }
}

fn asks(proxy: &Proxy, target: &str) -> TcpStream {
    let mut client = TcpStream::connect(proxy.addr).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(client, "GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    client
}

#[test]
fn slow_readers_get_every_byte_and_those_that_leave_harm_nobody() {
    let size = 8_000_003;
    let destination = scripted(vec![vec![Act::ReadBody, Act::Send(with_length(size))]]);
    let proxy = setup(&[destination.addr()]).start();
    let slow: Vec<_> = (0..5).map(|_| asks(&proxy, "/0")).collect();
    // More than one takes, and nothing of the rest: these leave in the middle.
    for _ in 0..5 {
        let mut leaves = asks(&proxy, "/0");
        leaves.read_exact(&mut vec![0; 300_000]).unwrap();
    }
    assert!(proxy.client().get("/0").raw_body == content(size));
    let expected = content(size);
    for mut client in slow {
        let mut seen = Vec::new();
        client.read_to_end(&mut seen).unwrap();
        let head = seen.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        assert!(seen[head..] == expected, "{} bytes came", seen.len() - head);
    }
    let lines = proxy.log(11);
    let gone = lines.iter().filter(|line| field(line, "reason") == "client-gone").count();
    assert_eq!((lines.len(), gone), (11, 5));
    assert_eq!(proxy.count(0, OutcomeClass::Cut), 0);
}
