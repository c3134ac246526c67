//! Limits on what a client may send, each to the byte, each with its own word; and a head of a destination that is too
//! large.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use model::outcome::OutcomeClass;
use model::route::RouteAction;
use support::setup;
use testkit::destination::{Act, Destination, Moment};

#[test]
fn heads_at_the_limit_pass_and_beyond_it_are_refused_by_name() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).start();
    let ask = |head: String| {
        let mut client = proxy.client();
        client.send(head);
        let response = client.response();
        (response.status(), response.value("proxy-status").unwrap_or_default())
    };
    let line = |length: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(length - 14));
    assert_eq!(ask(line(8192)).0, 200);
    let (status, word) = ask(line(8193));
    assert!(status == 414 && word.contains("request-line-too-long"), "{status} {word}");
    let bytes = |length: usize| format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(length - 16));
    assert_eq!(ask(bytes(32768)).0, 200);
    let (status, word) = ask(bytes(32769));
    assert!(status == 431 && word.contains("header-too-large"), "{status} {word}");
    let fields = |count: usize| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: 1\r\n".repeat(count - 1));
    assert_eq!(ask(fields(100)).0, 200);
    let (status, word) = ask(fields(101));
    assert!(status == 431 && word.contains("too-many-fields"), "{status} {word}");
}

#[test]
fn bodies_beyond_the_limit_are_refused_before_or_in_the_middle() {
    let destination = Destination::answering(200, "ok");
    let mut setup = setup(&[destination.addr()]).listening(|listener| listener.limits.body = Some(10));
    let proxy = {
        let mut wide = support::route("wide", setup.routes[0].action.clone());
        wide.matcher.path = Some(model::pattern::PathPattern::parse("/wide").unwrap());
        wide.max_request_body = Some(None);
        setup.routes.push(wide);
        setup.start()
    };
    let post = |target: &str, framing: &str, body: &str| {
        let mut client = proxy.client();
        client.send(format!("POST {target} HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n{body}"));
        client.response().status()
    };
    assert_eq!(post("/", "Content-Length: 10", "0123456789"), 200);
    assert_eq!(post("/", "Content-Length: 11", ""), 413);
    assert_eq!(post("/", "Transfer-Encoding: chunked", "a\r\n0123456789\r\n0\r\n\r\n"), 200);
    assert_eq!(post("/", "Transfer-Encoding: chunked", "b\r\n0123456789a\r\n0\r\n\r\n"), 413);
    assert_eq!(post("/wide", "Content-Length: 11", "0123456789a"), 200);
}

#[test]
fn a_large_head_of_a_destination_is_a_502_of_its_own_and_not_held_against_it() {
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => {
            let large = format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 0\r\n\r\n", "y".repeat(70_000));
            vec![Act::Send(large.into_bytes())]
        }
    });
    let proxy = setup(&[destination.addr()]).start();
    let response = proxy.client().get("/");
    assert_eq!(response.status(), 502);
    assert!(response.value("proxy-status").unwrap().contains("response-head-too-large"));
    assert_eq!(proxy.count(0, OutcomeClass::Neutral), 1);
}

#[test]
fn answers_that_are_not_http_are_502() {
    for answer in
        ["SSH-2.0-x\r\n", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "HTTP/1.1 200 OK\nX: y\n\n"]
    {
        let destination = Destination::start(move |moment| match moment {
            Moment::Accepted => vec![],
            Moment::Request(_) => vec![Act::Send(answer.as_bytes().to_vec())],
        });
        let proxy = setup(&[destination.addr()]).start();
        let response = proxy.client().get("/");
        assert_eq!(response.status(), 502, "{answer:?}");
        assert!(response.value("proxy-status").unwrap().contains("http_protocol_error"), "{answer:?}");
        assert_eq!(proxy.count(0, OutcomeClass::AppFail), 1);
    }
}

#[test]
fn every_answer_of_our_own_is_dated() {
    let mut setup = setup(&[testkit::destination::refusing()]);
    let mut pong = support::route("pong", RouteAction::Respond { status: 200, body: "pong".into() });
    pong.matcher.path = Some(model::pattern::PathPattern::parse("/pong").unwrap());
    setup.routes.push(pong);
    let proxy = setup.start();
    for (request, status) in [
        ("GET /pong HTTP/1.1\r\nHost: a\r\n\r\n", 200),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 502),
        ("no request\r\n\r\n", 400),
    ] {
        let mut client = proxy.client();
        client.send(request);
        let response = client.response();
        assert_eq!(response.status(), status);
        let date = response.value("date").unwrap();
        assert!(date.len() == 29 && date.ends_with(" GMT"), "{date}");
    }
}
