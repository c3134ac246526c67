//! Bodies pass whole or visibly broken, with back-pressure and with early answers (RFC 9112 6 and 9.5).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use model::outcome::OutcomeClass;
use model::route::Buffering;
use support::setup;
use testkit::client::End;
use testkit::destination::{Act, Destination, Moment};
use testkit::message::Expect;
use testkit::wait::eventually;

fn sending(bytes: impl Into<Vec<u8>>, then: Act) -> Destination {
    let bytes = bytes.into();
    Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![Act::ReadBody, Act::Send(bytes.clone()), then.clone()],
    })
}

#[test]
fn large_bodies_pass_in_both_directions() {
    let body = "0123456789abcdef".repeat(512 * 1024);
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let destination = sending(answer, Act::Pause(Duration::ZERO));
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    for _ in 0..2 {
        client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        assert!(client.response().text() == body);
        assert!(destination.requests().pop().unwrap().message.text() == body);
    }
    assert_eq!(destination.connections(), 1);
}

#[test]
fn chunks_pass_as_they_are_and_are_decoded_for_http_1_0() {
    let chunks = "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nX-T: 1\r\n\r\n";
    let destination = sending(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"), Act::ReadBody);
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    for _ in 0..2 {
        assert_eq!(String::from_utf8(client.get("/").raw_body).unwrap(), chunks);
    }
    let mut client = proxy.client();
    client.send("GET / HTTP/1.0\r\n\r\n");
    let response = client.response();
    assert_eq!((response.text().as_str(), response.value("transfer-encoding")), ("hello world", None));
    assert_eq!(destination.connections(), 1);
}

#[test]
fn a_body_that_ends_with_the_connection_ends_with_it_for_the_client() {
    let destination = sending("HTTP/1.1 200 OK\r\n\r\nto the end", Act::Close);
    let proxy = setup(&[destination.addr()]).start();
    let response = proxy.client().get("/");
    assert_eq!((response.text().as_str(), response.value("connection").as_deref()), ("to the end", Some("close")));
}

#[test]
fn a_body_that_breaks_off_never_looks_whole() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (text, end, seen) in [
        (format!("{chunked}5\r\nhel"), Act::Close, "5\r\nhel"),
        (format!("{chunked}5\r\nhello\r\n"), Act::Close, "5\r\nhello\r\n"),
        (format!("{chunked}5\r\nhello\r\n0\r\n"), Act::Close, "5\r\nhello\r\n0\r\n"),
        (format!("{chunked}5\r\nhello\r\nzz\r\n"), Act::Stall, "5\r\nhello\r\n"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello".to_owned(), Act::Close, "hello"),
        (chunked.to_owned(), Act::Close, ""),
    ] {
        let destination = sending(text.clone(), end);
        let proxy = setup(&[destination.addr()]).retrying().start();
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let (message, result) = client.try_response(Expect::Response);
        assert_eq!(message.status(), 200, "{text:?}");
        assert!(result.is_err(), "{text:?}");
        let (rest, _) = client.rest();
        let got = [message.raw_body.as_slice(), &rest].concat();
        assert!(seen.as_bytes().starts_with(&got) || got.starts_with(seen.as_bytes()), "{text:?}: {got:?}");
        assert_eq!(destination.requests().len(), 1, "never retried once the client has seen a byte");
        let line = proxy.log(1).remove(0);
        assert!(line.contains("\"reason\":\"body-cut\""), "{line}");
        eventually("the cut is counted", Duration::from_secs(5), || {
            (proxy.count(0, OutcomeClass::Cut) == 1).then_some(())
        });
    }
}

#[test]
fn a_cut_that_framing_cannot_show_is_a_reset() {
    let destination = sending("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", Act::Close);
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    client.send("GET / HTTP/1.0\r\n\r\n");
    let (_, end) = client.rest();
    assert_eq!(end, End::Reset);
}

#[test]
fn an_early_answer_reaches_a_client_that_is_still_sending() {
    let answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge".to_vec();
    for end in [vec![Act::HalfClose, Act::ReadBody], vec![Act::Close]] {
        let acts = [vec![Act::Send(answer.clone())], end].concat();
        let destination = Destination::start(move |moment| match moment {
            Moment::Accepted => vec![],
            Moment::Request(_) => acts.clone(),
        });
        let proxy = setup(&[destination.addr()]).retrying().start();
        let mut client = proxy.client();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50000000\r\n\r\n");
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..50 {
            if client.try_send(&piece).is_err() {
                break;
            }
        }
        let response = client.response();
        assert_eq!((response.status(), response.text().as_str()), (413, "large"));
        proxy.log(1);
        assert_eq!(proxy.count(0, OutcomeClass::Ok), 1);
        assert_eq!(destination.requests().len(), 1);
    }
}

#[test]
fn a_broken_request_body_is_the_clients_fault() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).retrying().start();
    let mut client = proxy.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
    assert_eq!(client.response().status(), 400);
    let mut client = proxy.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    eventually("the request is on its way", Duration::from_secs(5), || {
        destination.requests().iter().any(|request| request.message.value("content-length").is_some()).then_some(())
    });
    client.finish();
    let line = proxy.log(2).remove(1);
    assert!(line.contains("\"status\":499"), "{line}");
    assert_eq!(proxy.count(0, OutcomeClass::AppFail) + proxy.count(0, OutcomeClass::ConnFail), 0);
}

