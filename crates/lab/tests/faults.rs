//! Each fault does what it says, and none goes by unseen.

use lab::chance::Chance;
use lab::meter::Figures;
use lab::policy::Policy;
use model::time::Timestamp;

use crate::support::{read, run, three};

fn with(faults: &str) -> Figures {
    run(&read(&three(faults)), "keep", 1)
}

#[test]
fn every_kind_of_fault_costs_something() {
    let calm = with("[]");
    assert_eq!(calm.failures, 0);
    // Who waits for one that hangs makes it look busy, so balancing by requests in flight spares most of the others.
    for (fault, least) in [
        ("{kind: crash, on: [b], at: 20s, lasts: 10s}", 200),
        ("{kind: refuse, on: [b], at: 20s, lasts: 10s}", 200),
        ("{kind: blackhole, on: [b], at: 20s, lasts: 10s}", 10),
        ("{kind: hang, on: [b], at: 20s, lasts: 10s}", 10),
        ("{kind: errors, on: [b], at: 20s, lasts: 10s, share: 0.5, status: 503}", 100),
        ("{kind: resets, on: [b], at: 20s, lasts: 10s, share: 0.5}", 50),
        ("{kind: cuts, on: [b], at: 20s, lasts: 10s, share: 0.5}", 100),
    ] {
        let figures = with(&format!("[{fault}]"));
        assert!(figures.failures >= least, "{fault}: {figures:?}");
    }
    for fault in [
        "{kind: pause, on: [a, b, c], at: 20s, lasts: 1s, every: 10s}",
        "{kind: slow, on: [a, b, c], at: 20s, lasts: 20s, factor: 3}",
        "{kind: cold, on: [a, b, c], at: 20s, lasts: 20s, factor: 5}",
    ] {
        let figures = with(&format!("[{fault}]"));
        assert!(figures.p99 > 1.5 * calm.p99, "{fault}: {} ms after {} ms", figures.p99, calm.p99);
    }
    // One server where there were four, at less than half of its time.
    let narrow = with("[{kind: capacity, on: [a, b, c], at: 10s, lasts: 45s, factor: 0.25}]");
    assert!(narrow.mean > 1.15 * calm.mean, "{} ms after {} ms", narrow.mean, calm.mean);
}

#[test]
fn requests_that_fail_everywhere_are_nobodys_failures() {
    let figures = with("[{kind: client_errors, at: 10s, lasts: 40s, share: 0.5, status: 502}]");
    assert_eq!(figures.failures, 0);
    assert!(figures.requests < with("[]").requests * 3 / 4);
}

#[test]
fn a_trace_tells_which_arrivals_a_share_of_a_fault_has_spoilt() {
    let text = three("[{kind: errors, on: [b], at: 20s, lasts: 10s, share: 0.25, status: 503}]");
    let trace = lab::trace(&read(&text), &Policy::find("keep").unwrap(), Chance::new(1)).unwrap();
    let is_sick = |at: &&Timestamp| (20.0..30.0).contains(&at.as_secs_f64());
    let (met, spoilt) = (trace.arrivals[1].iter().filter(is_sick).count(), &trace.spoilt[1]);
    assert!(spoilt.iter().all(|at| is_sick(&at) && trace.arrivals[1].contains(at)), "{spoilt:?}");
    assert!((met / 5..met / 3).contains(&spoilt.len()), "{} of {met}", spoilt.len());
    assert!(trace.spoilt[0].is_empty() && trace.spoilt[2].is_empty());
}

#[test]
fn a_fault_of_some_proxies_is_true_for_them_alone() {
    let text = three("[{kind: blackhole, on: [b], proxies: [1], at: 20s, lasts: 30s}]")
        .replace("checks:", "proxies: {count: 4}\nchecks:");
    let figures = run(&read(&text), "eject", 1);
    assert_eq!((figures.ejections, figures.lost, figures.detection), (0.25, 0.0, Some(0.0)));
}

