//! Failures on which HAProxy 2.6.12 was measured, and what Lazaret makes of them: its retries stay on the server that fails
//! (H1, H6), repeat what must not be repeated (H3, H7), and its passive checks forget or never see (H4, H5).
//!
//! The rows are measurements over loopback with `observe layer7`, `retry-on` and the defaults of `redispatch`; each test
//! states HAProxy's in its head.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use end_to_end::control::attempts;
use end_to_end::load::{Load, run};
use end_to_end::process::Lazaret;
use testkit::client::Client;
use testkit::destination::{Act, Destination, Moment, answer, refusing};
use testkit::message::Message;

/// H1: with `retry-on 503` the failing server got 4 requests and the client the 503. H2: with `option redispatch`
/// another server was asked at once, unless balancing was by hash or a cookie pinned; here by hash, too
/// (`balancing_by_key_and_by_time`).
#[test]
fn a_repeated_request_goes_to_another_destination_and_not_to_the_one_that_failed() {
    let (failing, good) = (Destination::answering(503, "no"), Destination::answering(200, "b"));
    let lazaret = start(&[("a", failing.addr()), ("b", good.addr())], "", "");
    assert_eq!(Client::connect(lazaret.proxy).get("/h1").status(), 200);
    assert_eq!((failing.requests_to("/h1").len(), good.requests_to("/h1").len()), (1, 1));
}

/// H6: connecting again to the same server, a second between the tries: 3.0 s, then 503.
#[test]
fn a_refused_connection_costs_no_wait() {
    let good = Destination::answering(200, "b");
    let lazaret = start(&[("a", refusing()), ("b", good.addr())], "", "");
    let sent = Instant::now();
    assert_eq!(Client::connect(lazaret.proxy).get("/h6").status(), 200);
    assert!(sent.elapsed() < Duration::from_secs(1), "{:?}", sent.elapsed());

    let nobody = start(&[("a", refusing()), ("b", refusing())], "", "");
    let sent = Instant::now();
    let response = Client::connect(nobody.proxy).get("/h6");
    assert_eq!(response.status(), 502);
    assert!(sent.elapsed() < Duration::from_secs(1), "{:?}", sent.elapsed());
}

/// H3: a POST was repeated where `retry-on` allowed it; H3b, H3c: unless its body came 100 ms after its head, or was 40 kB
/// long.
#[test]
fn a_post_is_repeated_only_where_that_was_said_and_then_whenever_its_body_is_still_there() {
    let (failing, good) = (Destination::answering(503, "no"), Destination::answering(200, "b"));
    let destinations = [("a", failing.addr()), ("b", good.addr())];
    let large = "x".repeat(40_000);
    let lazaret = start(&destinations, "", "");
    for (path, body) in [("/h3", "hello"), ("/h3c", large.as_str())] {
        assert_eq!(post(&lazaret, path, body, Duration::ZERO).status(), 503, "{path}");
        assert_eq!(lazaret.log_line(path)["retry_denied"], "method");
    }
    assert_eq!(good.requests().len(), 0);

    let open = start(&destinations, "non_idempotent: true", "");
    for (path, body, pause) in [("/h3", "hello", 0), ("/h3b", "hello", 100), ("/h3c", large.as_str(), 0)] {
        assert_eq!(post(&open, path, body, Duration::from_millis(pause)).status(), 200, "{path}");
        assert_eq!(good.requests_to(path)[0].message.text(), body, "{path}");
    }
}

/// H7: `retry-on response-timeout` with one hanging server: 4 attempts of a second each, also for a POST.
#[test]
fn a_server_that_hangs_costs_a_get_one_timeout_and_is_asked_once_by_a_post() {
    let (hanging, good) = (hanging(), Destination::answering(200, "b"));
    let lazaret = start(&[("a", hanging.addr()), ("b", good.addr())], "per_try_timeout: 1s", "");
    let sent = Instant::now();
    assert_eq!(Client::connect(lazaret.proxy).get("/h7").status(), 200);
    let took = sent.elapsed();
    assert!((Duration::from_secs(1)..Duration::from_millis(1600)).contains(&took), "{took:?}");
    assert_eq!(post(&lazaret, "/h7p", "hello", Duration::ZERO).status(), 504);
    assert_eq!(attempts(&lazaret.log_line("/h7p")), ["a:per_try_timeout"]);
    assert_eq!(good.requests_to("/h7p").len(), 0);
}

