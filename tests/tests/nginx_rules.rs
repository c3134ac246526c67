//! What a well-known walk-through of nginx's passive checks promises of `max_fails=5`, `fail_timeout` and
//! `proxy_next_upstream ... http_500`: clients see nothing but 200, the failing server gets five requests and no more, and
//! after `fail_timeout` one request probes it, again and again.
//!
//! `fail_timeout` is 2 s here; `LAZARET_LONG=1`: 10 s. nginx measures it in whole seconds and waits for more than it.

use std::time::{Duration, Instant};

use end_to_end::control::{attempts, is_long};
use end_to_end::probed::Probed;
use end_to_end::process::Lazaret;
use testkit::client::Client;

#[test]
fn a_failing_server_is_ejected_at_its_fifth_failure_and_then_probed_by_one_request_at_a_time() {
    let fail_timeout = Duration::from_secs(if is_long() { 10 } else { 2 });
    let (a, b) = (Probed::start("a"), Probed::start("b"));
    b.turn_content(500);
    let lazaret = Lazaret::start(&format!(
        "workers: 1\nroutes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    compat: \
         nginx\n    load_balancing: RoundRobin\n    retry: {{conditions: [error, timeout, http_500], attempts: 2}}\n    \
         health_check: {{passive: {{policies: [{{name: MaxFails, max_fails: 5, fail_timeout: {}s}}]}}}}\n    destinations: \
         {{a: {{address: \"{}\"}}, b: {{address: \"{}\"}}}}\n",
        fail_timeout.as_secs(),
        a.url(),
        b.url()
    ));
    let mut client = Client::connect(lazaret.proxy);
    let mut sent = 0;
    let mut get = |why: &str| {
        sent += 1;
        let response = client.get(&format!("/{sent}"));
        assert_eq!((response.status(), response.text().as_str()), (200, "a"), "request {sent}, {why}");
    };

    while b.served() < 5 && lazaret.health("app", "b") != "unknown/unhealthy" {
        get("before the ejection");
        assert!(a.served() < 40, "b got {} requests of 40", b.served());
    }
    let ejected = Instant::now();
    lazaret.wait_until("b is ejected", || lazaret.health("app", "b") == "unknown/unhealthy");
    assert_eq!(b.served(), 5, "it is ejected at its fifth failure");
    for _ in 0..20 {
        get("b is out");
    }
    assert!(ejected.elapsed() < fail_timeout, "the machine is too slow for this test");
    assert_eq!(b.served(), 5, "an ejected server got a request");
    let transition = lazaret.transitions("b").into_iter().rfind(|event| event["to"] == "unhealthy");
    let transition = transition.expect("the ejection is told");
    assert_eq!((&transition["policy"], &transition["evidence"]["failed"]), (&"MaxFails".into(), &5.into()));

    // One probe in each period, as long as it fails. Its client sees 200 from the other one.
    let mut last = ejected;
    for probe in 1..=2 {
        while b.served() == 4 + probe {
            get("until the probe");
            assert!(
                last.elapsed() < fail_timeout * 3,
                "there is no probe {probe}: {}\n{:?}",
                lazaret.destination("app", "b"),
                lazaret.transitions("b")
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        let after = last.elapsed();
        assert!(after >= fail_timeout - Duration::from_millis(100), "probe {probe} came after {after:?}");
        assert!(after < fail_timeout + Duration::from_millis(2500), "probe {probe} came after {after:?}");
        last = Instant::now();
        for _ in 0..20 {
            get("after the failed probe");
        }
        assert_eq!(b.served(), 5 + probe, "one failure ejects it again");
    }

    // Well again: the next probe brings it back for good.
    b.turn_content(200);
    let mut from_b = 0;
    while from_b < 5 {
        assert!(last.elapsed() < fail_timeout * 4, "it does not come back");
        let response = client.get("/back");
        assert_eq!(response.status(), 200);
        from_b += usize::from(response.text() == "b");
        std::thread::sleep(Duration::from_millis(10));
    }
    lazaret.wait_until("the log has the last answer", || {
        lazaret.access_log().iter().filter(|line| line["path"] == "/back" && attempts(line) == ["b:ok"]).count() >= 5
    });
    let log = lazaret.access_log();
    let retried = log.iter().filter(|line| attempts(line) == ["b:status", "a:ok"]).count();
    assert_eq!(retried, 7, "five failures and two probes were retried");
}
