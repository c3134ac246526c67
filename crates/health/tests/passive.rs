//! Our own passive policies: what they count, what trips them, and what brings a destination back.

use model::cluster::Cluster;
use model::event::Cause;
use model::health::CheckKind;
use model::outcome::{FailureKind, OutcomeClass};
use model::passive::MaxFails;
use model::view::NodeStatus;

use crate::world::*;

fn rate() -> Cluster {
    passive("c", &["a", "b"], &[failure_rate(0.3, 60.0, 10)])
}

#[test]
fn it_trips_when_the_limit_is_reached_and_the_minimum_is_there() {
    for (ok, failed, expected) in
        [(6, 3, Unknown), (7, 3, Unhealthy), (8, 3, Unknown), (0, 9, Unknown), (0, 10, Unhealthy)]
    {
        let mut world = World::of(&[rate()]);
        world.run_until(1.0);
        world.sums("a", ok);
        for _ in 0..failed {
            world.outcome("a", refused());
        }
        let health = world.health("a").passive;
        assert_eq!(if health == Healthy { Unknown } else { health }, expected, "{ok} good, {failed} failed");
    }
}

#[test]
fn a_success_makes_unknown_healthy_and_never_ejects() {
    let mut world = World::of(&[rate()]);
    world.outcome("a", refused());
    world.outcome("a", refused());
    world.outcome("a", refused());
    world.outcome("a", refused());
    world.sums("a", 6);
    assert_eq!(world.health("a").passive, Healthy, "4 of 10 failed, but the last one was good");
    world.outcome("a", refused());
    assert_eq!(world.health("a").passive, Unhealthy);
}

#[test]
fn statuses_and_what_is_neutral_do_not_count_as_failed_transports() {
    let mut world = World::of(&[rate()]);
    for _ in 0..50 {
        world.outcome("a", status(500, true));
        world.outcome("a", status(503, true));
        world.outcome("a", failed(OutcomeClass::Neutral, FailureKind::ClientGone));
        world.outcome("a", failed(OutcomeClass::Neutral, FailureKind::Reset));
    }
    assert_ne!(world.health("a").passive, Unhealthy);
    let total = 100;
    // 100 answers with a status are in the window: 43 failed transports reach 0.3 of 143.
    for n in 1..=43 {
        world.outcome("a", failed(OutcomeClass::Cut, FailureKind::BodyCut));
        assert_eq!(world.health("a").passive == Unhealthy, n == 43, "{n} of {}", total + n);
    }
    let evidence = world.transitions().last().unwrap().evidence.clone();
    assert_eq!((evidence.failed, evidence.total, evidence.limit), (Some(43), Some(143), Some(0.3)));
    assert_eq!((evidence.window, evidence.reactivation), (Some(secs(60.0)), Some(secs(60.0))));
    assert_eq!(evidence.last.len(), 5);
    assert_eq!(evidence.last[4].failure, Some(FailureKind::BodyCut));
}

#[test]
fn failures_leave_the_window_by_their_age() {
    let mut world = World::of(&[rate()]);
    world.run_until(1.0);
    for _ in 0..9 {
        world.outcome("a", refused());
    }
    world.run_until(62.0);
    world.outcome("a", refused());
    assert_eq!(world.health("a").passive, Unknown);
}

#[test]
fn reactivation_comes_exactly_after_the_period_with_an_empty_history() {
    for (period, expected) in [(None, 60.0), (Some(7.0), 7.0), (Some(90.0), 90.0)] {
        let mut cluster = rate();
        cluster.health_check.passive.as_mut().unwrap().reactivation_period = period.map(secs);
        let mut world = World::of(&[cluster]);
        world.run_until(2.0);
        for _ in 0..10 {
            world.outcome("a", refused());
        }
        world.run_until(2.0 + expected - 0.000_001);
        assert_eq!(world.health("a").passive, Unhealthy);
        world.run_until(2.0 + expected);
        assert_eq!((world.health("a").passive, world.available("c").len()), (Unknown, 2));
        assert_eq!(world.transitions().last().unwrap().cause, Cause::Reactivation);
        assert_eq!(world.destination("a").status, NodeStatus::MostlyHealthy, "no success since");
        for _ in 0..9 {
            world.outcome("a", refused());
        }
        assert_eq!(world.health("a").passive, Unknown, "what ejected it before does not count again");
        world.sums("a", 1);
        assert_eq!((world.health("a").passive, world.destination("a").status), (Healthy, NodeStatus::Healthy));
    }
}

