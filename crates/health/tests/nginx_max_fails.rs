//! MaxFails under `compat: nginx`, against what nginx 1.22 was measured to do.

use model::cluster::{Cluster, Compat};
use model::outcome::{FailureKind, Outcome, OutcomeClass};

use crate::world::*;

fn nginx(fails: u32, fail_timeout: f64, destinations: &[&str]) -> Cluster {
    with(passive("c", destinations, &[max_fails(fails, fail_timeout)]), |cluster| cluster.compat = Compat::Nginx)
}

fn is_in(world: &mut World) -> bool {
    world.destination("b").is_available
}

#[test]
fn it_is_out_at_max_fails_and_back_a_second_after_fail_timeout() {
    let mut world = World::of(&[nginx(5, 6.0, &["a", "b"])]);
    for time in [0.02, 0.07, 0.11, 0.15, 0.19] {
        assert!(is_in(&mut world));
        world.run_until(time);
        world.outcome("b", refused());
    }
    // A dead server gets one request each fail_timeout + 1 s: the clock has whole seconds, the test is strict.
    for back in [7.0, 14.0, 21.0] {
        world.run_until(back - 0.001);
        assert!(!is_in(&mut world), "{back}");
        world.run_until(back);
        assert!(is_in(&mut world) && world.destination("b").is_gated, "{back}: one request at a time");
        world.outcome("b", refused());
        assert!(!is_in(&mut world));
    }
}

#[test]
fn the_first_pass_after_fail_timeout_opens_the_gate() {
    let mut world = World::of(&[nginx(1, 4.0, &["a", "b"])]);
    world.outcome("b", refused());
    world.run_until(5.0);
    assert!(world.destination("b").is_gated);
    world.outcome("b", ok());
    assert_eq!((world.destination("b").is_gated, world.health("b").passive), (false, Healthy));
}

#[test]
fn fail_timeout_bounds_the_gap_between_failures_not_a_window() {
    let mut world = World::of(&[nginx(3, 4.0, &["a", "b"])]);
    for time in [0.05, 3.05, 6.04] {
        world.run_until(time);
        for _ in 0..20 {
            world.outcome("b", ok());
        }
        assert!(is_in(&mut world), "{time}");
        world.outcome("b", refused());
    }
    assert!(!is_in(&mut world), "no 4 s ever held three failures, and yet");
}

#[test]
fn one_percent_of_errors_ejects_since_successes_lower_nothing() {
    let mut world = World::of(&[nginx(3, 10.0, &["a", "b"])]);
    for hit in 1..=300_u32 {
        world.run_until(f64::from(hit) * 0.003);
        assert!(is_in(&mut world), "hit {hit}");
        world.outcome("b", if hit % 100 == 0 { status(500, true) } else { ok() });
    }
    assert!(!is_in(&mut world));
}

#[test]
fn a_quiet_fail_timeout_forgives() {
    let mut world = World::of(&[nginx(3, 4.0, &["a", "b"])]);
    for time in [0.0, 1.0] {
        world.run_until(time);
        world.outcome("b", refused());
    }
    world.run_until(6.0);
    world.outcome("b", ok());
    for _ in 0..2 {
        assert!(is_in(&mut world));
        world.outcome("b", refused());
    }
    assert!(is_in(&mut world), "two since it was forgiven");
    world.outcome("b", refused());
    assert!(!is_in(&mut world));
}

#[test]
fn what_counts_and_what_passes() {
    let counts = |outcome: Outcome| {
        let mut world = World::of(&[nginx(1, 10.0, &["a", "b"])]);
        world.outcome("b", outcome);
        !is_in(&mut world)
    };
    for failure in [
        FailureKind::Refused,
        FailureKind::ConnectTimeout,
        FailureKind::Tls,
        FailureKind::Reset,
        FailureKind::Closed,
        FailureKind::HeadTimeout,
        FailureKind::Protocol,
        FailureKind::HeadTooLarge,
    ] {
        let unlisted = Outcome { retryable: false, ..failed(OutcomeClass::AppFail, failure) };
        assert!(counts(unlisted), "{failure:?} counts whatever is listed");
    }
    for listed in [429, 500, 502, 503, 504] {
        assert!(counts(status(listed, true)), "{listed}");
        assert!(!counts(status(listed, false)), "{listed} that was passed on to the client");
    }
    for unlisted in [403, 404, 501] {
        assert!(!counts(status(unlisted, true)), "{unlisted}");
    }
    let merged = Outcome { class: OutcomeClass::ConnFail, status: None, ..status(500, true) };
    assert!(counts(merged), "one of a storm, of which only the class is left");
    assert!(!counts(failed(OutcomeClass::Cut, FailureKind::BodyCut)), "after the head nothing counts");
    assert!(!counts(failed(OutcomeClass::Neutral, FailureKind::ClientGone)));
    assert!(!counts(Outcome { client_gone: true, ..failed(OutcomeClass::Neutral, FailureKind::HeadTimeout) }));
}

#[test]
fn the_only_destination_is_never_ejected() {
    let mut world = World::of(&[nginx(1, 10.0, &["b"])]);
    for _ in 0..5 {
        world.outcome("b", refused());
    }
    assert!(is_in(&mut world));
    world.configure(&[nginx(1, 10.0, &["b", "down"])]);
    world.outcome("b", refused());
    assert!(!is_in(&mut world), "a second server line ends the exemption");
}

#[test]
fn a_client_that_gives_up_revives_a_hanging_server() {
    let mut world = World::of(&[nginx(1, 4.0, &["a", "b"])]);
    world.outcome("b", failed(OutcomeClass::Timeout, FailureKind::HeadTimeout));
    world.run_until(5.3);
    world.outcome_picked_at("b", at(5.0), failed(OutcomeClass::Neutral, FailureKind::ClientGone));
    assert_eq!((world.health("b").passive, world.destination("b").is_gated), (Healthy, false));
}

#[test]
fn a_late_pass_of_an_earlier_pick_changes_nothing() {
    let mut world = World::of(&[nginx(1, 4.0, &["a", "b"])]);
    world.run_until(1.0);
    world.outcome("b", refused());
    world.run_until(3.0);
    world.outcome_picked_at("b", at(0.5), ok());
    assert!(!is_in(&mut world));
}
