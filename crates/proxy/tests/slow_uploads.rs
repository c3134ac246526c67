//! Clients that send their bodies slowly, or not at all: whatever limit ends their requests, no destination is charged.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::net::SocketAddr;
use std::time::Duration;

use model::id::Slot;
use model::outcome::OutcomeClass;
use model::upstream::UpstreamHttp;
use support::{Proxy, Setup, setup};
use testkit::destination::{Act, Destination, Moment, answer};
use testkit::frames::{Connection, Frames, OK};
use testkit::message::Expect;
use testkit::wait::eventually;

const HEAD: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf";
const REST: &str = "is all";

/// What a destination does once it has the whole request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Answers,
    Hangs,
}

/// One over HTTP/1.1 and one over HTTP/2, each before its proxy: they are reached by drivers of their own.
fn both(then: Then, change: impl Fn(Setup) -> Setup, test: impl Fn(&Proxy, &str)) {
    let acts = match then {
        Then::Answers => answer(200, "ok"),
        Then::Hangs => vec![Act::ReadBody, Act::Stall],
    };
    let plain = Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => acts.clone(),
    });
    let frames = Frames::start(move |mut connection: Connection| {
        connection.greet(&[]);
        while let Some(request) = connection.request() {
            if then == Then::Answers {
                connection.headers(request.stream, OK, &[], true);
            }
        }
    });
    let start = |address: SocketAddr, http| change(setup(&[address]).with(|cluster| cluster.http = http)).start();
    test(&start(plain.addr(), UpstreamHttp::Http1), "HTTP/1.1");
    test(&start(frames.address, UpstreamHttp::Http2), "HTTP/2");
}

fn until(deadline: u64) -> impl Fn(Setup) -> Setup {
    move |mut setup| {
        setup.routes[0].timeout = Some(Duration::from_millis(deadline));
        setup
    }
}

fn charged(proxy: &Proxy, class: OutcomeClass, which: &str) {
    let line = proxy.log(1).pop().unwrap();
    assert_eq!(proxy.count(0, class), 1, "{which}: {line}");
}

#[test]
fn a_body_that_is_not_whole_by_the_deadline_is_a_408_and_nobodys_failure() {
    both(Then::Answers, until(300), |proxy, which| {
        let mut client = proxy.client();
        client.send(HEAD);
        assert_eq!(client.response().status(), 408, "{which}");
        charged(proxy, OutcomeClass::Neutral, which);
    });
}

#[test]
fn a_destination_that_gets_the_rest_of_the_time_alone_has_not_missed_the_deadline() {
    both(Then::Hangs, until(600), |proxy, which| {
        let mut client = proxy.client();
        client.send(HEAD);
        std::thread::sleep(Duration::from_millis(300));
        client.send(REST);
        assert_eq!(client.response().status(), 504, "{which}");
        charged(proxy, OutcomeClass::Neutral, which);
    });
}

#[test]
fn a_destination_that_had_the_request_all_the_time_has_missed_the_deadline() {
    both(Then::Hangs, until(300), |proxy, which| {
        let mut client = proxy.client();
        client.send(HEAD.to_owned() + REST);
        assert_eq!(client.response().status(), 504, "{which}");
        charged(proxy, OutcomeClass::Timeout, which);
    });
}

fn trying(setup: Setup) -> Setup {
    setup.retrying().with(|cluster| cluster.retry.per_try_timeout = Some(Duration::from_millis(300)))
}

#[test]
fn a_trys_own_time_does_not_run_while_the_body_is_waited_for() {
    both(Then::Answers, trying, |proxy, which| {
        let mut client = proxy.client();
        client.send(HEAD);
        std::thread::sleep(Duration::from_millis(600));
        client.send(REST);
        assert_eq!(client.response().status(), 200, "{which}");
        charged(proxy, OutcomeClass::Ok, which);
    });
}

#[test]
fn a_trys_own_time_runs_when_the_body_is_there() {
    both(Then::Hangs, trying, |proxy, which| {
        let mut client = proxy.client();
        client.send(HEAD);
        std::thread::sleep(Duration::from_millis(600));
        client.send(REST);
        assert_eq!(client.response().status(), 504, "{which}");
        charged(proxy, OutcomeClass::Timeout, which);
    });
}

#[test]
fn a_response_that_stands_still_while_the_body_is_owed_is_no_cut() {
    let begun = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let plain = Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![Act::Send(begun.to_vec()), Act::ReadBody, Act::Stall],
    });
    let frames = Frames::start(|mut connection: Connection| {
        connection.greet(&[]);
        while let Some(stream) = connection.head() {
            connection.headers(stream, OK, &[], false);
            connection.data(stream, b"hello", false);
        }
    });
    for (address, http) in [(plain.addr(), UpstreamHttp::Http1), (frames.address, UpstreamHttp::Http2)] {
        let idle = Duration::from_millis(300);
        let with = |cluster: &mut model::cluster::Cluster| (cluster.http, cluster.timeouts.idle) = (http, idle);
        let proxy = setup(&[address]).with(with).start();
        let mut client = proxy.client();
        client.send(HEAD);
        let (message, end) = client.try_response(Expect::Response);
        assert_eq!((message.status(), end.is_err()), (200, true), "{http:?}");
        let line = proxy.log(1).pop().unwrap();
        assert!(line.contains("\"reason\":\"request-body-timeout\""), "{line}");
        charged(&proxy, OutcomeClass::Neutral, &line);
    }
}

#[test]
fn requests_whose_bodies_are_owed_do_not_wait_for_their_destination() {
    both(
        Then::Hangs,
        |setup| setup,
        |proxy, which| {
            let mut clients: Vec<_> = (0..4).map(|_| proxy.client()).collect();
            clients.iter_mut().for_each(|client| client.send(HEAD));
            let are = |in_flight, waiting| {
                eventually(which, Duration::from_secs(5), || {
                    let board = &proxy.board;
                    ((board.in_flight(Slot(0)), board.waiting(Slot(0))) == (in_flight, waiting)).then_some(())
                });
            };
            are(4, 0);
            clients.iter_mut().take(3).for_each(|client| client.send(REST));
            are(4, 3);
            drop(clients);
            are(0, 0);
        },
    );
}
