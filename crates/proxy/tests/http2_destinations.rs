//! Destinations that speak HTTP/2 without TLS, for HTTP/1.1 clients: streams of shared connections, GOAWAY and
//! REFUSED_STREAM, dead connections, trailers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use model::cluster::UpstreamHost;
use model::outcome::OutcomeClass;
use model::route::Buffering;
use model::upstream::UpstreamHttp;
use support::http2::{H2, run};
use support::{Setup, setup};
use testkit::frames::{Connection, Frames, OK};
use testkit::wait::eventually;

const REFUSED_STREAM: u32 = 7;
const LAST_OF_ALL: u32 = (1 << 31) - 1;
const MAX_CONCURRENT_STREAMS: u16 = 3;

fn over_http2(destination: &Frames) -> Setup {
    setup(&[destination.address]).with(|cluster| cluster.http = UpstreamHttp::Http2)
}

/// Answers every request with 200 and the length of its body.
fn answer(mut connection: Connection) {
    connection.greet(&[]);
    while let Some(request) = connection.request() {
        connection.headers(request.stream, OK, &[], false);
        connection.data(request.stream, request.body.to_string().as_bytes(), true);
    }
}

/// An attempt is counted after its response's last byte has left.
fn counted(proxy: &support::Proxy, attempts: u64) {
    eventually("all attempts to be counted", Duration::from_secs(5), || {
        (proxy.count(0, OutcomeClass::Ok) == attempts).then_some(())
    });
}

fn post(client: &mut testkit::client::Client, body: usize) -> (u16, String) {
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {body}\r\n\r\n{}", "x".repeat(body)));
    let response = client.response();
    (response.status(), response.text())
}

#[test]
fn http1_clients_reach_an_http2_destination_over_one_connection() {
    let destination = Frames::start(answer);
    let proxy = over_http2(&destination).start();
    let mut client = proxy.client();
    for body in [0, 1, 1000, 3_000_000, 7] {
        assert_eq!(post(&mut client, body), (200, body.to_string()));
    }
    assert_eq!(destination.connections(), 1);
    counted(&proxy, 5);
}

#[test]
fn bodies_that_are_read_before_a_destination_is_chosen_go_the_same_way() {
    let destination = Frames::start(answer);
    let mut setup = over_http2(&destination);
    setup.routes[0].policy.buffering = Buffering::ON;
    let proxy = setup.start();
    let mut client = proxy.client();
    for body in [1, 1000, 1_000_000] {
        assert_eq!(post(&mut client, body), (200, body.to_string()));
    }
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    assert_eq!(client.response().status(), 100);
    client.send("body");
    assert_eq!(client.response().text(), "4");
    assert_eq!(destination.connections(), 1);
    counted(&proxy, 4);
}

/// RETRY-03
#[test]
fn requests_that_a_goaway_leaves_out_or_that_are_refused_are_sent_again_whatever_their_method() {
    // Each fifth request of a connection is left out by a GOAWAY, each seventh of the others but the first is refused.
    let (seen, refused) = (AtomicUsize::new(0), Arc::new(AtomicU64::new(0)));
    let refusals = Arc::clone(&refused);
    let destination = Frames::start(move |mut connection| {
        connection.greet(&[]);
        let (mut served, mut last) = (0, 0);
        while let Some(request) = connection.request() {
            if served == 4 {
                connection.go_away(last, 0);
                return;
            }
            if served > 0 && seen.fetch_add(1, Ordering::SeqCst) % 7 == 6 {
                refusals.fetch_add(1, Ordering::SeqCst);
                connection.reset(request.stream, REFUSED_STREAM);
                continue;
            }
            (served, last) = (served + 1, request.stream);
            connection.headers(request.stream, OK, &[], false);
            connection.data(request.stream, request.body.to_string().as_bytes(), true);
        }
    });
    let proxy = over_http2(&destination).start();
    let mut client = proxy.client();
    for _ in 0..200 {
        assert_eq!(post(&mut client, 1024), (200, "1024".to_owned()));
    }
    counted(&proxy, 200);
    for class in [OutcomeClass::AppFail, OutcomeClass::ConnFail, OutcomeClass::Timeout, OutcomeClass::Cut] {
        assert_eq!(proxy.count(0, class), 0, "{class:?}");
    }
    let refused = refused.load(Ordering::SeqCst);
    assert!(refused > 10, "{refused}");
    assert_eq!(proxy.count(0, OutcomeClass::Overload), refused, "who refuses asks for less");
    assert!(proxy.count(0, OutcomeClass::Neutral) > 10, "what a GOAWAY leaves out is held against nobody");
}

