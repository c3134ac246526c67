//! One of three destinations dies without a warning under load, while the configuration is reloaded: clients notice
//! nothing that a retry may hide, and the dead one gets nothing after its ejection.

use std::time::Duration;

use end_to_end::load::{Load, run};
use end_to_end::patient::Patient;
use end_to_end::process::Lazaret;

/// Seconds of load; the process dies after two of them.
const SECONDS: u64 = 9;
const RELOADS: usize = 20;
const CLIENTS: usize = 48;

#[test]
fn clients_do_not_notice_a_destination_that_is_killed_during_reloads() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut patients: Vec<_> = ["a", "b", "c"].iter().map(|name| Patient::start(folder.path(), name)).collect();
    let lazaret = Lazaret::start(&config(&patients, 0));
    lazaret.wait_ready();
    let probes_before: Vec<_> = patients.iter().map(|patient| patient.count("/health")).collect();

    let load = Load {
        to: lazaret.proxy,
        clients: CLIENTS,
        rate: 1200,
        duration: Duration::from_secs(SECONDS),
        post_every: 10,
        path: "/",
    };
    let client = std::thread::spawn(move || run(&load));
    std::thread::sleep(Duration::from_secs(2));
    patients[1].process.kill();
    for number in 1..=RELOADS {
        lazaret.write(&config(&patients, number));
        lazaret.hang_up();
        std::thread::sleep(Duration::from_millis(250));
        assert_ne!(lazaret.health("app", "a"), "unknown/unknown", "reload {number} forgot what was known");
    }
    let outcome = client.join().expect("the load ends");
    println!(
        "sent {} ok {} get_failed {} post_failed {} cut {} {:?}",
        outcome.sent,
        outcome.ok,
        outcome.get_failed_before_head,
        outcome.post_failed_before_head,
        outcome.failed_after_head,
        outcome.failures
    );

    assert!(outcome.sent >= 1000 * SECONDS, "the load was not carried: {} requests", outcome.sent);
    assert_eq!(outcome.get_failed_before_head, 0, "{:?}", outcome.failures);
    assert!(outcome.post_failed_before_head <= CLIENTS as u64, "{:?}", outcome.failures);
    lazaret.wait_until("b is Unhealthy by its probes", || lazaret.health("app", "b").starts_with("unhealthy/"));
    nothing_reaches_the_dead_one_after_its_ejection(&lazaret);
    // Probes run once a second each, whatever is reloaded: no burst, no gap.
    for (index, name) in [(0, "a"), (2, "c")] {
        let probes = patients[index].count("/health") - probes_before[index];
        let expected = SECONDS as usize;
        assert!((expected - 2..=expected + 3).contains(&probes), "{name}: {probes} probes in about {expected} s");
    }
}

/// Requests that began 100 ms after the first ejection (of either kind) must not have tried `b` again, until a passive
/// ejection ends after 10 s (which is beyond this test).
fn nothing_reaches_the_dead_one_after_its_ejection(lazaret: &Lazaret) {
    let transitions = end_to_end::process::get(lazaret.control, "/api/transitions").expect("the control API answers");
    let transitions: serde_json::Value = serde_json::from_str(&transitions.body).expect("it is JSON");
    let ejected_at = find_ejection(&transitions).unwrap_or_else(|| panic!("no ejection of b in {transitions}"));
    let log = lazaret.access_log();
    assert!(log.len() > 1000, "the access log has {} lines", log.len());
    let mut late = Vec::new();
    for line in &log {
        let tried = line["attempts"].as_array().is_some_and(|all| all.iter().any(|a| a["destination"] == "b"));
        let at = line["at"].as_str().unwrap_or_default();
        let began = at_millis(at) - line["ms"].as_f64().unwrap_or(0.0);
        if tried && began.min(at_millis(at)) > at_millis(&ejected_at) + 100.0 {
            late.push(line.clone());
        }
    }
    assert!(late.is_empty(), "{} requests tried b after {ejected_at}: {:?}", late.len(), late.first());
}

fn find_ejection(transitions: &serde_json::Value) -> Option<String> {
    let list = transitions["events"].as_array()?;
    let mut found: Vec<_> = list
        .iter()
        .filter(|t| t["destination"] == "b" && t["to"] == "unhealthy")
        .filter_map(|t| t["at"].as_str().map(str::to_owned))
        .collect();
    found.sort();
    found.into_iter().next()
}

/// Milliseconds of the day of an RFC 3339 time; enough to compare times of one short test, midnight aside.
fn at_millis(at: &str) -> f64 {
    let time = at.split('T').nth(1).unwrap_or_default();
    let mut parts = time.trim_end_matches('Z').split(':').map(|part| part.parse::<f64>().unwrap_or(0.0));
    let mut next = || parts.next().unwrap_or(0.0);
    (next() * 3600.0 + next() * 60.0 + next()) * 1000.0
}

fn config(patients: &[Patient], number: usize) -> String {
    let destinations: Vec<_> = ["a", "b", "c"]
        .iter()
        .zip(patients)
        .map(|(name, patient)| format!("{name}: {{address: \"http://{}/\"}}", patient.address))
        .collect();
    format!(
        "routes:\n  all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}\n  unrelated: {{match: {{path: \
         \"/unrelated-{number}\"}}, respond: {{status: 200, body: \"{number}\"}}}}\nclusters:\n  app:\n    \
         health_check:\n      active: {{interval: 1s, timeout: 1s, path: /health}}\n      passive: {{policies: [{{name: \
         MaxFails, max_fails: 3, fail_timeout: 10s}}]}}\n    destinations: {{{}}}\n",
        destinations.join(", ")
    )
}
