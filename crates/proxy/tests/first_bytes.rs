//! Of most answers the whole body comes with the head, in one read: it passes as it came, in every framing, and is there
//! when the answer is kept for later (RFC 9112 6).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use support::setup;
use testkit::destination::{Act, Destination, Moment, refusing};
use testkit::message::Expect;

fn sending(bytes: String, then: Act) -> Destination {
    Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![Act::Send(bytes.clone().into_bytes()), then.clone()],
    })
}

fn text(length: usize) -> String {
    ('a'..='z').cycle().take(length).collect()
}

fn chunked(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
}

fn sized(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn a_body_that_came_with_its_head_passes_whole() {
    // Beyond what is copied, what is read at once, and what is worth a pipe.
    for length in [1_000, 1_030, 10_000, 32_000, 33_000, 200_000] {
        let body = text(length);
        for answer in [sized(&body), chunked(&body)] {
            let destination = sending(answer, Act::Pause(Duration::ZERO));
            let proxy = setup(&[destination.addr()]).start();
            let mut client = proxy.client();
            for _ in 0..3 {
                assert!(client.get("/").text() == body, "{length}");
            }
            let mut client = proxy.client();
            client.send("GET / HTTP/1.0\r\n\r\n");
            assert!(client.response().text() == body, "{length}");
            assert_eq!(destination.connections(), 1);
        }
        let destination = sending(format!("HTTP/1.1 200 OK\r\n\r\n{body}"), Act::Close);
        let proxy = setup(&[destination.addr()]).start();
        assert!(proxy.client().get("/").text() == body, "{length}");
    }
}

#[test]
fn an_answer_to_head_has_no_body_whatever_comes_with_it() {
    let destination = sending(sized(&text(10_000)), Act::Pause(Duration::ZERO));
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    for _ in 0..2 {
        client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
        let (response, _) = client.try_response(Expect::ResponseToHead);
        assert_eq!((response.status(), response.raw_body.len()), (200, 0));
    }
    assert_eq!(destination.connections(), 2, "a connection with bytes that nobody asked for is not used again");
}

#[test]
fn bytes_behind_the_body_go_nowhere() {
    let body = text(10_000);
    let destination = sending(format!("{}HTTP/1.1 200 OK\r\n\r\nother", sized(&body)), Act::Pause(Duration::ZERO));
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    for _ in 0..2 {
        assert!(client.get("/").text() == body);
    }
    assert_eq!(destination.connections(), 2);
}

#[test]
fn a_large_answer_that_is_held_is_whole_when_nothing_better_comes() {
    let body = text(10_000);
    let busy = Destination::answering(503, &body);
    let proxy = setup(&[busy.addr(), refusing()]).retrying().start();
    let response = proxy.client().get("/");
    assert_eq!(response.status(), 503);
    assert!(response.text() == body);
}
