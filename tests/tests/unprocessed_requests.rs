//! Requests that a destination says it has not processed (left out by its GOAWAY, or refused) are sent again whatever their
//! method, as long as their bodies are there; else they are a clean 502. Neither counts as its failure; refusing asks for less.
//! (RFC 9113 6.8, 8.7; dotnet/yarp #2721, #1683)
//!
//! 1 000 small bodies and 20 large ones; `LAZARET_LONG=1`: 100 large ones.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use end_to_end::control::is_long;
use end_to_end::process::Lazaret;
use testkit::client::Client;
use testkit::frames::{Frames, OK};

const REFUSED_STREAM: u32 = 7;
/// Requests of one connection before its GOAWAY.
const SERVED: usize = 20;

/// RETRY-03
#[test]
fn what_a_destination_did_not_process_is_sent_again_or_a_clean_502_and_never_its_failure() {
    let count = AtomicUsize::new(0);
    let destination = Frames::start(move |mut connection| {
        connection.greet(&[]);
        let (mut served, mut last) = (0, 0);
        while let Some(request) = connection.request() {
            if served == SERVED {
                // NO_ERROR, and this request is beyond what will be processed.
                connection.go_away(last, 0);
                return;
            }
            if served > 0 && count.fetch_add(1, Ordering::SeqCst) % 13 == 12 {
                connection.reset(request.stream, REFUSED_STREAM);
                continue;
            }
            (served, last) = (served + 1, request.stream);
            connection.headers(request.stream, OK, &[], false);
            connection.data(request.stream, request.body.to_string().as_bytes(), true);
        }
    });
    let lazaret = Lazaret::start(&format!(
        "workers: 2\nroutes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    http: \
         \"2\"\n    health_check: {{passive: {{policies: [{{name: MaxFails, max_fails: 1, fail_timeout: 1m}}]}}}}\n    \
         destinations: {{one: {{address: \"http://{}/\"}}}}\n",
        destination.address
    ));
    let mut client = Client::connect(lazaret.proxy);
    client.within(Duration::from_secs(30));
    let mut post = |size: usize| {
        client.send(format!("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {size}\r\n\r\n{}", "x".repeat(size)));
        let response = client.response();
        if response.value("connection").as_deref() == Some("close") {
            client = Client::connect(lazaret.proxy);
            client.within(Duration::from_secs(30));
        }
        response
    };
    for number in 0..1_000 {
        let response = post(1_024);
        assert_eq!((response.status(), response.text().as_str()), (200, "1024"), "request {number}");
    }
    let (large, size) = (if is_long() { 100 } else { 20 }, 5 << 20);
    let mut lost = 0;
    for number in 0..large {
        let response = post(size);
        match response.status() {
            200 => assert_eq!(response.text(), size.to_string(), "request {number}"),
            502 => {
                lost += 1;
                let why = response.value("proxy-status").unwrap_or_default();
                assert!(why.contains("not-processed"), "request {number}: {why}");
            }
            status => panic!("request {number} was answered with {status}"),
        }
    }
    // Each thirteenth is refused, and one of each connection left out.
    assert!(lost > 0 && lost <= large / 4, "{lost} of {large}");
    for outcome in ["app_fail", "conn_fail", "timeout", "cut"] {
        let failures = lazaret.metric("lazaret_attempts_total", &[&format!("outcome=\"{outcome}\"")]);
        assert_eq!(failures, 0.0, "{outcome}");
    }
    assert!(
        lazaret.metric("lazaret_attempts_total", &["outcome=\"overload\""]) > 0.0,
        "what it refuses is its overload"
    );
    assert_ne!(lazaret.health("app", "one").split('/').next_back(), Some("unhealthy"), "nothing is held against it");
}
