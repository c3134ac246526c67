//! What keeps a destination available though it is judged unhealthy, and lets ejections of a moment come one by one.

use model::available::{AvailablePolicy, Because};
use model::cluster::Cluster;
use model::guards::{AnsweringDestination, Guards, LastDestination};
use model::passive::{ConsecutiveErrors, PassivePolicy};
use model::ratio::Ratio;
use model::readmission::Readmission;

use crate::doubt::{refusals, reset};
use crate::world::*;

fn guarded(policy: PassivePolicy, guards: Guards, n: usize) -> Cluster {
    let names = ["a", "b", "c", "d"];
    with(passive("c", &names[..n], &[policy]), |cluster| {
        cluster.health_check.guards = guards;
        cluster.health_check.available_destinations_policy = AvailablePolicy::HealthyOrPanic;
    })
}

#[test]
fn guards_keep_the_later_ones_available_and_leave_the_values_alone() {
    let five = PassivePolicy::ConsecutiveErrors(ConsecutiveErrors::default());
    let guards = Guards {
        max_ejected: Ratio::new(0.5),
        spacing: None,
        last: LastDestination::Stays,
        answering: AnsweringDestination::Leaves,
    };
    let mut world = World::of(&[guarded(five, guards, 4)]);
    for id in ["a", "b", "c", "d"] {
        (0..5).for_each(|_| world.outcome(id, reset()));
        world.run_until(world.now.as_secs_f64() + 1.0);
    }
    assert!(["a", "b", "c", "d"].iter().all(|id| world.health(id).passive == Unhealthy));
    assert_eq!(world.available("c"), ["c", "d"]);
    assert_eq!(world.destination("d").because, Because::Cap);
    assert_eq!(world.destination("a").because, Because::Unhealthy);
}

#[test]
fn a_server_that_refuses_connections_is_not_kept_by_the_cap_but_the_last_one_is() {
    let policy = refusals();
    let mut world = World::of(&[guarded(policy, Guards::native(), 3)]);
    for id in ["a", "b", "c"] {
        (0..3).for_each(|_| world.outcome(id, refused()));
    }
    assert_eq!(world.available("c"), ["c"]);
    assert_eq!(world.destination("c").because, Because::Guard);
}

#[test]
fn ejections_of_a_moment_leave_one_after_the_other() {
    let five = PassivePolicy::ConsecutiveErrors(ConsecutiveErrors::default());
    let guards = Guards {
        max_ejected: None,
        spacing: Some(secs(8.0)),
        last: LastDestination::Leaves,
        answering: AnsweringDestination::Leaves,
    };
    let mut world = World::of(&[guarded(five, guards, 4)]);
    for id in ["a", "b"] {
        (0..5).for_each(|_| world.outcome(id, reset()));
    }
    assert_eq!(world.available("c"), ["b", "c", "d"]);
    assert_eq!(world.destination("b").because, Because::Cap);
    world.run_until(1.999);
    assert_eq!(world.available("c"), ["b", "c", "d"]);
    world.run_until(2.0);
    assert_eq!(world.available("c"), ["c", "d"]);
}

#[test]
fn an_ejection_is_taken_back_when_probes_take_more_out_than_may_be() {
    let five = PassivePolicy::ConsecutiveErrors(ConsecutiveErrors::default());
    let guards = Guards {
        max_ejected: Ratio::new(0.5),
        spacing: None,
        last: LastDestination::Stays,
        answering: AnsweringDestination::Leaves,
    };
    let cluster = with(guarded(five, guards, 4), |cluster| cluster.health_check.active = Some(probed()));
    let mut world = World::of(&[cluster]);
    world.run_until(10.0);
    (0..5).for_each(|_| world.outcome("a", reset()));
    assert_eq!(world.available("c"), ["b", "c", "d"]);
    // One that was on its way.
    world.outcome("a", ok());
    world.answers.insert("b".to_owned(), Answer::status(503));
    world.run_until(20.0);
    assert_eq!(world.available("c"), ["c", "d"]);
    world.answers.insert("c".to_owned(), Answer::status(503));
    world.run_until(30.0);
    assert_eq!(world.available("c"), ["a", "d"]);
    assert_eq!((world.destination("a").because, world.health("a").passive), (Because::Cap, Unhealthy));
    world.answers.insert("c".to_owned(), Answer::status(200));
    world.run_until(40.0);
    assert_eq!(world.available("c"), ["c", "d"]);
}

#[test]
fn one_that_refuses_connections_is_not_taken_back_for_those_that_probes_take_out() {
    let cluster = with(guarded(refusals(), Guards::native(), 4), |cluster| {
        cluster.health_check.active = Some(probed());
    });
    let mut world = World::of(&[cluster]);
    world.run_until(10.0);
    (0..3).for_each(|_| world.outcome("a", refused()));
    for id in ["b", "c"] {
        world.answers.insert(id.to_owned(), Answer::status(503));
    }
    world.run_until(20.0);
    assert_eq!(world.available("c"), ["d"]);
}

#[test]
fn one_that_fails_all_it_gets_leaves_whoever_probes_have_taken_out() {
    let guards = Guards { last: LastDestination::Leaves, ..Guards::native() };
    // Three failures after a good answer are not yet all that it gets.
    for (threshold, available) in [(5, vec!["d"]), (3, vec!["a", "d"])] {
        let errors = PassivePolicy::ConsecutiveErrors(ConsecutiveErrors { threshold, ..ConsecutiveErrors::default() });
        let cluster = with(guarded(errors, guards, 4), |cluster| cluster.health_check.active = Some(probed()));
        let mut world = World::of(&[cluster]);
        for id in ["b", "c"] {
            world.answers.insert(id.to_owned(), Answer::status(503));
        }
        world.run_until(20.0);
        world.outcome("a", ok());
        (0..threshold).for_each(|_| world.outcome("a", reset()));
        world.run_until(21.0);
        assert_eq!(world.health("a").passive, Unhealthy);
        assert_eq!(world.available("c"), available);
    }
}

#[test]
fn one_that_failed_all_it_got_before_its_way_back_and_its_trial_too_is_not_kept_for_those_that_probes_have_taken_out() {
    let five = PassivePolicy::ConsecutiveErrors(ConsecutiveErrors::default());
    let cluster = with(guarded(five, Guards::native(), 4), |cluster| {
        cluster.health_check.active = Some(probed());
        cluster.health_check.passive.as_mut().unwrap().readmission = Some(Readmission::default());
    });
    let mut world = World::of(&[cluster]);
    for id in ["b", "c"] {
        world.answers.insert(id.to_owned(), Answer::status(503));
    }
    world.run_until(20.0);
    (0..5).for_each(|_| world.outcome("a", reset()));
    assert_eq!(world.available("c"), ["d"]);
    for _ in 0..3 {
        while world.health("a").passive == Unhealthy {
            world.run_until(world.now.as_secs_f64() + 0.1);
            assert!(world.health("a").passive != Unhealthy || world.available("c") == ["d"], "{}", world.now);
        }
        world.outcome("a", reset());
        assert_eq!((world.health("a").passive, world.available("c")), (Unhealthy, vec!["d".to_owned()]));
    }
    // A good answer on the way back: it bears some.
    world.run_until(world.now.as_secs_f64() + 20.0);
    assert_eq!(world.health("a").passive, Unknown);
    world.outcome("a", ok());
    world.outcome("a", reset());
    assert_eq!((world.health("a").passive, world.available("c").len()), (Unhealthy, 2));
}
