//! Clients that leave, destinations that reset, and a reload every so often: no answer is mixed up, no GET fails, and
//! when it is over nothing is left: no request in flight, no descriptor, no memory that keeps growing.
//!
//! 12 s with a reload a second; `LAZARET_LONG=1`: 10 min with a reload every 10 s.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use end_to_end::control::{attempts, is_long};
use end_to_end::mixed::{self, Echo, Tally};
use end_to_end::process::Lazaret;

#[test]
fn a_mixed_load_with_aborts_resets_and_reloads_mixes_nothing_up_and_leaves_nothing_behind() {
    let echoes: Vec<Echo> = (0..3).map(Echo::start).collect();
    let config = |turn: usize| {
        let destinations: Vec<_> =
            (0..).zip(&echoes).map(|(n, echo)| format!("d{n}: {{address: \"{}\"}}", echo.url())).collect();
        format!(
            "routes:\n  all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}\n  turn{turn}: {{match: {{path: \
             \"/turn{turn}\"}}, order: -1, respond: {{status: 200, body: turn}}}}\nclusters:\n  app:\n    retry: {{attempts: \
             3}}\n    health_check: {{active: {{interval: 1s}}}}\n    destinations: {{{}}}\n",
            destinations.join(", ")
        )
    };
    let lazaret = Lazaret::start(&config(0));
    lazaret.wait_ready();
    let (length, every) = if is_long() { (600, 10) } else { (12, 1) };
    let (length, every) = (Duration::from_secs(length), Duration::from_secs(every));
    let tally = Tally::default();
    let start = Instant::now();
    let (mut turn, mut warm) = (0, 0);
    let baseline = lazaret.descriptors();
    mixed::run(lazaret.proxy, 8, length, &tally, || {
        std::thread::sleep(every);
        turn += 1;
        lazaret.apply(&config(turn));
        if start.elapsed() < length / 3 {
            warm = lazaret.resident();
        }
    });
    let end = lazaret.resident();
    println!("{tally:?}, resident {warm} after a third, {end} at the end, {turn} reloads");
    assert_eq!(tally.wrong.load(Ordering::Relaxed), 0, "answers were mixed up: {tally:?}");
    assert!(Tally::of(&tally.right) > 1_000 && Tally::of(&tally.left) > 20, "there was too little load: {tally:?}");
    // One in twenty tries is reset: of many GETs some meet nothing else. All others are answered.
    let unlucky = unlucky_gets(&lazaret);
    assert!(Tally::of(&tally.failed_gets) <= unlucky, "{unlucky} GETs met resets alone, more failed: {tally:?}");
    assert!(unlucky * 5_000 <= Tally::of(&tally.right), "{unlucky} GETs failed: {tally:?}");
    let room = 8 << 20;
    assert!(end < warm + warm / 5 + room, "memory grows: {warm} after a third of the time, {end} at the end");
    lazaret.wait_until("no request is in flight", || lazaret.metric("lazaret_destination_in_flight", &[]) == 0.0);
    // Connections to destinations are kept for 30 s.
    let bound = baseline + 8 * 3 * 2 + 8;
    lazaret.wait_until("descriptors come back", || lazaret.descriptors() <= bound);
}

/// How many GETs were answered with an error, each of which must have been tried at all destinations, in vain.
fn unlucky_gets(lazaret: &Lazaret) -> u64 {
    let log = std::fs::read_to_string(lazaret.folder.path().join("access.log")).expect("the log is there");
    let lines = log.lines().filter(|line| line.contains("\"method\":\"GET\"") && line.contains("\"status\":5"));
    let mut count = 0;
    for line in lines {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
        let tried = attempts(&line);
        // One of them twice, where the first try met a connection that had ended while it was idle.
        let places: BTreeSet<_> = tried.iter().filter_map(|attempt| attempt.split(':').next()).collect();
        assert_eq!(places.len(), 3, "{line}");
        assert!(tried.iter().all(|attempt| !attempt.ends_with(":ok")), "{line}");
        count += 1;
    }
    count
}
