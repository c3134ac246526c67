//! When probes run: cadence, early probes, first probes, what is held out until its first passed probe.

use model::active::{ActivePolicy, ProbeStart};
use model::available::Because;
use model::cluster::Cluster;
use model::event::EventKind;
use model::health::CheckKind;
use model::outcome::{FailureKind, OutcomeClass};
use model::view::NodeStatus;

use crate::world::*;

fn gaps(times: &[f64]) -> Vec<f64> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// One refused, one that hangs, one without a name, one good: each has its own reason, and the good one's cadence stays
/// within 10 % of the interval.
#[test]
fn every_bad_destination_is_found_with_its_own_reason_and_the_good_one_is_not_delayed() {
    let mut world = World::new();
    world.answers.insert("refused".to_owned(), Answer::fails(FailureKind::Refused));
    world.answers.insert("hangs".to_owned(), Answer::hangs());
    world.answers.insert("nameless".to_owned(), Answer::fails(FailureKind::Dns));
    world.configure(&[active("c", &["refused", "hangs", "nameless", "good"], probed())]);
    world.run_until(60.0);
    for (id, reason) in
        [("refused", FailureKind::Refused), ("hangs", FailureKind::HeadTimeout), ("nameless", FailureKind::Dns)]
    {
        assert_eq!(world.health(id).active, Unhealthy, "{id}");
        assert_eq!(world.destination(id).probe_failure, Some(reason));
    }
    assert_eq!(world.health("good").active, Healthy);
    assert!(gaps(&world.probe_times("good")).iter().all(|gap| (gap / 5.0 - 1.0).abs() <= 0.1));
}

#[test]
fn a_probe_slower_than_the_interval_delays_only_the_next_one_of_its_destination() {
    let check = with(probed(), |check| {
        check.interval = secs(1.0);
        check.unhealthy_interval = secs(1.0);
        check.timeout = secs(5.0);
        check.policy = ActivePolicy::ConsecutiveFailures { threshold: 3 };
    });
    let mut world = World::new();
    world.answers.insert("a".to_owned(), Answer::hangs());
    world.configure(&[active("c", &["a"], check.clone())]);
    world.run_until(14.99);
    assert_eq!(world.health("a").active, Unknown);
    world.run_until(15.0);
    assert_eq!(world.health("a").active, Unhealthy);
    assert_eq!(world.probe_times("a"), [0.0, 5.0, 10.0, 15.0], "one at a time, the next when it ends");

    let mut world = World::new();
    world.answers.insert("a".to_owned(), Answer::status(200).after(2.5));
    world.configure(&[active("c", &["a"], check)]);
    world.run_until(30.0);
    assert_eq!((world.health("a").active, world.probe_times("a").len()), (Healthy, 13));
}

#[test]
fn a_first_failure_is_confirmed_early_and_early_probes_are_a_second_apart() {
    let check = with(probed(), |check| check.policy = ActivePolicy::ConsecutiveFailures { threshold: 4 });
    for (answer, times) in [
        (Answer::fails(FailureKind::Refused).after(0.0), [0.0, 0.25, 1.25, 2.25]),
        (Answer::status(500).after(0.0), [0.0, 1.0, 2.0, 3.0]),
    ] {
        let mut world = World::new();
        world.answers.insert("a".to_owned(), answer);
        world.configure(&[active("c", &["a"], check.clone())]);
        world.run_until(3.5);
        assert_eq!(world.probe_times("a"), times);
        assert_eq!(world.health("a").active, Unhealthy);
    }
}

#[test]
fn a_first_pass_below_the_healthy_threshold_is_confirmed_early() {
    let check = with(probed(), |check| {
        check.request.healthy_threshold = 3;
        check.policy = ActivePolicy::ConsecutiveFailures { threshold: 1 };
        check.unhealthy_interval = secs(30.0);
    });
    let mut world = World::manual(&[active("c", &["a"], check)]);
    world.judge("a", Answer::status(500));
    let times = |world: &World| world.probe_times("a");
    assert_eq!(world.judge("a", Answer::status(200)), Unhealthy);
    assert!((28.5..=31.5).contains(&times(&world)[1]), "the interval while unhealthy: {:?}", times(&world));
    assert_eq!(world.destination("a").status, NodeStatus::MostlyUnhealthy);
    assert_eq!(world.judge("a", Answer::status(200)), Unhealthy);
    assert_eq!(world.judge("a", Answer::status(200)), Healthy);
    let gaps = gaps(&times(&world));
    assert_eq!((gaps[1], gaps[2]), (1.0, 1.0));
}

#[test]
fn a_refused_live_connection_brings_the_next_probe_forward() {
    let reset = failed(OutcomeClass::AppFail, FailureKind::Reset);
    for (outcome, expected) in [(refused(), 1.25), (reset, 2.0)] {
        let mut world = World::of(&[active("c", &["a", "b"], probed())]);
        world.run_until(1.0);
        assert_eq!(world.core.needs(&"c".into()), health::Needs::Failures, "although nothing judges traffic");
        world.outcome("a", outcome);
        world.outcome("a", outcome);
        let before = world.destination("b").next_probe_at;
        world.run_until(1.9);
        world.outcome("a", outcome);
        world.run_until(2.0);
        assert!(world.probe_times("a").contains(&expected), "{:?}", world.probe_times("a"));
        assert!(world.probe_times("a").len() <= 2, "at most one early probe a second: {:?}", world.probe_times("a"));
        assert_eq!(world.destination("b").next_probe_at, before);
    }
}

