//! A core that goes on from what another one knew judges as that one would have.

use health::saved::VERSION;
use health::{Input, SavedHealth};
use model::active::ProbeRound;
use model::cluster::{Cluster, Compat};
use model::event::EventKind;
use model::guards::{AnsweringDestination, Guards};
use model::health::CheckKind;
use model::outcome::FailureKind;
use model::passive::{ConsecutiveErrors, PassivePolicy};
use model::readmission::Readmission;

use crate::doubt::reset;
use crate::world::*;

/// Another process at the same moment, which has got what this one knows as text.
fn successor(world: &World, clusters: &[Cluster]) -> World {
    let text = serde_json::to_string(&world.core.save()).unwrap();
    let saved: SavedHealth = serde_json::from_str(&text).unwrap();
    restored(world, clusters, saved)
}

fn restored(world: &World, clusters: &[Cluster], saved: SavedHealth) -> World {
    let mut next = World::new();
    next.now = world.now;
    next.answers = world.answers.clone();
    next.configure(clusters);
    next.input(Input::HealthRestored(Box::new(saved)));
    next
}

#[test]
fn an_ejected_destination_stays_ejected_until_its_time_is_over() {
    let clusters = [passive("app", &["a", "b"], &[max_fails(1, 10.0)])];
    let mut world = World::of(&clusters);
    world.run_until(100.0);
    world.outcome("a", refused());
    world.run_until(104.0);
    let mut next = successor(&world, &clusters);
    assert_eq!(next.available("app"), ["b"]);
    assert_eq!(next.destination("a").reactivation_at, Some(at(110.0)));
    assert_eq!(next.destination("a").last_transition, world.destination("a").last_transition);
    assert!(next.transitions().is_empty(), "nothing has changed: {:?}", next.transitions());
    next.run_until(109.9);
    assert_eq!(next.available("app"), ["b"]);
    next.run_until(110.0);
    assert_eq!(next.available("app"), ["a", "b"]);
}

#[test]
fn failures_before_and_after_are_counted_together() {
    for (compat, policy, before, after) in [
        (Compat::None, max_fails(3, 10.0), 2, 1),
        (Compat::Nginx, max_fails(3, 10.0), 2, 1),
        (Compat::None, failure_rate(0.5, 60.0, 5), 4, 1),
        (Compat::Yarp, failure_rate(0.5, 60.0, 5), 4, 1),
    ] {
        let one = with(passive("app", &["a", "b"], std::slice::from_ref(&policy)), |cluster| cluster.compat = compat);
        let clusters = [one];
        let mut world = World::of(&clusters);
        world.run_until(20.0);
        (0..before).for_each(|_| world.outcome("a", refused()));
        world.run_until(22.0);
        let mut next = successor(&world, &clusters);
        assert_ne!(next.health("a").passive, Unhealthy, "{compat:?} {policy:?}");
        (0..after).for_each(|_| next.outcome("a", refused()));
        assert_eq!(next.health("a").passive, Unhealthy, "{compat:?} {policy:?}");
        // Without the history the same failures say nothing.
        let mut fresh = World::of(&clusters);
        fresh.now = world.now;
        (0..after).for_each(|_| fresh.outcome("a", refused()));
        assert_ne!(fresh.health("a").passive, Unhealthy, "{compat:?} {policy:?}");
    }
}

#[test]
fn probes_go_on_in_their_rhythm_and_their_counts_go_on_too() {
    let clusters = [active("app", &["a", "b"], probed())];
    let mut world = World::of(&clusters);
    world.answers.insert("a".to_owned(), Answer::fails(FailureKind::HeadTimeout));
    world.run_until(0.5);
    assert_eq!(world.health("a").active, Unknown, "one failure is not enough");
    let due = world.destination("b").next_probe_at;
    let mut next = successor(&world, &clusters);
    assert_eq!(next.destination("b").next_probe_at, due);
    assert_eq!(next.destination("b").probed_at, world.destination("b").probed_at);
    next.run_until(3.0);
    assert_eq!((next.health("a").active, next.health("b").active), (Unhealthy, Healthy));
    assert_eq!(next.probe_times("a").len(), 1, "the second failure was enough");
    assert!(next.probe_times("b").is_empty(), "{:?}", next.probe_times("b"));
}