/// H4: traffic is answered 500, probes 200. With `mark-down` 5 errors came to clients every 2.0 s for ever (35 of 621 in
/// 14 s), by the default `fail-check` 118 of 639.
#[test]
fn a_server_that_passes_probes_and_fails_requests_stays_out_for_longer_each_time() {
    let sick = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) if request.message.target() == "/health" => answer(200, "well"),
        Moment::Request(_) => answer(500, "no"),
    });
    let good = Destination::answering(200, "b");
    let checks = "active: {path: /health, interval: 1s}, passive: {policies: [ConsecutiveErrors], readmission: true}";
    let lazaret = start(&[("a", sick.addr()), ("b", good.addr())], "", checks);
    lazaret.wait_ready();
    let load =
        Load { to: lazaret.proxy, clients: 4, rate: 50, duration: Duration::from_secs(13), post_every: 0, path: "/" };
    let outcome = run(&load);
    println!("{} requests, {} failed (HAProxy: 35 of 621, 118 of 639)", outcome.sent, outcome.get_failed_before_head);
    assert!(outcome.sent > 500, "the load was not carried: {} requests", outcome.sent);
    assert!((5..=15).contains(&outcome.get_failed_before_head), "{} failed", outcome.get_failed_before_head);
    assert_eq!(lazaret.destination("app", "a")["passive"], "unhealthy");
}

/// H5: 80 % errors, but never five in a row: never acted upon.
#[test]
fn a_server_that_fails_four_of_five_is_ejected_though_each_fifth_answer_is_good() {
    let sick = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) if request.number % 5 == 0 => answer(200, "a"),
        Moment::Request(_) => answer(503, "no"),
    });
    let good = Destination::answering(200, "b");
    let checks = "passive: {policies: [Burst, Outlier], readmission: true}";
    let lazaret = start(&[("a", sick.addr()), ("b", good.addr())], "", checks);
    let load =
        Load { to: lazaret.proxy, clients: 4, rate: 60, duration: Duration::from_secs(5), post_every: 0, path: "/" };
    let outcome = run(&load);
    let ejected = lazaret.transitions("a").iter().filter(|one| one["to"] == "unhealthy").count();
    assert!(ejected >= 1, "{:?}", lazaret.document("/api/journal"));
    // Nearly half of all fail at first, more than a budget of retries bears.
    println!("{} of {} requests failed", outcome.get_failed_before_head, outcome.sent);
    assert!(outcome.get_failed_before_head < 30, "{:?}", outcome.failures);
    assert!(sick.requests().len() < 120, "{} of {} requests", sick.requests().len(), outcome.sent);
    let later = run(&load);
    assert_eq!(later.get_failed_before_head, 0, "{:?}", later.failures);
}

/// Destinations in a round, so that each has its turn; `a` first where a single request is sent.
fn start(destinations: &[(&str, SocketAddr)], retry: &str, checks: &str) -> Lazaret {
    let list: Vec<_> =
        destinations.iter().map(|(id, address)| format!("{id}: {{address: \"http://{address}/\"}}")).collect();
    let balancing = if checks.is_empty() { "FirstAlphabetical" } else { "RoundRobin" };
    Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    load_balancing: \
         {balancing}\n    retry: {{{retry}}}\n    health_check: {{{checks}}}\n    destinations: {{{}}}\n",
        list.join(", ")
    ))
}

fn post(lazaret: &Lazaret, path: &str, body: &str, pause: Duration) -> Message {
    let mut client = Client::connect(lazaret.proxy);
    client.send(format!("POST {path} HTTP/1.1\r\nHost: a.test\r\nContent-Length: {}\r\n\r\n", body.len()));
    std::thread::sleep(pause);
    client.send(body);
    client.response()
}

/// Takes a request and never answers.
fn hanging() -> Destination {
    Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![Act::Stall],
    })
}
