//! Overload is not sickness: when all destinations are late at once, none is taken from those that carry the load, and all
//! serve again when its cause is over; an ejection that the others cannot bear does not take them with it; one whose data path is cut is caught by its traffic though its probes pass.

use lab::meter::Film;
use lab::policy::Policy;
use lab::scenario::Scenario;

use crate::support::read;

/// Five destinations at 80 % of what they bear; for 30 s each request takes 300 ms more at all of them; later one of them
/// takes requests and answers none, but its health page.
const SCENARIO: &str = "
version: 1
title: late together, then one cut off
duration: 240s
warm_up: 20s
checks: {interval: 1s, timeout: 1s}
timeouts: {connect: 1s, response: 3s}
destinations: [{ids: [a, b, c, d, e], service: {constant: 100ms}, concurrency: 10, backlog: 40}]
traffic: [{arrivals: poisson, rate: 400/s, methods: {GET: 0.9, POST: 0.1}, patience: 5s}]
faults:
  - {kind: slow, at: 60s, lasts: 30s, factor: 4, truth: healthy, on: [a, b, c, d, e]}
  - {kind: hang, at: 150s, lasts: 60s, on: [e], probes: pass}
";
const LATE: (f64, f64) = (60.0, 90.0);
const CUT: (f64, f64) = (150.0, 210.0);

#[test]
fn load_that_makes_all_late_does_not_empty_the_cluster_and_is_over_when_its_cause_is() {
    let scenario = read(SCENARIO);
    for seed in 1..=4 {
        let run = |policy: &str| lab::run(&scenario, &Policy::find(policy).unwrap(), seed).unwrap().1;
        let (ours, kept) = (run("lazaret"), run("keep"));
        let (failed, unavoidable) = (failures(&ours, LATE.0, LATE.1 + 5.0), failures(&kept, LATE.0, LATE.1 + 5.0));
        assert!(unavoidable > 1000, "seed {seed}: the scenario overloads nobody: {unavoidable}");
        let is_borne = f64::from(failed) < 1.1 * f64::from(unavoidable);
        assert!(is_borne, "seed {seed}: {failed} failed, {unavoidable} with nobody ejected");
        let after = failures(&ours, LATE.1 + 5.0, CUT.0);
        assert!(after < 20, "seed {seed}: all serve again 5 s after the cause is over, {after} failed");
    }
}

#[test]
fn an_ejection_that_fills_the_others_takes_none_of_them_with_it() {
    let scenario = read(include_str!("../../../scenarios/tune/full_rest.yaml"));
    for (attempts, seed) in [(3, 1), (1, 2)] {
        let scenario = Scenario { attempts, ..scenario.clone() };
        let (figures, film) = lab::run(&scenario, &Policy::find("lazaret").unwrap(), seed).unwrap();
        // b and e fail in part.
        for well in [0, 2, 3, 5] {
            let out = film.shares[well].iter().find(|(_, share)| *share == 0.0);
            assert_eq!(out, None, "{attempts} attempts: destination {well} is out; {figures:?}");
        }
        // It is over at 140 s; the longest ejection and the ramp after it last for 24 s.
        let after = failures(&film, 165.0, 200.0);
        assert_eq!(after, 0, "{attempts} attempts: {after} failed after the fault");
    }
}

#[test]
fn load_that_nobody_can_bear_costs_no_more_with_probes_than_without() {
    let text = include_str!("../../../scenarios/tune/all_full.yaml").replace("duration: 240s", "duration: 150s");
    let scenario = read(&text);
    let run = |policy: &str| lab::run(&scenario, &Policy::find(policy).unwrap(), 1).unwrap().0;
    let (ours, kept) = (run("lazaret"), run("keep"));
    assert!(kept.failures > 3000, "the scenario overloads nobody: {}", kept.failures);
    assert!(
        ours.failures as f64 <= 1.1 * kept.failures as f64,
        "{} failed, {} with nobody out",
        ours.failures,
        kept.failures
    );
}

#[test]
fn one_that_is_cut_off_behind_a_green_health_page_is_found() {
    let scenario = read(SCENARIO);
    let run = |policy: &str| lab::run(&scenario, &Policy::find(policy).unwrap(), 1).unwrap().1;
    let (ours, kept) = (run("lazaret"), run("keep"));
    let caught = out_at(&ours, 4, CUT.0).expect("the cut one is caught");
    assert!(caught < CUT.0 + 5.0, "caught at {caught}");
    assert!(failures(&ours, CUT.0 + 10.0, CUT.1) < failures(&kept, CUT.0 + 10.0, CUT.1) / 20);
}

fn failures(film: &Film, from: f64, to: f64) -> u32 {
    let bins = film.failures.iter().enumerate().filter(|(bin, _)| (from..to).contains(&(*bin as f64 * film.bin)));
    bins.map(|(_, failures)| failures).sum()
}

/// When a destination next had less than a fifth of its share.
fn out_at(film: &Film, destination: usize, from: f64) -> Option<f64> {
    film.shares[destination].iter().find(|(at, share)| *at >= from && *share < 0.2).map(|(at, _)| *at)
}
