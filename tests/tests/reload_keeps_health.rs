//! A reload forgets nothing: a sick destination stays out, its counts and the time of its next probe survive, no probe is
//! sent for the reload's sake, none is lost, and a check that a reload turns on or changes works from then on.
//! (haproxy/haproxy #918 and #2085, yaoweibin/nginx_upstream_check_module #5, dotnet/yarp #1134)
//!
//! Intervals and pauses are shorter than what is usual; `LAZARET_LONG=1` takes usual ones (about 2 minutes).

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use end_to_end::control::is_long;
use end_to_end::load::{Load, run};
use end_to_end::probed::{Probed, gaps};
use end_to_end::process::{Lazaret, poll};
use nix::sys::signal::Signal;

#[test]
fn no_request_reaches_a_destination_that_was_sick_before_the_reload() {
    let (reloads, pause) = if is_long() { (20, Duration::from_secs(1)) } else { (12, Duration::from_millis(250)) };
    let (a, b) = (Probed::start("a"), Probed::start("b"));
    b.turn(500);
    b.turn_content(500);
    let config = |number: usize| {
        format!(
            "routes:\n  all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}\n  unrelated: {{match: {{path: \
             \"/unrelated-{number}\"}}, respond: {{status: 200, body: \"{number}\"}}}}\nclusters:\n  app:\n    health_check: \
             {{active: {{interval: 2s, timeout: 1s, threshold: 3, confirm_interval: 500ms, path: /health}}}}\n    \
             destinations: {{a: {{address: \"{}\"}}, b: {{address: \"{}\"}}}}\n",
            a.url(),
            b.url()
        )
    };
    let lazaret = Lazaret::start(&config(0));
    lazaret.wait_until("b is Unhealthy", || lazaret.health("app", "b") == "unhealthy/unknown");
    let failed = counted(&lazaret, "b");
    assert!(failed >= 3, "{failed} failures are counted");
    let from = Instant::now();
    let served = b.served();

    let load = Load {
        to: lazaret.proxy,
        clients: 8,
        rate: 500,
        duration: pause * reloads + Duration::from_secs(1),
        post_every: 0,
        path: "/",
    };
    let client = std::thread::spawn(move || run(&load));
    for number in 1..=reloads as usize {
        // What is told of a probe is told within 100 ms of it.
        let before = Instant::now() - Duration::from_millis(500);
        let next = due(&lazaret, "b");
        lazaret.apply(&config(number));
        assert_eq!(lazaret.health("app", "b"), "unhealthy/unknown", "reload {number}");
        assert!(counted(&lazaret, "b") >= failed, "reload {number} lowered the count of failures");
        let moved = (due(&lazaret, "b") - next).abs();
        let is_probed = || !b.probes_since(before).is_empty();
        let is_kept = moved < 100.0 || poll(Duration::from_secs(1), is_probed);
        assert!(is_kept, "reload {number} moved the next probe by {moved} ms");
        let answer = end_to_end::process::get(lazaret.proxy, &format!("/unrelated-{number}")).expect("an answer");
        assert_eq!(answer.body, number.to_string(), "reload {number} is in force");
        std::thread::sleep(pause);
    }
    let outcome = client.join().expect("the load ends");
    assert!(outcome.sent > 400, "{} requests were sent", outcome.sent);
    assert_eq!(outcome.ok, outcome.sent, "{:?}", outcome.failures);
    assert_eq!(b.served(), served, "requests reached the sick one");
    assert_eq!(lazaret.transitions("b").len(), 1, "{:?}", lazaret.transitions("b"));
    for (name, one) in [("a", &a), ("b", &b)] {
        let (probes, expected) = (one.probes_since(from).len(), from.elapsed().as_secs_f64() / 2.0);
        assert!((probes as f64 - expected).abs() <= 2.0, "{name}: {probes} probes, about {expected} are due");
    }
}

