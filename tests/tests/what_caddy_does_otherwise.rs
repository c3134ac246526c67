//! Failures on which Caddy 2.6.2 was measured, and what Lazaret makes of them. Caddy counts failures of the last
//! `fail_duration` and returns a server without a trial (C1), repeats a body that is gone and blames the healthy (C3b), and
//! waits for nobody (C4). Each test states Caddy's in its head.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use end_to_end::load::{Load, run};
use end_to_end::process::Lazaret;
use testkit::client::Client;
use testkit::destination::{Destination, Moment, answer, refusing};

/// C1: a dead server costs three client errors every 4 s for ever.
#[test]
fn a_dead_server_costs_no_client_an_error_and_fewer_trials_each_time() {
    let good = Destination::answering(200, "b");
    let lazaret = start(refusing(), good.addr(), "[ConnectFailures]");
    let outcome = run(&load(&lazaret, 60, 9));
    assert!(outcome.sent > 400, "the load was not carried: {} requests", outcome.sent);
    assert_eq!(outcome.get_failed_before_head, 0, "{:?}", outcome.failures);
    let tried = lazaret.metric("lazaret_attempts_total", &["destination=\"a\""]);
    // Those of half a second at first, then trials that are ever rarer, of some 270 turns.
    assert!((3.0..=30.0).contains(&tried), "{tried} attempts at the dead one");
}

/// C2: one failure each 3 s with `max_fails 3` and 4 s never ejects, and is right (nginx ejects: its failures never grow old
/// while they go on).
#[test]
fn failures_that_are_rare_and_far_between_eject_nobody() {
    let now_and_then = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) if request.number % 40 == 0 => answer(503, "no"),
        Moment::Request(_) => answer(200, "a"),
    });
    let good = Destination::answering(200, "b");
    let policies = "[ConnectFailures, Burst, Outlier, ConsecutiveErrors, FailureRate]";
    let lazaret = start(now_and_then.addr(), good.addr(), policies);
    let outcome = run(&load(&lazaret, 80, 6));
    assert!(now_and_then.requests().len() > 160, "{} requests", now_and_then.requests().len());
    assert_eq!(outcome.get_failed_before_head, 0, "{:?}", outcome.failures);
    assert!(lazaret.metric("lazaret_attempts_total", &["destination=\"a\"", "outcome=\"app_fail\""]) >= 4.0);
    assert_eq!(lazaret.transitions("a").iter().filter(|one| one["to"] == "unhealthy").count(), 0);
}

/// C3b: a POST with a body at a refusing server: the second try read a body that was closed, and its failure was charged to
/// the healthy server, so that both were out: 502, then 503 for 4 s.
#[test]
fn a_body_is_whole_at_the_second_destination_and_the_healthy_one_is_charged_with_nothing() {
    let good = Destination::answering(200, "b");
    let lazaret = start(refusing(), good.addr(), "[{name: ConsecutiveErrors, threshold: 1}]");
    for number in 0..20 {
        let body = format!("body {number} {}", "x".repeat(number * 3_000));
        let mut client = Client::connect(lazaret.proxy);
        client.send(format!("POST /{number} HTTP/1.1\r\nHost: a.test\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        assert_eq!(client.response().status(), 200);
        assert_eq!(good.requests_to(&format!("/{number}"))[0].message.text(), body);
    }
    assert_eq!(lazaret.health("app", "b").split('/').nth(1), Some("healthy"), "{}", lazaret.destination("app", "b"));
    let charged = |outcome| lazaret.metric("lazaret_attempts_total", &["destination=\"b\"", outcome]);
    assert_eq!((charged("outcome=\"ok\""), charged("")), (20.0, 20.0));
}

/// C4: with all of them down it waits out its whole `try_duration` (2 s), then 502.
#[test]
fn when_all_are_down_the_client_knows_at_once() {
    let lazaret = start(refusing(), refusing(), "[ConnectFailures]");
    for _ in 0..20 {
        let sent = Instant::now();
        let status = Client::connect(lazaret.proxy).get("/").status();
        assert!(matches!(status, 502 | 503), "{status}");
        assert!(sent.elapsed() < Duration::from_secs(1), "{:?}", sent.elapsed());
    }
}

fn load(lazaret: &Lazaret, rate: u32, seconds: u64) -> Load {
    Load { to: lazaret.proxy, clients: 6, rate, duration: Duration::from_secs(seconds), post_every: 0, path: "/" }
}

fn start(a: SocketAddr, b: SocketAddr, policies: &str) -> Lazaret {
    Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    load_balancing: \
         RoundRobin\n    health_check: {{passive: {{policies: {policies}, readmission: true}}}}\n    destinations: {{a: \
         {{address: \"http://{a}/\"}}, b: {{address: \"http://{b}/\"}}}}\n"
    ))
}
