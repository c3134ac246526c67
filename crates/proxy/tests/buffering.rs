//! Routes that take bodies ahead: slow clients occupy no destination.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use model::id::Slot;
use model::outcome::OutcomeClass;
use model::route::Buffering;
use support::{Proxy, Setup, setup};
use testkit::client::Client;
use testkit::destination::{Act, Destination, Moment, answer};
use testkit::wait::eventually;

const BOUND: Duration = Duration::from_secs(5);

fn buffering(mut setup: Setup, request: u64, response: u64) -> Setup {
    setup.routes[0].policy.buffering = Buffering::On { request, response };
    setup
}

fn post(length: usize, more: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n{more}\r\n")
}

fn in_flight(proxy: &Proxy) -> u32 {
    proxy.board.in_flight(Slot(0))
}

/// Sends the head and a part of a body, and waits until the proxy has read them.
fn half_a_body(proxy: &Proxy) -> Client {
    let mut client = proxy.client();
    client.send(post(10, ""));
    client.send("hello");
    // A request that comes later is through: what came before was read.
    assert_eq!(proxy.client().get("/other").status(), 200);
    client
}

#[test]
fn a_body_is_read_whole_before_its_destination_hears_of_it() {
    let destination = Destination::answering(200, "fine");
    let proxy = buffering(setup(&[destination.addr()]), 100, 0).start();
    let mut client = half_a_body(&proxy);
    eventually("nothing is in flight", BOUND, || (in_flight(&proxy) == 0).then_some(()));
    assert_eq!(destination.requests_to("/").len(), 0);
    client.send("world");
    assert_eq!(client.response().status(), 200);
    assert_eq!(destination.requests_to("/")[0].message.text(), "helloworld");
    // The connection goes on, with a body that is larger and streams.
    client.send(post(200, ""));
    client.send([b'x'; 150]);
    eventually("a larger body streams", BOUND, || (destination.requests_to("/").len() == 2).then_some(()));
    client.send([b'x'; 50]);
    assert_eq!(client.response().status(), 200);
}

#[test]
fn a_client_that_leaves_or_stalls_in_its_body_is_charged_to_nobody() {
    let destination = Destination::answering(200, "fine");
    let proxy = buffering(setup(&[destination.addr()]), 100, 0)
        .with(|cluster| cluster.timeouts.idle = Duration::from_millis(300))
        .start();
    half_a_body(&proxy).reset();
    assert!(proxy.log(2)[1].contains("\"status\":499"), "{:?}", proxy.log(2));
    let mut client = half_a_body(&proxy);
    let late = client.response();
    assert_eq!(late.status(), 408);
    assert!(late.value("proxy-status").unwrap().contains("request-body-timeout"));
    assert_eq!(destination.requests_to("/").len(), 0);
    for class in [OutcomeClass::Timeout, OutcomeClass::Cut, OutcomeClass::Neutral] {
        assert_eq!(proxy.count(0, class), 0, "{class:?}");
    }
}

#[test]
fn the_total_time_runs_while_a_body_is_read() {
    let destination = Destination::answering(200, "fine");
    let mut setup = buffering(setup(&[destination.addr()]), 100, 0);
    setup.routes[0].timeout = Some(Duration::from_millis(300));
    let proxy = setup.start();
    let mut client = half_a_body(&proxy);
    let late = client.response();
    assert_eq!((late.status(), destination.requests_to("/").len()), (504, 0));
}

#[test]
fn a_client_that_expects_a_100_gets_one_before_a_destination_is_chosen() {
    let destination = Destination::answering(200, "fine");
    let proxy = buffering(setup(&[destination.addr()]), 100, 0).start();
    let mut client = proxy.client();
    client.send(post(5, "Expect: 100-continue\r\n"));
    assert_eq!(client.response().status(), 100);
    assert_eq!(destination.connections(), 0);
    client.send("hello");
    assert_eq!(client.response().status(), 200);
    assert_eq!(destination.requests()[0].message.value("expect"), None);
}