#[test]
fn a_destination_that_refuses_what_crosses_its_goaway_is_not_blamed_for_its_end() {
    let destination = Frames::start(|mut connection| match connection.number {
        1 => {
            connection.greet(&[]);
            if let Some(request) = connection.request() {
                // As a planned stop begins (RFC 9113 6.8): what comes from now on is not for this connection.
                connection.go_away(LAST_OF_ALL, 0);
                connection.reset(request.stream, REFUSED_STREAM);
            }
            connection.stall();
        }
        _ => answer(connection),
    });
    let proxy = over_http2(&destination).start();
    let mut client = proxy.client();
    assert_eq!(post(&mut client, 1024), (200, "1024".to_owned()));
    counted(&proxy, 1);
    assert_eq!((proxy.count(0, OutcomeClass::Neutral), proxy.count(0, OutcomeClass::Overload)), (1, 0));
}

/// RETRY-03
#[test]
fn a_refused_request_whose_body_is_gone_is_a_clean_502_and_no_failure_of_the_destination_but_its_overload() {
    let destination = Frames::start(|mut connection| {
        connection.greet(&[]);
        while let Some(request) = connection.request() {
            connection.reset(request.stream, REFUSED_STREAM);
        }
    });
    let proxy = over_http2(&destination).start();
    let mut client = proxy.client();
    let body = 5 << 20;
    client.send(format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {body}\r\n\r\n{}", "x".repeat(body)));
    let response = client.response();
    assert_eq!(response.status(), 502);
    assert!(response.value("proxy-status").unwrap().contains("not-processed"));
    assert_eq!(proxy.count(0, OutcomeClass::AppFail) + proxy.count(0, OutcomeClass::ConnFail), 0);
    assert_eq!(proxy.count(0, OutcomeClass::Overload), 1);
}

/// POOL-05
#[test]
fn a_connection_that_ends_by_goaway_after_each_response_costs_no_request() {
    let destination = Frames::start(|mut connection| {
        connection.greet(&[]);
        if let Some(request) = connection.request() {
            connection.headers(request.stream, OK, &[], true);
            connection.go_away(request.stream, 0);
        }
    });
    let proxy = over_http2(&destination).start();
    let mut client = proxy.client();
    for _ in 0..100 {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.response().status(), 200);
    }
}

/// POOL-03
#[test]
fn a_connection_on_which_nothing_comes_any_more_is_retired_by_the_first_request_that_waits_in_vain() {
    let destination = Frames::start(|mut connection| match connection.number {
        1 => {
            connection.greet(&[]);
            if let Some(request) = connection.request() {
                connection.headers(request.stream, OK, &[], true);
            }
            connection.stall();
        }
        _ => answer(connection),
    });
    let proxy = over_http2(&destination)
        .with(|cluster| cluster.retry.per_try_timeout = Some(Duration::from_millis(300)))
        .start();
    let status = || {
        let mut client = proxy.client();
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        client.response().status()
    };
    assert_eq!([status(), status(), status(), status()], [200, 504, 200, 200]);
    assert_eq!(destination.connections(), 2);
}

#[test]
fn no_more_streams_than_the_destination_allows_share_a_connection() {
    // Nothing is answered before all four are there, two on each connection.
    let seen = AtomicUsize::new(0);
    let destination = Frames::start(move |mut connection| {
        connection.greet(&[(MAX_CONCURRENT_STREAMS, 2)]);
        let requests: Vec<_> = (0..2).filter_map(|_| connection.request()).collect();
        seen.fetch_add(requests.len(), Ordering::SeqCst);
        eventually("four requests", Duration::from_secs(10), || (seen.load(Ordering::SeqCst) == 4).then_some(()));
        requests.iter().for_each(|request| connection.headers(request.stream, OK, &[], true));
        connection.stall();
    });
    let proxy = over_http2(&destination).start();
    let mut clients: Vec<_> = (0..4).map(|_| proxy.client()).collect();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    for client in &mut clients {
        assert_eq!(client.response().status(), 200);
    }
    assert_eq!(destination.connections(), 2);
}

