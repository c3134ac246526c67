//! Each time limit fires with a status and a reason that names it; the client's own end is nobody's failure.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::{Duration, Instant};

use model::outcome::OutcomeClass;
use support::setup;
use testkit::client::End;
use testkit::destination::{Act, Destination, Moment};
use testkit::wait::eventually;

fn acting(acts: Vec<Act>) -> Destination {
    Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => acts.clone(),
    })
}

#[test]
fn a_slow_head_is_cut_whatever_trickles_in() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()])
        .listening(|listener| {
            listener.limits.header_timeout = Duration::from_millis(300);
            listener.limits.keepalive = Duration::from_millis(600);
        })
        .start();
    let started = Instant::now();
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\n");
    // A byte every 20 ms does not prolong it.
    while started.elapsed() < Duration::from_millis(250) {
        client.try_send("x").ok();
        std::thread::sleep(Duration::from_millis(20));
    }
    let response = client.response();
    assert_eq!(response.status(), 408);
    assert!(response.value("proxy-status").unwrap().contains("header-timeout"));
    assert_eq!(client.rest().1, End::Closed);
    assert!(started.elapsed() >= Duration::from_millis(300));
    // Without a byte: closed without a word.
    assert_eq!(proxy.client().rest(), (vec![], End::Closed));
    // Between two requests the keepalive time counts.
    let mut client = proxy.client();
    assert_eq!(client.get("/").status(), 200);
    let idle = Instant::now();
    assert_eq!(client.rest(), (vec![], End::Closed));
    assert!(idle.elapsed() >= Duration::from_millis(500));
}

#[test]
fn a_silent_destination_is_a_504_after_the_idle_time() {
    let destination = acting(vec![Act::Stall]);
    let proxy = setup(&[destination.addr()]).with(|cluster| cluster.timeouts.idle = Duration::from_millis(200)).start();
    let mut client = proxy.client();
    let response = client.get("/");
    assert_eq!(response.status(), 504);
    assert!(response.value("proxy-status").unwrap().contains("response-timeout"));
    proxy.log(1);
    assert_eq!(proxy.count(0, OutcomeClass::Timeout), 1);
}

#[test]
fn a_body_that_stands_still_is_cut_and_counted() {
    let destination = acting(vec![Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf".to_vec()), Act::Stall]);
    let proxy = setup(&[destination.addr()]).with(|cluster| cluster.timeouts.idle = Duration::from_millis(200)).start();
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let (message, result) = client.try_response(testkit::message::Expect::Response);
    assert_eq!((message.text().as_str(), result.is_err()), ("half", true));
    assert!(proxy.log(1).remove(0).contains("\"reason\":\"body-timeout\""));
    assert_eq!(proxy.count(0, OutcomeClass::Cut), 1);
}

#[test]
fn a_client_that_stops_sending_is_a_408_and_nobodys_failure() {
    let destination = acting(vec![Act::ReadBody, Act::Stall]);
    let proxy = setup(&[destination.addr()]).with(|cluster| cluster.timeouts.idle = Duration::from_millis(200)).start();
    let mut client = proxy.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
    assert_eq!(client.response().status(), 408);
    proxy.log(1);
    assert_eq!(proxy.count(0, OutcomeClass::Neutral), 1);
}

#[test]
fn a_client_that_goes_cancels_the_attempt() {
    let destination = acting(vec![Act::ReadBody, Act::Stall]);
    let proxy = setup(&[destination.addr()]).retrying().start();
    for number in 1..=2 {
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        eventually("the request arrives", Duration::from_secs(5), || {
            (destination.requests().len() == number).then_some(())
        });
        if number == 1 {
            client.finish();
        } else {
            client.reset();
        }
        let line = proxy.log(number).pop().unwrap();
        assert!(line.contains("\"status\":499") && line.contains("\"reason\":\"client-gone\""), "{line}");
    }
    assert_eq!(proxy.count(0, OutcomeClass::Neutral), 2);
    assert_eq!(proxy.board.in_flight(model::id::Slot(0)), 0);
}

#[test]
fn chunk_lines_and_trailers_that_trickle_in_are_cut_by_time() {
    for start in ["5\r\nhello\r\n5;a=", "5\r\nhello\r\n0\r\nX-A: a"] {
        let destination = acting(vec![Act::ReadBody]);
        let proxy =
            setup(&[destination.addr()]).with(|cluster| cluster.timeouts.idle = Duration::from_millis(500)).start();
        let mut client = proxy.client();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send(start);
        // Far more than the time takes, far less than the framing's own bounds.
        let is_cut = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            client.try_send("a").is_err() || proxy.log_text().contains("request-body-timeout")
        });
        assert!(is_cut, "{start:?}");
        assert_eq!(client.response().status(), 408, "{start:?}");
        assert_eq!(proxy.count(0, OutcomeClass::Timeout), 0, "{start:?}");
    }
}