#[test]
fn a_body_that_was_read_whole_is_sent_again_whatever_the_replay_window() {
    let bad = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![Act::ReadBody, Act::Reset],
    });
    let good = Destination::answering(200, "fine");
    let proxy = buffering(setup(&[bad.addr(), good.addr()]).retrying(), 1 << 20, 0)
        .with(|cluster| cluster.retry.replay = 10)
        .start();
    let body = "0123456789".repeat(10_000);
    let mut client = proxy.client();
    client.send(post(body.len(), "").replace("POST", "PUT"));
    client.send(&body);
    assert_eq!(client.response().status(), 200);
    assert!(good.requests()[0].message.text() == body && bad.requests()[0].message.text() == body);
}

/// A destination whose answer to `/` has these fields and `LARGE` bytes.
fn large(fields: &str) -> Destination {
    let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n{fields}\r\n{}", "x".repeat(LARGE));
    Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) if request.message.target() == "/" => {
            vec![Act::ReadBody, Act::Send(text.clone().into_bytes())]
        }
        Moment::Request(_) => answer(200, "fine"),
    })
}

/// More than all sockets on the way take, so that without buffering the destination waits for the client.
const LARGE: usize = 24 << 20;

#[test]
fn a_response_is_taken_ahead_of_a_client_that_reads_nothing_and_its_connection_serves_others() {
    let destination = large("");
    let proxy = buffering(setup(&[destination.addr()]), 0, LARGE as u64).start();
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("the destination is done", BOUND, || (proxy.count(0, OutcomeClass::Ok) == 1).then_some(()));
    assert_eq!(in_flight(&proxy), 0);
    assert_eq!(proxy.client().get("/other").status(), 200);
    assert_eq!(destination.connections(), 1, "the connection was free again");
    let message = client.response();
    assert_eq!((message.status(), message.raw_body.len()), (200, LARGE));
    assert_eq!(client.get("/other").status(), 200, "the client's connection goes on");
}

#[test]
fn beyond_the_bound_the_destination_waits_for_the_client() {
    let destination = large("");
    let proxy = buffering(setup(&[destination.addr()]), 0, 256 << 10).start();
    waits_for_its_client(&proxy);
}

#[test]
fn streams_are_never_taken_ahead() {
    for fields in
        ["Content-Type: text/event-stream; x=y\r\n", "Content-Type: application/grpc\r\n", "X-Accel-Buffering: no\r\n"]
    {
        let destination = large(fields);
        let proxy = buffering(setup(&[destination.addr()]), 0, LARGE as u64).start();
        waits_for_its_client(&proxy);
    }
}

fn waits_for_its_client(proxy: &Proxy) {
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("the destination has it", BOUND, || (in_flight(proxy) == 1).then_some(()));
    // Others come through meanwhile, so the proxy has had its turn.
    for _ in 0..20 {
        assert_eq!(proxy.client().get("/other").status(), 200);
    }
    eventually("only the slow one is left", BOUND, || {
        ((in_flight(proxy), proxy.count(0, OutcomeClass::Ok)) == (1, 20)).then_some(())
    });
    assert_eq!(client.response().raw_body.len(), LARGE);
}

#[test]
fn what_was_taken_ahead_of_a_break_still_reaches_the_client() {
    let body = "x".repeat(LARGE / 2);
    let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n{body}");
    let destination = Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![Act::Send(text.clone().into_bytes()), Act::Close],
    });
    let proxy = buffering(setup(&[destination.addr()]), 0, LARGE as u64).start();
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("the cut is charged", BOUND, || (proxy.count(0, OutcomeClass::Cut) == 1).then_some(()));
    let (bytes, _) = client.rest();
    assert!(bytes.ends_with(b"xxxx") && bytes.len() > LARGE / 2, "{}", bytes.len());
    assert!(proxy.log(1)[0].contains("body-cut"));
}