#[test]
fn a_destination_that_speaks_http1_alone_is_told_apart_from_one_that_is_silent() {
    let destination = testkit::destination::Destination::answering(200, "hello");
    let proxy = setup(&[destination.addr()]).with(|cluster| cluster.http = UpstreamHttp::Http2).start();
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let response = client.response();
    assert_eq!(response.status(), 502);
    assert!(response.value("proxy-status").unwrap().contains("not-http"), "{:?}", response.value("proxy-status"));
}

#[test]
fn trailers_of_a_destination_reach_an_http1_client_in_chunks() {
    let destination = Frames::start(|mut connection| {
        connection.greet(&[]);
        while let Some(request) = connection.request() {
            connection.headers(request.stream, OK, &[], false);
            connection.data(request.stream, b"hello", false);
            connection.headers(request.stream, &[], &[("x-sum", "5")], true);
        }
    });
    let proxy = over_http2(&destination).start();
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: TE\r\n\r\n");
    let response = client.response();
    assert_eq!((response.status(), response.text()), (200, "hello".to_owned()));
    assert_eq!(response.value("transfer-encoding").as_deref(), Some("chunked"));
}

/// GRPC-01
#[test]
fn status_and_trailers_of_grpc_calls_arrive_as_the_destination_sent_them() {
    let destination = Frames::start(|mut connection| {
        connection.greet(&[]);
        let mut number = 0;
        while let Some(request) = connection.request() {
            number += 1;
            let stream = request.stream;
            let kind = [("content-type", "application/grpc")];
            match number {
                // Messages, then trailers that nothing announced.
                1 => {
                    connection.headers(stream, OK, &kind, false);
                    connection.data(stream, b"\0\0\0\0\x01a", false);
                    connection.headers(stream, &[], &[("grpc-status", "0"), ("x-custom", "c")], true);
                }
                // Trailers-Only.
                2 => {
                    let status = [kind[0], ("grpc-status", "5"), ("grpc-message", "no such thing")];
                    connection.headers(stream, OK, &status, true);
                }
                // Head and trailers alone.
                3 => {
                    connection.headers(stream, OK, &kind, false);
                    connection.headers(stream, &[], &[("grpc-status", "7")], true);
                }
                _ => {
                    connection.headers(stream, OK, &kind, false);
                    connection.data(stream, b"\0\0\0\0\x01a", false);
                    connection.data(stream, b"\0\0\0\0\x01b", false);
                    connection.headers(stream, &[], &[("grpc-status", "10")], true);
                }
            }
        }
    });
    let proxy = over_http2(&destination).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        let trailer = |answer: &support::http2::Answer, name: &str| {
            answer.trailers.get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        let one = client.post("/a.B/C", "\0\0\0\0\0").await;
        assert_eq!((one.status.as_u16(), one.body.len()), (200, 6));
        assert_eq!(trailer(&one, "grpc-status").as_deref(), Some("0"));
        assert_eq!(trailer(&one, "x-custom").as_deref(), Some("c"));
        let two = client.post("/a.B/C", "\0\0\0\0\0").await;
        assert!(two.is_head_alone);
        assert_eq!((two.value("grpc-status"), two.value("grpc-message")), (Some("5"), Some("no such thing")));
        let three = client.post("/a.B/C", "\0\0\0\0\0").await;
        assert_eq!((three.value("grpc-status"), trailer(&three, "grpc-status").as_deref()), (None, Some("7")));
        let four = client.post("/a.B/C", "\0\0\0\0\0").await;
        assert_eq!((four.body.len(), trailer(&four, "grpc-status").as_deref()), (12, Some("10")));
    });
    assert_eq!(destination.connections(), 1);
}

#[test]
fn what_http2_has_no_form_for_is_the_clients_fault_and_reaches_no_destination() {
    let destination = Frames::start(answer);
    let proxy = over_http2(&destination).with(|cluster| cluster.host = UpstreamHost::Original).start();
    let mut client = proxy.client();
    for (head, word) in
        [("GET / HTTP/1.1\r\nHost: a%41\r\n\r\n", "authority"), ("GET /` HTTP/1.1\r\nHost: a\r\n\r\n", "target")]
    {
        client.send(head);
        let response = client.response();
        assert_eq!(response.status(), 400, "{head}");
        assert!(response.values("proxy-status")[0].contains(word), "{head}");
    }
    assert_eq!(post(&mut client, 1), (200, "1".to_owned()));
    assert_eq!(proxy.count(0, OutcomeClass::Neutral), 2);
    counted(&proxy, 1);
}