#[test]
fn late_answers_neither_end_an_ejection_nor_prolong_it() {
    let mut world = World::of(&[rate()]);
    world.run_until(5.0);
    for _ in 0..10 {
        world.outcome("a", refused());
    }
    for late in 1..=40_u32 {
        world.run_until(5.0 + f64::from(late));
        world.outcome_picked_at("a", at(4.9), refused());
        world.outcome_picked_at("a", at(4.9), ok());
        world.sums("a", 100);
        assert_eq!(world.destination("a").reactivation_at, Some(at(65.0)));
        assert_eq!(world.health("a").passive, Unhealthy);
    }
    world.run_until(65.0);
    for _ in 0..20 {
        world.outcome_picked_at("a", at(4.9), refused());
    }
    assert_eq!(world.health("a").passive, Unknown, "nor do they eject once more");
}

#[test]
fn picks_of_the_moment_before_every_worker_knew_say_nothing_new() {
    let mut world = World::of(&[passive("c", &["a", "b"], &[max_fails(1, 10.0)])]);
    world.outcome("a", refused());
    for (time, picked_at, end) in [(0.5, 0.009_999, 10.0), (0.6, 0.010, 10.6)] {
        world.run_until(time);
        world.outcome_picked_at("a", at(picked_at), refused());
        assert_eq!(world.destination("a").reactivation_at, Some(at(end)));
    }
}

#[test]
fn a_newer_ejection_replaces_the_pending_reactivation() {
    let mut world = World::of(&[rate()]);
    world.set("a", CheckKind::Passive, Unhealthy, Some(secs(60.0)));
    world.run_until(50.0);
    // Panic or another policy sends traffic there all the same, and it fails afresh.
    for _ in 0..10 {
        world.outcome("a", refused());
    }
    assert_eq!(world.destination("a").reactivation_at, Some(at(110.0)));
    let n = world.transitions().len();
    world.run_until(109.0);
    assert_eq!((world.health("a").passive, world.transitions().len()), (Unhealthy, n));
}

#[test]
fn max_fails_is_a_true_sliding_count() {
    let mut world = World::of(&[passive("c", &["a", "b"], &[max_fails(3, 4.0)])]);
    for n in 0..20_u32 {
        world.run_until(f64::from(n) * 3.0);
        world.outcome("a", status(500, false));
        world.sums("a", 10);
        assert_ne!(world.health("a").passive, Unhealthy, "no 4 s ever hold three failures");
    }
    world.run_until(60.1);
    world.outcome("a", status(502, true));
    world.outcome("a", refused());
    assert_eq!(world.health("a").passive, Unhealthy);
    assert_eq!(
        world.destination("a").reactivation_at,
        Some(at(64.1)),
        "fail_timeout, since the cluster sets no period"
    );
}

#[test]
fn a_period_that_is_set_is_how_long_max_fails_ejects_too() {
    let of = |period: f64| {
        with(passive("c", &["a", "b"], &[max_fails(1, 4.0)]), |cluster| {
            cluster.health_check.passive.as_mut().unwrap().reactivation_period = Some(secs(period));
        })
    };
    let mut world = World::of(&[of(30.0)]);
    world.outcome("a", refused());
    assert_eq!(world.destination("a").reactivation_at, Some(at(30.0)));
    world.configure(&[of(20.0)]);
    world.outcome("b", refused());
    assert_eq!(world.destination("b").reactivation_at, Some(at(20.0)), "as the reload says");
}

