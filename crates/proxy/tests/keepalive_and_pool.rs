//! Connections are reused on both sides, and a stale one costs nobody an answer (RFC 9112 9.3).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use model::outcome::OutcomeClass;
use support::setup;
use testkit::client::End;
use testkit::destination::{Act, Destination, Moment};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn closing(after: Vec<Act>) -> Destination {
    Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => [vec![Act::ReadBody, Act::Send(OK.to_vec())], after.clone()].concat(),
    })
}

#[test]
fn one_connection_carries_many_requests() {
    let destination = closing(vec![]);
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    for _ in 0..50 {
        assert_eq!(client.get("/").text(), "ok");
    }
    assert_eq!(destination.connections(), 1);
    // Lines are written when an exchange is over, in order.
    let lines = proxy.log(50);
    assert!(lines[0].contains("\"reused\":false") && lines[49].contains("\"reused\":true"), "{}", lines[49]);
}

#[test]
fn versions_and_options_decide_on_the_clients_connection() {
    let destination = closing(vec![]);
    let proxy = setup(&[destination.addr()]).start();
    for (head, connection, end) in [
        ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", Some("close"), End::Closed),
        ("GET / HTTP/1.0\r\n\r\n", Some("close"), End::Closed),
        ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", Some("keep-alive"), End::Open),
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", None, End::Open),
    ] {
        let mut client = proxy.client();
        client.send(head);
        assert_eq!(client.response().value("connection").as_deref(), connection, "{head}");
        assert_eq!(client.within(Duration::from_millis(100)).rest().1, end, "{head}");
    }
}

#[test]
fn a_destination_that_closes_after_each_answer_costs_nobody_an_answer() {
    for after in [
        vec![Act::Close],
        vec![Act::Reset],
        vec![Act::Pause(Duration::from_millis(1)), Act::Close],
        vec![Act::Pause(Duration::from_millis(3)), Act::Reset],
    ] {
        let destination = closing(after.clone());
        let proxy = setup(&[destination.addr()]).start();
        let mut client = proxy.client();
        for number in 0..200 {
            assert_eq!(client.get("/").status(), 200, "{after:?} {number}");
        }
        for class in [OutcomeClass::AppFail, OutcomeClass::ConnFail, OutcomeClass::Cut] {
            assert_eq!(proxy.count(0, class), 0, "{after:?} {class:?}");
        }
    }
}

/// Takes the second request of a connection and then ends without a byte: the race with an idle timeout, every time.
fn stale() -> Destination {
    Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) if request.number_on_connection > 1 => vec![Act::ReadBody, Act::Reset],
        Moment::Request(_) => vec![Act::ReadBody, Act::Send(OK.to_vec())],
    })
}

#[test]
fn a_stale_connection_is_replaced_once_for_what_may_be_repeated() {
    let destination = stale();
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    for number in 1..=4 {
        assert_eq!(client.get("/").status(), 200, "{number}");
    }
    // Each but the first went out twice, the second time over a new connection.
    assert_eq!((destination.requests().len(), destination.connections()), (7, 4));
    // What is counted is counted by the time the line is there.
    proxy.log(4);
    assert_eq!((proxy.count(0, OutcomeClass::Ok), proxy.count(0, OutcomeClass::Neutral)), (4, 3));
    let line = proxy.log(2).remove(1);
    assert!(line.contains("\"outcome\":\"reset\"") && line.contains("\"reused\":true"), "{line}");
}

#[test]
fn a_stale_connection_is_an_error_for_what_may_not_be_repeated() {
    let destination = stale();
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    assert_eq!(client.get("/").status(), 200);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx");
    let response = client.response();
    assert_eq!(response.status(), 502);
    assert!(response.value("proxy-status").unwrap().contains("reused-connection-reset"));
    assert_eq!(destination.requests().len(), 2);
    assert_eq!(proxy.count(0, OutcomeClass::Neutral), 1);
}

#[test]
fn the_destinations_own_timeout_is_respected() {
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => {
            vec![Act::Send(b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 0\r\n\r\n".to_vec())]
        }
    });
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    assert_eq!(client.get("/").status(), 200);
    assert_eq!(client.get("/").status(), 200);
    assert_eq!(destination.connections(), 2);
}