#[test]
fn a_mistaken_word_is_told_with_its_line_and_what_may_have_been_meant() {
    let faults = |fault: &str| three(&format!("\n  - {{kind: crash, on: [a], at: 1s}}\n  - {{{fault}, at: 1s}}"));
    let of = |text: &str| lab::scenario::read(text, &|_| Err(String::new())).unwrap_err().to_string();
    let slow = of(&faults("kind: slwo, factor: 3, on: [a]"));
    assert!(slow.starts_with("line 12, faults[1].kind: it is one of crash, refuse, "), "{slow}");
    assert!(slow.ends_with("; did you mean `slow`?"), "{slow}");
    let named = faults("kind: crash, on: [app_1]").replace("ids: [a, b, c]", "ids: [a, app1, app22]");
    let named = of(&named);
    let expected = "there is no destination app_1, there are a, app1, app22; did you mean `app1`?";
    assert_eq!(named, format!("line 12, faults[1].on: {expected}"));
    let strange = of(&faults("kind: crash, on: [elsewhere]"));
    assert_eq!(strange, "line 12, faults[1].on: there is no destination elsewhere, there are a, b, c");
    assert!(of(&three("[]").replace("backlog: 20", "on_full: shout")).starts_with("line 8, destinations[0].on_full: "));
}

#[test]
fn a_mistake_outside_of_the_lists_is_told_with_its_line_too() {
    let text = "version: 1\ntitle: lines\nduration: 60s\nwarm_up: 5s\nproxies:\n  count: 2\n  tick: 100ms\nchecks:\n  interval: \
                2s\n  timeout: 1s\ntimeouts:\n  connect: 1s\n  response: 2s\nretry:\n  attempts: 2\ntotal: 3s\ndestinations:\n  - \
                {ids: [a, b], service: {constant: 1ms}}\ntraffic:\n  - {arrivals: poisson, rate: 5/s}\n";
    read(text);
    for (right, mistaken, told) in [
        ("version: 1", "version: 2", "line 1, version: 1 is the only one"),
        ("duration: 60s", "duration: 0s", "line 3, duration: it is longer than nothing"),
        ("warm_up: 5s", "warm_up: 60s", "line 4, warm_up: it ends before `duration`"),
        ("count: 2", "count: 0", "line 6, proxies.count: it lies between 1 and 256"),
        ("tick: 100ms", "workers: 257", "line 7, proxies.workers: it lies between 1 and 256"),
        ("tick: 100ms", "tick: 0s", "line 7, proxies.tick: it is longer than nothing"),
        ("interval: 2s", "interval: 0s", "line 9, checks.interval: it is longer than nothing"),
        ("timeout: 1s", "timeout: 0s", "line 10, checks.timeout: it is longer than nothing"),
        ("connect: 1s", "connect: 0s", "line 12, timeouts.connect: it is longer than nothing"),
        ("response: 2s", "response: 0s", "line 13, timeouts.response: it is longer than nothing"),
        ("attempts: 2", "attempts: 0", "line 15, retry.attempts: it is 1 or more"),
        ("total: 3s", "total: 0s", "line 16, total: it is longer than nothing"),
        ("\n  - {ids: [a, b], service: {constant: 1ms}}", " []", "line 17, destinations: there are between 1 and 1000"),
        (
            "\n  - {arrivals: poisson, rate: 5/s}",
            " []",
            "line 19, traffic: there is none; an entry names its `arrivals`: poisson, closed or log",
        ),
    ] {
        assert!(text.contains(right), "{right}");
        let error = lab::scenario::read(&text.replacen(right, mistaken, 1), &|_| Err(String::new())).unwrap_err();
        assert_eq!(error.to_string(), told);
    }
}

#[test]
fn a_mistake_names_its_place_and_what_is_right() {
    for (text, place) in [
        (three("[{kind: crash, on: [z], at: 1s}]"), "faults[0].on"),
        (three("[{kind: crash, on: [a], at: 1s, share: 0.5}]"), "faults[0].share"),
        (three("[{kind: errors, on: [a], at: 1s, share: 2, status: 503}]"), "faults[0]"),
        (three("[{kind: melt, on: [a], at: 1s}]"), "faults[0].kind"),
        (three("[]").replace("retry: {attempts: 1}", "retry: {attempts: 0}"), "retry.attempts"),
        (three("[]").replace("rate: 120/s", "clients: 3"), "traffic[0].clients"),
    ] {
        let error = lab::scenario::read(&text, &|_| Err(String::new())).unwrap_err();
        assert_eq!(error.place, place, "{error}");
    }
    let error = lab::scenario::read(&three("[]").replace("title", "tittle"), &|_| Err(String::new())).unwrap_err();
    assert!(error.to_string().contains("tittle"), "{error}");
}