#[test]
fn nothing_revives_a_dead_destination_falsely() {
    let mut world = World::of(&[passive("c", &["a", "b"], &[max_fails(2, 4.0)])]);
    world.outcome("a", status(500, true));
    world.outcome("a", status(500, true));
    world.run_until(4.0);
    assert_eq!(world.health("a").passive, Unknown);
    // A 500 to a POST cannot be repeated and is charged all the same; clients that gave up clear nothing.
    world.outcome("a", status(500, false));
    world.outcome("a", failed(OutcomeClass::Neutral, FailureKind::ClientGone));
    assert_eq!(world.health("a").passive, Unknown);
    world.outcome("a", status(500, false));
    assert_eq!(world.health("a").passive, Unhealthy);
}

#[test]
fn max_fails_of_a_destination_stands_in_place_of_the_clusters() {
    let cluster = with(passive("c", &["a", "b", "d"], &[max_fails(3, 10.0)]), |cluster| {
        cluster.destinations[1].max_fails = Some(MaxFails { max_fails: 1, fail_timeout: secs(5.0) });
        cluster.destinations[2].max_fails = Some(MaxFails { max_fails: 0, fail_timeout: secs(5.0) });
    });
    let mut world = World::of(&[cluster]);
    for id in ["a", "b", "d"] {
        world.outcome(id, refused());
    }
    assert_eq!(world.available("c"), ["a", "d"]);
    assert_eq!(world.destination("b").reactivation_at, Some(at(5.0)));
    for _ in 0..50 {
        world.outcome("d", refused());
    }
    assert_eq!(world.health("d").passive, Unknown, "0 turns the rule off");
}

#[test]
fn several_policies_run_side_by_side() {
    let cluster = passive("c", &["a", "b"], &[failure_rate(0.3, 60.0, 10), max_fails(3, 10.0)]);
    let mut world = World::of(&[cluster]);
    world.sums("a", 1000);
    for _ in 0..3 {
        world.outcome("a", refused());
    }
    assert_eq!(world.transitions().last().unwrap().cause, Cause::Traffic { policy: "MaxFails".to_owned() });
    assert_eq!(world.destination("a").reactivation_at, Some(at(10.0)));
}

/// One destination and one reset: a policy that asks for a share never ejects it, and where one does, panic uses it.
#[test]
fn one_error_does_not_black_out_a_single_destination() {
    let rate = passive("c", &["a"], &[failure_rate(0.3, 60.0, 10)]);
    let mut world = World::of(&[rate]);
    world.sums("a", 100);
    world.outcome("a", failed(OutcomeClass::AppFail, FailureKind::Reset));
    assert_eq!(world.available("c"), ["a"]);
    let count = with(passive("c", &["a", "down"], &[max_fails(1, 10.0)]), |cluster| {
        cluster.health_check.available_destinations_policy = model::available::AvailablePolicy::HealthyOrPanic;
        cluster.destinations[1].weight = 0;
    });
    let mut world = World::of(&[count]);
    world.outcome("a", failed(OutcomeClass::AppFail, FailureKind::Reset));
    assert_eq!((world.health("a").passive, world.available("c")), (Unhealthy, vec!["a".to_owned()]));
    assert!(world.cluster("c").is_panic);
}

#[test]
fn changed_options_judge_the_kept_history() {
    let mut world = World::of(&[rate()]);
    world.sums("a", 10);
    for _ in 0..4 {
        world.outcome("a", refused());
    }
    assert_eq!(world.health("a").passive, Healthy, "4 of 14");
    world.configure(&[passive("c", &["a", "b"], &[failure_rate(0.9, 60.0, 10)])]);
    for _ in 0..20 {
        world.outcome("a", refused());
    }
    assert_eq!(world.health("a").passive, Healthy, "24 of 34");
    world.configure(&[passive("c", &["a", "b"], &[failure_rate(0.5, 60.0, 10)])]);
    assert_eq!(world.health("a").passive, Healthy);
    world.outcome("a", refused());
    assert_eq!(world.health("a").passive, Unhealthy);
}