#[test]
fn a_head_and_each_event_reach_the_client_while_more_is_to_come() {
    let heads = [
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ];
    let events = [["data: 1\n\n", "data: 2\n\n"], ["9\r\ndata: 1\n\n\r\n", "9\r\ndata: 2\n\n\r\n"]];
    for buffering in [Buffering::Off, Buffering::ON] {
        for (head, events) in heads.iter().zip(events) {
            for sent in 0..=events.len() {
                // Then nothing: what the client has got was not held for what follows.
                let mut acts = vec![Act::ReadBody, Act::Send(head.as_bytes().to_vec())];
                acts.extend(events.iter().take(sent).map(|event| Act::Send(event.as_bytes().to_vec())));
                acts.push(Act::Stall);
                let destination = Destination::start(move |moment| match moment {
                    Moment::Accepted => vec![],
                    Moment::Request(_) => acts.clone(),
                });
                let mut setup = setup(&[destination.addr()]);
                setup.routes[0].policy.buffering = buffering;
                let proxy = setup.start();
                let mut client = TcpStream::connect(proxy.addr).unwrap();
                client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
                let last = events.iter().take(sent).next_back().map_or("\r\n\r\n", |event| event);
                let mut got = Vec::new();
                while !got.ends_with(last.as_bytes()) {
                    let mut byte = [0];
                    client.read_exact(&mut byte).expect("the rest of what was sent");
                    got.push(byte[0]);
                }
            }
        }
    }
}

#[test]
fn a_stream_of_events_is_ok_once_it_has_begun_and_a_cut_besides_when_it_breaks_off() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let destination = sending(format!("{head}9\r\ndata: 1\n\n\r\n"), Act::Stall);
    let proxy = setup(&[destination.addr()]).start();
    let mut client = TcpStream::connect(proxy.addr).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    eventually("the stream is counted while it runs", Duration::from_secs(5), || {
        (proxy.count(0, OutcomeClass::Ok) == 1).then_some(())
    });
    assert_eq!(proxy.count(0, OutcomeClass::Cut), 0);
    drop(destination);
    let line = proxy.log(1).remove(0);
    assert!(line.contains("\"reason\":\"body-cut\""), "{line}");
    assert!(line.contains("\"outcome\":\"body_cut\"") && !line.contains("\"outcome\":\"ok\""), "{line}");
    assert_eq!([OutcomeClass::Ok, OutcomeClass::Cut].map(|class| proxy.count(0, class)), [1, 1]);

    // One that its client leaves adds nothing.
    let destination = sending(format!("{head}9\r\ndata: 1\n\n\r\n"), Act::Stall);
    let proxy = setup(&[destination.addr()]).start();
    let mut client = TcpStream::connect(proxy.addr).unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let _ = client.read(&mut [0; 256]).unwrap();
    drop(client);
    let line = proxy.log(1).remove(0);
    assert!(line.contains("\"reason\":\"client-gone\"") && line.contains("\"outcome\":\"ok\""), "{line}");
    let all: u64 = OutcomeClass::ALL.into_iter().map(|class| proxy.count(0, class)).sum();
    assert_eq!(all, 1);
}