#[test]
fn one_that_was_spared_for_its_answers_is_spared_without_a_word_by_the_process_that_takes_over() {
    let clusters = [with(passive("app", &["a", "b"], &[max_fails(3, 10.0)]), |cluster| {
        cluster.health_check.active = Some(probed());
        cluster.health_check.guards.answering = AnsweringDestination::Stays;
    })];
    let mut world = World::of(&clusters);
    world.answers.insert("a".to_owned(), Answer::fails(FailureKind::Refused));
    let spares =
        |world: &World| world.events.iter().filter(|event| matches!(event.kind, EventKind::Kept { .. })).count();
    for tenth in 1..=100 {
        world.run_until(f64::from(tenth) / 10.0);
        world.sums("a", 1);
    }
    assert_eq!(spares(&world), 1);
    let due = world.destination("a").next_probe_at.unwrap();
    world.run_until(due.as_secs_f64() - 0.3);
    world.sums("a", 1);
    world.run_until(due.as_secs_f64() - 0.1);
    let mut next = successor(&world, &clusters);
    next.run_until(due.as_secs_f64() + 0.1);
    assert_eq!(next.probe_times("a").len(), 1);
    assert_ne!(next.health("a").active, Unhealthy);
    assert_eq!(spares(&next), 0);
}

#[test]
fn one_that_failed_all_before_is_not_kept_by_the_cap_after_it_either() {
    let five = PassivePolicy::ConsecutiveErrors(ConsecutiveErrors::default());
    let clusters = [with(passive("app", &["a", "b", "c", "d"], &[five]), |cluster| {
        cluster.health_check.active = Some(probed());
        cluster.health_check.guards = Guards::native();
        cluster.health_check.passive.as_mut().unwrap().readmission = Some(Readmission::default());
    })];
    let mut world = World::of(&clusters);
    for id in ["b", "c"] {
        world.answers.insert(id.to_owned(), Answer::status(503));
    }
    world.run_until(20.0);
    (0..5).for_each(|_| world.outcome("a", reset()));
    let mut next = successor(&world, &clusters);
    while next.health("a").passive == Unhealthy {
        next.run_until(next.now.as_secs_f64() + 0.1);
    }
    next.outcome("a", reset());
    assert_eq!((next.health("a").passive, next.available("app")), (Unhealthy, vec!["d".to_owned()]));
}

#[test]
fn rounds_go_on_in_their_rhythm() {
    let check = with(probed(), |check| check.round = ProbeRound::Cluster);
    let clusters = [active("app", &["a", "b"], check)];
    let mut world = World::of(&clusters);
    world.run_until(7.0);
    let due = world.destination("a").next_probe_at;
    let mut next = successor(&world, &clusters);
    assert_eq!((next.destination("a").next_probe_at, next.health("a").active), (due, Healthy));
}

#[test]
fn what_the_new_configuration_does_not_name_is_forgotten() {
    let mut world = World::of(&[passive("app", &["a", "b", "c"], &[max_fails(1, 60.0)]), passive("old", &["x"], &[])]);
    for id in ["a", "b"] {
        world.set(id, CheckKind::Passive, Unhealthy, None);
    }
    let moved = with(passive("app", &["a", "b", "d"], &[max_fails(1, 60.0)]), |cluster| {
        cluster.destinations[1].address = model::address::Url::parse("http://elsewhere.test/").unwrap();
    });
    let mut next = successor(&world, &[moved]);
    assert_eq!(next.health("a").passive, Unhealthy);
    assert_eq!(next.health("b").passive, Unknown, "another server");
    assert_eq!(next.available("app"), ["b", "d"]);
    // A check that is off has no value.
    let mut unchecked = successor(&world, &[cluster("app", &["a", "b"])]);
    assert_eq!(unchecked.health("a").passive, Unknown);
}

#[test]
fn an_unknown_version_is_not_restored() {
    let clusters = [passive("app", &["a"], &[max_fails(1, 60.0)])];
    let mut world = World::of(&clusters);
    world.set("a", CheckKind::Passive, Unhealthy, None);
    let saved = world.core.save();
    assert_eq!(saved.version, VERSION);
    let mut next = restored(&world, &clusters, SavedHealth { version: VERSION + 1, ..saved });
    assert_eq!(next.health("a").passive, Unknown);
}
