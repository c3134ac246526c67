//! HTTP/2 connections to destinations that have gone silent: who notices, and what that costs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::cluster::Cluster;
use model::outcome::OutcomeClass;
use model::upstream::UpstreamHttp;
use support::{Proxy, setup};
use testkit::frames::{Connection, Frames, OK};
use testkit::message::Expect;
use testkit::wait::eventually;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const PING: u8 = 6;

fn over_http2(destination: &Frames, change: impl FnOnce(&mut Cluster)) -> Proxy {
    setup(&[destination.address]).with(|cluster| cluster.http = UpstreamHttp::Http2).with(change).start()
}

fn status(proxy: &Proxy) -> u16 {
    let mut client = proxy.client();
    client.send(GET);
    client.response().status()
}

/// Answers every request.
fn answer(connection: &mut Connection) {
    while let Some(request) = connection.request() {
        connection.headers(request.stream, OK, &[], true);
    }
}

#[test]
fn an_exchange_that_waits_on_a_connection_that_answers_no_ping_ends_long_before_its_time() {
    let destination = Frames::start(|mut connection| {
        connection.greet(&[]);
        match connection.number {
            1 => connection.stall(),
            _ => answer(&mut connection),
        }
    });
    let proxy = over_http2(&destination, |cluster| cluster.timeouts.http2_ping = Some(Duration::from_millis(500)));
    let started = Instant::now();
    assert_eq!(status(&proxy), 502);
    assert!(started.elapsed() < Duration::from_secs(30), "idle would be 60 s");
    assert!(destination.pings() >= 1);
    assert_eq!((status(&proxy), destination.connections()), (200, 2));
}

#[test]
fn an_exchange_whose_destination_answers_pings_waits_on() {
    let destination = Frames::start(|mut connection| {
        connection.greet(&[]);
        // The first is answered when the second has come; pings are answered meanwhile.
        let both: Vec<_> = (0..2).filter_map(|_| connection.request()).collect();
        both.iter().for_each(|request| connection.headers(request.stream, OK, &[], true));
        connection.stall();
    });
    let proxy = over_http2(&destination, |cluster| cluster.timeouts.http2_ping = Some(Duration::from_millis(500)));
    let mut client = proxy.client();
    client.send(GET);
    eventually("several pings", Duration::from_secs(20), || (destination.pings() >= 3).then_some(()));
    assert_eq!(status(&proxy), 200);
    assert_eq!((client.response().status(), destination.connections()), (200, 1));
}

/// POOL-03
#[test]
fn a_connection_that_went_silent_while_idle_costs_nothing_once_it_was_idle_for_too_long() {
    let ended = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&ended);
    let destination = Frames::start(move |mut connection| {
        connection.greet(&[]);
        match connection.number {
            1 => {
                if let Some(request) = connection.request() {
                    connection.headers(request.stream, OK, &[], true);
                }
                connection.stall();
                told.store(true, Ordering::SeqCst);
            }
            _ => answer(&mut connection),
        }
    });
    let proxy = over_http2(&destination, |cluster| cluster.timeouts.pool_idle = Duration::from_millis(500));
    assert_eq!(status(&proxy), 200);
    eventually("the idle connection's end", Duration::from_secs(20), || ended.load(Ordering::SeqCst).then_some(()));
    assert_eq!((status(&proxy), destination.connections()), (200, 2));
    assert_eq!(proxy.count(0, OutcomeClass::Timeout), 0);
}

/// Sends a response's head and half of its body.
fn half(connection: &mut Connection) {
    if let Some(request) = connection.request() {
        connection.headers(request.stream, OK, &[("content-length", "8")], false);
        connection.data(request.stream, b"half", false);
    }
}

fn is_cut(proxy: &Proxy) {
    let mut client = proxy.client();
    client.send(GET);
    let (message, end) = client.try_response(Expect::Response);
    assert_eq!((message.text().as_str(), end.is_err()), ("half", true));
}

/// POOL-03
#[test]
fn a_body_that_stands_still_retires_its_connection_when_nothing_else_came() {
    let destination = Frames::start(|mut connection| {
        connection.greet(&[]);
        match connection.number {
            1 => {
                half(&mut connection);
                connection.stall();
            }
            _ => answer(&mut connection),
        }
    });
    let proxy = over_http2(&destination, |cluster| cluster.timeouts.idle = Duration::from_millis(500));
    is_cut(&proxy);
    assert_eq!((status(&proxy), destination.connections()), (200, 2));
}

#[test]
fn a_body_that_stands_still_on_a_connection_that_lives_costs_that_exchange_alone() {
    let destination = Frames::start(|mut connection| {
        connection.greet(&[]);
        half(&mut connection);
        // Any sign of life while the body stands still.
        std::thread::sleep(Duration::from_millis(200));
        connection.frame(PING, 0, 0, &[0; 8]);
        answer(&mut connection);
    });
    let proxy = over_http2(&destination, |cluster| cluster.timeouts.idle = Duration::from_secs(1));
    is_cut(&proxy);
    assert_eq!((status(&proxy), destination.connections()), (200, 1));
}