#[test]
fn outcomes_that_do_not_doubt_the_connection_move_no_probe() {
    for outcome in [ok(), status(500, true), failed(OutcomeClass::Neutral, FailureKind::Reset)] {
        let mut world = World::of(&[active("c", &["a"], probed())]);
        world.run_until(1.0);
        let before = world.destination("a").next_probe_at;
        world.outcome("a", outcome);
        assert_eq!(world.destination("a").next_probe_at, before);
    }
}

#[test]
fn first_probes_are_spread_over_two_milliseconds_each() {
    let ids: Vec<String> = (0..1000).map(|n| format!("d{n}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let mut world = World::of(&[active("c", &ids, probed())]);
    world.run_until(4.0);
    let mut starts: Vec<f64> = world.probes.iter().map(|order| order.at.as_secs_f64()).collect();
    starts.sort_by(f64::total_cmp);
    assert_eq!(starts.len(), 1000);
    assert!((1.99..=2.0).contains(starts.last().unwrap()));
    assert!(gaps(&starts).iter().all(|gap| *gap < 0.0021));
}

fn probe_first(destinations: &[&str]) -> Cluster {
    active("c", destinations, with(probed(), |check| check.start = ProbeStart::ProbeFirst))
}

#[test]
fn nothing_is_held_out_at_process_start() {
    let mut world = World::manual(&[probe_first(&["a", "b"])]);
    assert_eq!(world.available("c"), ["a", "b"]);
}

#[test]
fn a_destination_added_beside_a_healthy_one_waits_for_its_first_passed_probe() {
    let mut world = World::of(&[probe_first(&["a"])]);
    world.run_until(1.0);
    world.answers.insert("b".to_owned(), Answer::status(200).after(0.5));
    world.configure(&[probe_first(&["a", "b"])]);
    assert_eq!((world.available("c"), world.destination("b").because), (vec!["a".to_owned()], Because::ProbeFirst));
    assert_eq!(world.health("b").active, Unknown, "its values stay Unknown");
    world.run_until(1.5);
    assert_eq!(world.available("c"), ["a", "b"]);
    let reasons: Vec<_> = world
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Availability { available, because, .. } => Some((*available, *because)),
            _ => None,
        })
        .collect();
    assert_eq!(reasons, [(false, Because::ProbeFirst), (true, Because::Health)]);
}

#[test]
fn it_waits_five_seconds_at_most_and_only_while_another_is_healthy() {
    let mut world = World::of(&[probe_first(&["a"])]);
    world.run_until(1.0);
    world.answers.insert("b".to_owned(), Answer::hangs());
    let slow = with(probe_first(&["a", "b"]), |cluster| {
        cluster.health_check.active.as_mut().unwrap().timeout = secs(60.0);
    });
    world.configure(&[slow]);
    world.run_until(5.99);
    assert_eq!(world.available("c"), ["a"]);
    world.set("a", CheckKind::Active, Unhealthy, None);
    assert_eq!(world.available("c"), ["b"], "nobody is held out when nobody else is good");
    world.set("a", CheckKind::Active, Healthy, None);
    world.run_until(6.0);
    assert_eq!(world.available("c"), ["a", "b"]);
}

#[test]
fn a_reactivated_destination_is_never_held_out() {
    let cluster = with(probe_first(&["a", "b"]), |cluster| {
        cluster.health_check.passive = passive("c", &[], &[max_fails(1, 10.0)]).health_check.passive;
    });
    let mut world = World::of(&[cluster]);
    world.run_until(1.0);
    world.outcome("b", refused());
    assert_eq!(world.available("c"), ["a"]);
    world.run_until(11.0);
    assert_eq!(world.available("c"), ["a", "b"]);
}

/// Wall clocks do not exist here; a `now` that goes back is the one before, and one far ahead makes no burst.
#[test]
fn a_step_of_time_makes_no_burst_and_ends_no_ejection_early() {
    let cluster = with(active("c", &["a", "b"], probed()), |cluster| {
        cluster.health_check.passive = passive("c", &[], &[max_fails(1, 60.0)]).health_check.passive;
    });
    let mut world = World::of(&[cluster]);
    world.run_until(100.0);
    world.outcome("a", refused());
    let timer = world.core.poll_timeout();
    world.core.handle(at(1.0), health::Input::TimerDue);
    assert_eq!(world.core.poll_timeout(), timer);
    assert_eq!(world.health("a").passive, Unhealthy);
    let before = world.probes.len();
    world.now = at(130.0);
    world.input(health::Input::TimerDue);
    assert_eq!(world.probes.len() - before, 2, "one probe each after half a minute of sleep");
    assert_eq!(world.health("a").passive, Unhealthy);
}