#[test]
fn every_destination_is_probed_once_an_interval_after_many_reloads() {
    let (reloads, longest) = if is_long() { (30, 2000) } else { (20, 250) };
    let interval = Duration::from_secs(1);
    let destinations: Vec<_> = (0..30).map(|index| Probed::start(&format!("d{index}"))).collect();
    let config = |number: usize| {
        let mut text = format!(
            "routes:\n  all: {{match: {{path: \"/{{**rest}}\"}}, cluster: c0}}\n  unrelated: {{match: {{path: \
             \"/unrelated-{number}\"}}, respond: {{status: 200}}}}\nclusters:\n"
        );
        for (cluster, members) in destinations.chunks(10).enumerate() {
            let _ = write!(
                text,
                "  c{cluster}:\n    health_check: {{active: {{interval: {}ms, timeout: 1s, threshold: 2, path: /health}}}}\n    \
                 destinations:\n",
                interval.as_millis()
            );
            for (index, one) in members.iter().enumerate() {
                let _ = writeln!(text, "      d{index}: {{address: \"{}\"}}", one.url());
            }
        }
        text
    };
    let lazaret = Lazaret::start(&config(0));
    lazaret.wait_ready();
    // Pauses that look random and are the same each time.
    let mut pause = 7u64;
    for number in 1..=reloads {
        lazaret.write(&config(number));
        lazaret.hang_up();
        if number % 4 == 0 {
            std::thread::sleep(Duration::from_millis(3));
            lazaret.hang_up();
        }
        // Some turn sick in the midst of it, some turn well again.
        let one = &destinations[number % 30];
        one.turn(if number % 3 == 0 { 200 } else { 500 });
        destinations[(number * 7) % 30].turn(200);
        pause = pause * 1_103_515_245 % 2_147_483_648;
        std::thread::sleep(Duration::from_millis(100.min(longest) + pause % longest));
    }
    destinations[3].turn(500);
    destinations[14].turn(500);
    destinations[25].turn(500);
    let sick = |index: usize| destinations[index].health() != 200;
    lazaret.wait_until("every state is that of its destination", || {
        (0..30).all(|index| {
            let expected = if sick(index) { "unhealthy/unknown" } else { "healthy/unknown" };
            lazaret.health(&format!("c{}", index / 10), &format!("d{}", index % 10)) == expected
        })
    });
    let from = Instant::now();
    let intervals = 5;
    let is_over = poll(interval * 10, || destinations.iter().all(|one| one.probes_since(from).len() > intervals));
    assert!(is_over, "some destination is not probed any more: {:?}", counts(&destinations, from));
    let most = (from.elapsed().as_secs_f64() / interval.as_secs_f64() * 1.1) as usize + 2;
    for (index, one) in destinations.iter().enumerate() {
        let probes = one.probes_since(from);
        assert!(probes.len() <= most, "d{index}: {} probes where {most} would be many", probes.len());
        // Two schedules of one destination would leave short gaps between.
        let shortest = gaps(&probes).into_iter().min().unwrap_or_default();
        assert!(shortest > interval / 2, "d{index}: two probes within {shortest:?}");
    }
}

