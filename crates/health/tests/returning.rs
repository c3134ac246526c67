//! Ways back after an ejection: trials, ramps, probes, quiet time.

use model::available::AvailablePolicy;
use model::guards::Guards;
use model::outcome::{FailureKind, OutcomeClass};
use model::passive::{Burst, Comparison, PassivePolicy};
use model::ratio::Ratio;

use crate::doubt::{burst, refusals, reset, returning, share, traffic};
use crate::world::*;

#[test]
fn a_destination_comes_back_by_three_trials_and_a_ramp() {
    let policy = refusals();
    let mut world = World::of(&[returning("c", &["a", "b"], &[policy])]);
    (0..3).for_each(|_| world.outcome("a", refused()));
    assert_eq!(world.destination("a").reactivation_at, Some(at(2.0)));
    world.run_until(2.0);
    assert!(world.destination("a").is_gated && world.available("c") == ["a", "b"]);
    world.outcome("a", refused());
    assert_eq!(world.health("a").passive, Unhealthy);
    assert_eq!(world.destination("a").reactivation_at, Some(at(6.0)), "twice as long after a failed trial");
    world.run_until(6.0);
    (0..3).for_each(|_| world.outcome("a", ok()));
    assert!(!world.destination("a").is_gated);
    assert_eq!(share(&mut world, "a"), 0.1);
    world.run_until(11.0);
    assert_eq!(share(&mut world, "a"), 0.55);
    world.run_until(16.0);
    assert_eq!((share(&mut world, "a"), world.health("a").passive), (1.0, Healthy));
}

#[test]
fn one_that_is_new_among_others_takes_its_weight_step_by_step_and_the_first_ones_at_once() {
    let mut world = World::of(&[returning("c", &["a", "b"], &[refusals()])]);
    assert_eq!((share(&mut world, "a"), share(&mut world, "b")), (1.0, 1.0), "a start has nobody to spare");
    world.run_until(60.0);
    world.configure(&[returning("c", &["a", "b", "d"], &[refusals()])]);
    assert_eq!((share(&mut world, "a"), share(&mut world, "d")), (1.0, 0.1));
    assert!(!world.destination("d").is_gated, "nothing speaks against it");
    world.run_until(65.0);
    assert_eq!(share(&mut world, "d"), 0.55);
    world.run_until(70.0);
    assert_eq!(share(&mut world, "d"), 1.0);
    // Where all are new there is nobody to carry the rest.
    world.configure(&[returning("c", &["e", "f"], &[refusals()])]);
    assert_eq!((share(&mut world, "e"), share(&mut world, "f")), (1.0, 1.0));
}

#[test]
fn answers_to_requests_from_before_an_ejection_are_no_trials() {
    let policy = refusals();
    let mut world = World::of(&[returning("c", &["a", "b"], &[policy])]);
    (0..3).for_each(|_| world.outcome("a", refused()));
    world.run_until(2.0);
    for late in 0..20 {
        world.sums("a", 1);
        world.outcome_picked_at("a", at(0.0), ok());
        world.run_until(2.0 + f64::from(late) / 10.0);
        assert!(world.destination("a").is_gated && world.health("a").passive == Unknown, "{late}");
    }
    (0..3).for_each(|_| world.outcome("a", ok()));
    assert!(!world.destination("a").is_gated && world.health("a").passive == Healthy);
}

#[test]
fn a_withdrawn_site_recovers_without_one_request() {
    let policy = refusals();
    let cluster = with(returning("c", &["a", "b"], &[policy]), |cluster| {
        cluster.health_check.active = Some(probed());
    });
    let mut world = World::of(&[cluster]);
    for id in ["a", "b"] {
        world.answers.insert(id.to_owned(), Answer::fails(FailureKind::Refused));
    }
    world.run_until(20.0);
    for id in ["a", "b"] {
        (0..3).for_each(|_| world.outcome(id, refused()));
    }
    assert!(world.available("c").is_empty());
    world.answers.clear();
    world.run_until(60.0);
    for id in ["a", "b"] {
        let one = world.destination(id);
        assert!(one.is_available && !one.is_gated && one.share == Ratio::ONE, "{id}: {one:?}");
    }
}

#[test]
fn a_cluster_with_a_request_a_minute_is_whole_again_within_its_quiet_time_and_its_ramp() {
    let policy = refusals();
    let mut world = World::of(&[returning("c", &["a", "b"], &[policy])]);
    (0..3).for_each(|_| world.outcome("a", refused()));
    world.run_until(31.0);
    world.outcome("a", ok());
    world.run_until(31.0 + 60.0 + 10.0);
    let one = world.destination("a");
    assert!(!one.is_gated && one.share == Ratio::ONE);
}

#[test]
fn a_probe_that_passes_takes_back_an_ejection_by_a_burst_and_trials_decide() {
    let cluster = with(returning("c", &["a", "b"], &[burst()]), |cluster| {
        cluster.health_check.active = Some(probed());
    });
    let mut world = World::of(&[cluster]);
    world.run_until(1.0);
    world.sums("b", 100);
    for _ in 0..60 {
        if world.health("a").passive != Unhealthy {
            traffic(&mut world, "a", 50, 0.02, |_| Some(reset()));
            world.run_until(world.now.as_secs_f64() + 0.02);
        }
    }
    assert_eq!(world.health("a").passive, Unhealthy);
    let ejected_at = world.now.as_secs_f64();
    world.run_until(ejected_at + 1.1);
    let one = world.destination("a");
    assert_eq!((one.health.passive, one.is_gated), (Unknown, true), "the probe that was asked for passed");
    world.outcome("a", reset());
    assert_eq!(world.health("a").passive, Unhealthy, "a trial failed: now it stands");
    let until = world.destination("a").reactivation_at.unwrap();
    assert_eq!(until.since(world.now), secs(4.0));
}

