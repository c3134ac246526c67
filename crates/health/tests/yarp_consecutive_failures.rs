//! YARP's ConsecutiveFailures, row by row (C1 to C17). How a threshold is read from metadata (C12 to C14) is the
//! configuration's part; here stands what the numbers it comes to do.

use model::active::{ActivePolicy, ProbeRound};
use model::cluster::{Cluster, Compat};
use model::event::Cause;
use model::health::Health;
use model::outcome::FailureKind;

use crate::world::*;

fn yarp(threshold: u32, destinations: &[&str]) -> Cluster {
    let check = with(probed(), |check| check.policy = ActivePolicy::ConsecutiveFailures { threshold });
    with(active("c", destinations, check), |cluster| cluster.compat = Compat::Yarp)
}

fn values(threshold: u32, answers: &[Answer]) -> Vec<Health> {
    let mut world = World::manual(&[yarp(threshold, &["a"])]);
    answers.iter().map(|answer| world.judge("a", *answer)).collect()
}

#[test]
fn every_row_gives_yarps_values() {
    let (bad, good) = (Answer::status(500), Answer::status(200));
    let exception = Answer::fails(FailureKind::Reset);
    let rows: &[(&str, u32, &[Answer], &[Health])] = &[
        ("C1", 2, &[bad], &[Unknown]),
        ("C2", 2, &[bad, bad], &[Unknown, Unhealthy]),
        ("C3", 2, &[bad, bad, bad], &[Unknown, Unhealthy, Unhealthy]),
        ("C4", 2, &[good], &[Healthy]),
        ("C5", 3, &[exception, exception, exception], &[Unknown, Unknown, Unhealthy]),
        ("C6", 2, &[bad, bad, good, bad, bad], &[Unknown, Unhealthy, Healthy, Healthy, Unhealthy]),
        ("C9", 2, &[good, bad], &[Healthy, Healthy]),
        ("C10", 2, &[bad, good, bad], &[Unknown, Healthy, Healthy]),
        ("C11 204", 1, &[Answer::status(204)], &[Healthy]),
        ("C11 299", 1, &[Answer::status(299)], &[Healthy]),
        ("C11 302", 1, &[Answer::status(302)], &[Unhealthy]),
        ("C11 404", 1, &[Answer::status(404)], &[Unhealthy]),
        ("C13 acts as 1", 1, &[bad], &[Unhealthy]),
        ("C13 as 0", 0, &[bad], &[Unhealthy]),
        ("C14 acts as 2", 2, &[good, bad, bad], &[Healthy, Healthy, Unhealthy]),
    ];
    for (row, threshold, answers, expected) in rows {
        assert_eq!(values(*threshold, answers), *expected, "{row}");
    }
}

#[test]
fn c7_an_empty_list_of_results_changes_nothing() {
    let rounds = with(yarp(2, &[]), |cluster| {
        cluster.health_check.active.as_mut().unwrap().round = ProbeRound::Cluster;
    });
    let mut world = World::of(&[rounds]);
    world.run_until(60.0);
    assert_eq!((world.probes.len(), world.transitions().len()), (0, 0));
}

#[test]
fn c8_the_passive_value_stays_as_it_is() {
    let mut world = World::manual(&[yarp(2, &["a"])]);
    for answer in [500, 500, 500, 200, 500, 500] {
        world.judge("a", Answer::status(answer));
        assert_eq!(world.health("a").passive, Unknown);
    }
}

#[test]
fn c15_a_lowered_threshold_judges_the_kept_count_at_the_next_failure() {
    let mut world = World::manual(&[yarp(10, &["a"])]);
    for _ in 0..4 {
        assert_eq!(world.judge("a", Answer::status(500)), Unknown);
    }
    world.configure(&[yarp(3, &["a"])]);
    assert_eq!(world.health("a").active, Unknown);
    assert_eq!(world.judge("a", Answer::status(500)), Unhealthy);
}

#[test]
fn c16_a_raised_threshold_brings_nobody_back() {
    let mut world = World::manual(&[yarp(2, &["a"])]);
    world.judge("a", Answer::status(500));
    world.judge("a", Answer::status(500));
    world.configure(&[yarp(10, &["a"])]);
    assert_eq!(world.judge("a", Answer::status(500)), Unhealthy);
}

#[test]
fn c17_only_the_probed_destination_changes() {
    let mut world = World::manual(&[yarp(1, &["a", "b"])]);
    world.judge("a", Answer::status(500));
    assert_eq!((world.health("a").active, world.health("b").active), (Unhealthy, Unknown));
    let transitions = world.transitions();
    assert_eq!(transitions.len(), 1);
    assert_eq!(transitions[0].cause, Cause::Probe { policy: "ConsecutiveFailures".to_owned() });
    assert_eq!(transitions[0].evidence.failed, Some(1));
    assert_eq!(transitions[0].evidence.last[0].status, Some(500));
}