#[test]
fn a_check_that_a_reload_turns_on_or_changes_works_at_once() {
    let one = Probed::start("one");
    let check = |text: &str| {
        format!(
            "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    health_check: \
             {{active: {{{text}}}}}\n    destinations: {{one: {{address: \"{}\"}}}}\n",
            one.url()
        )
    };
    let lazaret = Lazaret::start(&check("enabled: false, interval: 10s, timeout: 1s, threshold: 9, path: /health"));
    lazaret.apply(&check("enabled: false, interval: 10s, timeout: 1s, threshold: 9, path: /health-not-yet"));
    assert_eq!((one.probes().len(), lazaret.health("app", "one").as_str()), (0, "unknown/unknown"));

    lazaret.apply(&check("interval: 10s, timeout: 1s, threshold: 9, path: /health"));
    lazaret.wait_until("the first probe passed", || lazaret.health("app", "one") == "healthy/unknown");
    assert_eq!(one.probes().len(), 1);

    let changed = Instant::now();
    lazaret.apply(&check("interval: 500ms, timeout: 400ms, threshold: 9, confirm_interval: 500ms, path: /health"));
    assert!(poll(Duration::from_secs(2), || one.probes().len() >= 2), "the shorter interval is not in force");
    assert!(changed.elapsed() < Duration::from_millis(1000), "it came into force after {:?}", changed.elapsed());

    lazaret.apply(&check("interval: 500ms, timeout: 400ms, threshold: 9, confirm_interval: 500ms, path: /health/new"));
    let asked = poll(Duration::from_secs(2), || !one.destination().requests_to("/health/new").is_empty());
    assert!(asked, "the new path is not in force");

    // A lower threshold is held against the failures that were counted before it.
    one.turn(500);
    lazaret.wait_until("four failures are counted", || counted(&lazaret, "one") >= 4);
    assert_eq!(lazaret.health("app", "one"), "healthy/unknown");
    lazaret.apply(&check("interval: 500ms, timeout: 400ms, threshold: 2, confirm_interval: 500ms, path: /health/new"));
    let judged = poll(Duration::from_millis(1500), || lazaret.health("app", "one") == "unhealthy/unknown");
    assert!(judged, "the lower threshold is not in force: {}", lazaret.destination("app", "one"));
    one.turn(200);
    lazaret.wait_until("it is Healthy again", || lazaret.health("app", "one") == "healthy/unknown");

    // Its answers take 250 ms: within the timeout, until a reload shortens that.
    one.slow_down(Duration::from_millis(250));
    let slow = one.probes().len();
    lazaret.wait_until("three slow probes passed", || one.probes().len() > slow + 3);
    assert_eq!(lazaret.health("app", "one"), "healthy/unknown");
    lazaret.apply(&check("interval: 500ms, timeout: 100ms, threshold: 2, confirm_interval: 500ms, path: /health/new"));
    lazaret.wait_until("the shorter timeout ends them", || lazaret.health("app", "one") == "unhealthy/unknown");
    assert_eq!(lazaret.destination("app", "one")["last_probe"]["failure"], "timeout");
    one.slow_down(Duration::ZERO);
    lazaret.wait_until("it is Healthy again", || lazaret.health("app", "one") == "healthy/unknown");

    // On and off from two sides: the file with a signal, and the control API.
    let resident = lazaret.resident();
    for number in 0..50 {
        let on = "interval: 500ms, timeout: 400ms, threshold: 2, path: /health";
        lazaret.write(&check(&if number % 2 == 0 { format!("enabled: false, {on}") } else { on.to_owned() }));
        if number % 3 == 0 {
            lazaret.process.signal(Signal::SIGHUP);
        } else {
            assert_eq!(lazaret.reload().code, Some(0));
        }
    }
    lazaret.apply(&check("interval: 500ms, timeout: 400ms, threshold: 2, path: /health"));
    lazaret.wait_until("it is Healthy", || lazaret.health("app", "one") == "healthy/unknown");
    let from = Instant::now();
    lazaret.wait_until("five intervals passed", || one.probes_since(from).len() > 5);
    let probes = one.probes_since(from);
    let shortest = gaps(&probes).into_iter().min().unwrap_or_default();
    assert!(shortest > Duration::from_millis(250), "two streams of probes: two within {shortest:?}");
    let grown = lazaret.resident().saturating_sub(resident);
    assert!(grown < 16 << 20, "50 changes left {grown} bytes behind");
}

/// Failed probes in a row.
fn counted(lazaret: &Lazaret, id: &str) -> u64 {
    lazaret.destination("app", id)["counter"]["http_failure"].as_u64().unwrap_or(0)
}

/// When the next probe is due, in milliseconds of the day.
fn due(lazaret: &Lazaret, id: &str) -> f64 {
    let document = lazaret.destination("app", id);
    let at = document["next_probe"]["at"].as_str().unwrap_or_default();
    let time = at.split('T').nth(1).unwrap_or_default();
    let parts = time.trim_end_matches('Z').split(':').map(|part| part.parse::<f64>().unwrap_or(0.0));
    parts.fold(0.0, |sum, part| sum * 60.0 + part) * 1000.0
}

fn counts(destinations: &[Probed], from: Instant) -> Vec<usize> {
    destinations.iter().map(|one| one.probes_since(from).len()).collect()
}