#[test]
fn one_that_passes_probes_and_fails_its_traffic_leaves_and_stays_out() {
    let policies = [burst(), PassivePolicy::Outlier(Comparison::default())];
    let cluster = with(returning("c", &["a", "b", "d"], &policies), |cluster| {
        cluster.health_check.active = Some(probed());
        cluster.health_check.guards = Guards::native();
        cluster.health_check.available_destinations_policy = AvailablePolicy::HealthyOrPanic;
    });
    let mut world = World::of(&[cluster]);
    world.run_until(3.0);
    let (mut failed, mut late, mut owed) = (0, 0, 0.0);
    for step in 0..600_u32 {
        let now = 3.0 + f64::from(step) * 0.02;
        world.run_until(now);
        world.sums("b", 1);
        world.sums("d", 1);
        let one = world.destination("a");
        owed += if one.is_available { one.share.get() } else { 0.0 };
        // One trial at a time; else its part of 50 requests a second.
        if one.is_available && (one.is_gated || owed >= 1.0) {
            owed = 0.0;
            failed += 1;
            late += u32::from(now > 6.0);
            world.outcome("a", status(503, true));
        }
    }
    assert!(failed < 80, "{failed} requests of 600 failed there");
    assert!(late <= 4, "{late} of them after three seconds");
    let events = world.events.len();
    assert!(events < 40, "{events} events");
}

#[test]
fn a_suspect_that_probes_took_out_comes_back_by_a_ramp_and_no_old_failure_keeps_it_back() {
    let cluster = with(returning("c", &["a", "b"], &[burst()]), |cluster| {
        cluster.health_check.active = Some(probed());
    });
    let mut world = World::of(&[cluster]);
    world.run_until(1.0);
    world.sums("b", 100);
    world.answers.insert("a".to_owned(), Answer::status(503));
    // As many as Burst remembers, in less than it wants to be sure: 29 good answers would end the suspicion.
    traffic(&mut world, "a", 40, 0.3, |_| Some(reset()));
    for tenth in 14..100 {
        world.run_until(f64::from(tenth) / 10.0);
        if world.health("a").active == Unhealthy {
            break;
        }
    }
    assert_eq!((world.health("a").active, world.health("a").passive), (Unhealthy, Unknown));
    assert_eq!(share(&mut world, "a"), 0.1);
    world.answers.clear();
    let out_at = world.now.as_secs_f64();
    for tenth in 1..50 {
        world.run_until(out_at + f64::from(tenth) / 10.0);
        if world.health("a").active == Healthy {
            break;
        }
    }
    assert_eq!((world.destination("a").is_gated, share(&mut world, "a")), (false, 0.1));
    assert_eq!(world.available("c"), ["a", "b"]);
    let back_at = world.now.as_secs_f64();
    world.run_until(back_at + 5.0);
    assert_eq!(share(&mut world, "a"), 0.55);
    // One that nobody suspected has all of its weight at once.
    world.answers.insert("b".to_owned(), Answer::status(503));
    world.run_until(back_at + 20.0);
    assert_eq!(world.health("b").active, Unhealthy);
    world.answers.clear();
    world.run_until(back_at + 40.0);
    let b = world.destination("b");
    assert_eq!((b.is_available, b.is_gated, b.share), (true, false, Ratio::ONE));
}

#[test]
fn a_trial_that_says_nothing_is_no_sign() {
    let policy = refusals();
    let mut world = World::of(&[returning("c", &["a", "b"], &[policy])]);
    (0..3).for_each(|_| world.outcome("a", refused()));
    world.run_until(40.0);
    world.outcome("a", failed(OutcomeClass::Neutral, FailureKind::ClientGone));
    world.run_until(2.0 + 60.0);
    assert!(!world.destination("a").is_gated, "quiet since the ejection ended");
}

#[test]
fn a_trial_answered_500_ejects_again_where_a_policy_takes_500_for_a_failure() {
    let with_500 = Burst { plain_500: model::passive::Plain500::Counts, ..Burst::default() };
    for (counting, expected) in [(with_500, Unhealthy), (Burst::default(), Unknown)] {
        let policies = [refusals(), PassivePolicy::Burst(counting)];
        let mut world = World::of(&[returning("c", &["a", "b"], &policies)]);
        (0..3).for_each(|_| world.outcome("a", refused()));
        assert_eq!(world.health("a").passive, Unhealthy);
        world.run_until(10.0);
        assert!(world.destination("a").is_gated);
        world.outcome("a", status(500, true));
        assert_eq!(world.health("a").passive, expected);
        let last = world.destination("a").last_transition.as_ref().map(|last| last.cause.as_str().to_owned());
        assert_eq!(last.as_deref() == Some("canary"), expected == Unhealthy, "{last:?}");
    }
}
