//! What is below a verdict and around it: suspicion, comparison with the rest, shadows, tiers.

use std::time::Duration;

use health::{Input, Pulse};
use model::available::Because;
use model::cluster::Cluster;
use model::destination::Tier;
use model::event::EventKind;
use model::health::CheckKind;
use model::outcome::{FailureKind, Outcome, OutcomeClass};
use model::passive::{Burst, Comparison, ConnectFailures, ConsecutiveErrors, FailureRate, Latency, PassivePolicy};
use model::ratio::Ratio;
use model::readmission::Readmission;
use model::time::Timestamp;

use crate::world::*;

/// Burst as it comes.
pub fn burst() -> PassivePolicy {
    PassivePolicy::Burst(Burst::default())
}

/// Trips at the third of them.
pub fn refusals() -> PassivePolicy {
    PassivePolicy::ConnectFailures(ConnectFailures { persist: Duration::ZERO, ..ConnectFailures::default() })
}

/// Times without jitter.
fn readmission() -> Readmission {
    let (longest, ramp) = (secs(60.0), secs(10.0));
    Readmission { longest, ramp, jitter: Ratio::ZERO, ..Readmission::default() }
}

/// A cluster whose destinations come back by trials.
pub fn returning(id: &str, destinations: &[&str], policies: &[PassivePolicy]) -> Cluster {
    with(passive(id, destinations, policies), |cluster| {
        cluster.health_check.passive.as_mut().unwrap().readmission = Some(readmission());
    })
}

/// An attempt whose connection broke.
pub fn reset() -> Outcome {
    failed(OutcomeClass::AppFail, FailureKind::Reset)
}

/// `n` attempts a second for `span` seconds; `outcome_of` says what the k-th comes to.
pub fn traffic(
    world: &mut World,
    id: &str,
    per_second: u32,
    span: f64,
    mut outcome_of: impl FnMut(u32) -> Option<Outcome>,
) {
    let start = world.now.as_secs_f64();
    for k in 0..(f64::from(per_second) * span) as u32 {
        world.run_until(start + f64::from(k) / f64::from(per_second));
        match outcome_of(k) {
            Some(outcome) => world.outcome(id, outcome),
            None => world.sums(id, 1),
        }
    }
}

/// A destination's part of its weight.
pub fn share(world: &mut World, id: &str) -> f64 {
    world.destination(id).share.get()
}

#[test]
fn a_short_pause_costs_weight_for_its_length_and_is_no_ejection() {
    let mut world = World::of(&[passive("c", &["a", "b"], &[burst()])]);
    world.sums("b", 100);
    traffic(&mut world, "a", 200, 0.3, |_| Some(reset()));
    assert_eq!((world.health("a").passive, share(&mut world, "a")), (Unknown, 0.1));
    traffic(&mut world, "a", 20, 3.0, |_| None);
    assert_eq!((world.health("a").passive, share(&mut world, "a")), (Healthy, 1.0));
}

#[test]
fn failures_that_last_eject_the_one_that_is_worse_than_the_rest() {
    let mut world = World::of(&[passive("c", &["a", "b"], &[burst()])]);
    traffic(&mut world, "b", 100, 1.0, |_| None);
    traffic(&mut world, "a", 20, 1.2, |k| (k % 3 != 0).then(reset));
    assert_eq!(world.health("a").passive, Unhealthy);
    let evidence = world.transitions().pop().unwrap().evidence;
    assert_eq!((evidence.rest_failed, evidence.rest_total), (Some(0), Some(100)));
}

#[test]
fn failures_that_all_destinations_share_eject_nobody() {
    let names = ["a", "b", "c"];
    let policies = [burst(), PassivePolicy::Outlier(Comparison::default())];
    let mut world = World::of(&[passive("c", &names, &policies)]);
    for k in 0..3000_u32 {
        world.run_until(f64::from(k) / 100.0);
        for (place, name) in (0..).zip(names) {
            // Every second one fails, in another rhythm at each.
            if (k + place) % 2 == 0 { world.outcome(name, reset()) } else { world.sums(name, 1) }
        }
    }
    assert!(names.iter().all(|name| world.health(name).passive == Healthy));
    let shared = world.events.iter().filter(|event| matches!(event.kind, EventKind::Share { .. })).count();
    assert_eq!(shared, 0, "nobody loses weight for what all of them share");
}

#[test]
fn an_answer_of_500_counts_only_where_it_is_told_to() {
    for (plain_500, expected) in
        [(model::passive::Plain500::Passes, Unknown), (model::passive::Plain500::Counts, Unhealthy)]
    {
        let policy = PassivePolicy::Burst(Burst { plain_500, ..Burst::default() });
        let mut world = World::of(&[passive("c", &["a", "b"], &[policy])]);
        world.sums("b", 50);
        traffic(&mut world, "a", 20, 2.0, |_| Some(status(500, true)));
        assert_eq!(world.health("a").passive, expected);
    }
}

#[test]
fn the_only_one_with_traffic_is_convicted_by_a_burst_alone() {
    let mut world = World::of(&[passive("c", &["a", "b"], &[burst()])]);
    traffic(&mut world, "a", 20, 1.2, |_| Some(reset()));
    assert_eq!(world.health("a").passive, Unhealthy);
    let mut world = World::of(&[passive("c", &["a", "b"], &[PassivePolicy::Outlier(Comparison::default())])]);
    traffic(&mut world, "a", 20, 5.0, |_| Some(reset()));
    assert_eq!(world.health("a").passive, Unknown);
}

#[test]
fn one_whose_peers_are_out_with_traffic_of_a_moment_ago_is_not_the_only_one() {
    for (health, expected) in [(Unhealthy, Unknown), (Healthy, Unhealthy)] {
        let cluster = with(passive("c", &["a", "b"], &[burst()]), |cluster| {
            cluster.health_check.active = Some(probed());
        });
        let mut world = World::of(&[cluster]);
        traffic(&mut world, "b", 100, 1.0, |_| None);
        world.set("b", CheckKind::Active, health, None);
        traffic(&mut world, "a", 20, 1.2, |_| Some(reset()));
        assert_eq!(world.health("a").passive, expected, "b is {health:?}");
    }
}

#[test]
fn an_outlier_of_two_is_found_and_one_of_a_bad_pair_is_not() {
    for (rest_fails_each, expected) in [(100, Unhealthy), (2, Healthy)] {
        let mut world = World::of(&[passive("c", &["a", "b"], &[PassivePolicy::Outlier(Comparison::default())])]);
        for k in 1..=400_u32 {
            world.run_until(f64::from(k) / 50.0);
            if k % 4 == 0 {
                world.outcome("a", reset())
            } else {
                world.sums("a", 1)
            }
            if k % rest_fails_each == 0 { world.outcome("b", reset()) } else { world.sums("b", 1) }
        }
        assert_eq!(world.health("a").passive, expected, "rest fails each {rest_fails_each}th");
    }
}

#[test]
fn connections_refused_in_a_row_suspect_at_once_and_eject_when_nothing_good_comes_for_half_a_second() {
    let policy = PassivePolicy::ConnectFailures(ConnectFailures::default());
    let mut world = World::of(&[passive("c", &["a", "b"], &[policy])]);
    world.outcome("a", refused());
    world.outcome("a", refused());
    world.outcome("a", status(503, true));
    world.outcome("a", refused());
    world.outcome("a", refused());
    assert_eq!(share(&mut world, "a"), 1.0);
    world.outcome("a", refused());
    assert_eq!((world.health("a").passive, share(&mut world, "a")), (Unknown, 0.1));
    world.run_until(0.49);
    world.outcome("a", refused());
    assert_eq!(world.health("a").passive, Unknown);
    world.run_until(0.5);
    world.outcome("a", refused());
    assert_eq!(world.health("a").passive, Unhealthy);
}

#[test]
fn a_full_server_that_refuses_and_goes_on_answering_is_not_ejected() {
    let policy = PassivePolicy::ConnectFailures(ConnectFailures::default());
    let mut world = World::of(&[passive("c", &["a", "b"], &[policy])]);
    for tenth in 0..50 {
        world.run_until(0.1 * f64::from(tenth));
        world.sums("a", 1);
        (0..5).for_each(|_| world.outcome("a", refused()));
        assert_eq!((world.health("a").passive, share(&mut world, "a")), (Healthy, 0.1));
    }
    world.sums("a", 1);
    assert_eq!(share(&mut world, "a"), 1.0);
}

#[test]
fn consecutive_errors_are_counted_by_outcome_and_a_rate_by_status_too() {
    let five = PassivePolicy::ConsecutiveErrors(ConsecutiveErrors::default());
    let mut world = World::of(&[passive("c", &["a", "b"], &[five])]);
    for outcome in [status(500, true), reset(), refused(), status(502, true), ok(), status(500, true)] {
        world.outcome("a", outcome);
    }
    assert_eq!(world.health("a").passive, Healthy);
    (0..4).for_each(|_| world.outcome("a", status(500, true)));
    assert_eq!(world.health("a").passive, Unhealthy);

    let rate = PassivePolicy::FailureRate(FailureRate::default());
    let mut world = World::of(&[passive("c", &["a", "b"], &[rate])]);
    world.sums("a", 14);
    (0..5).for_each(|_| world.outcome("a", status(500, true)));
    assert_eq!(world.health("a").passive, Healthy);
    world.outcome("a", status(500, true));
    assert_eq!(world.health("a").passive, Unhealthy);
}

#[test]
fn a_shadow_policy_tells_what_it_would_do_and_does_nothing() {
    let cluster = with(passive("c", &["a", "b"], &[burst()]), |cluster| {
        let check = cluster.health_check.passive.as_mut().unwrap();
        check.shadow = vec![max_fails(2, 10.0)];
    });
    let mut world = World::of(&[cluster]);
    world.outcome("a", reset());
    world.outcome("a", reset());
    let one = world.destination("a");
    assert_eq!((one.health.passive, one.is_available), (Unknown, true));
    assert_eq!(one.would_eject.len(), 1);
    world.run_until(30.0);
    assert!(world.destination("a").would_eject.is_empty());
    let told: Vec<bool> = world
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Shadow { would_eject, .. } => Some(*would_eject),
            _ => None,
        })
        .collect();
    assert_eq!(told, [true, false]);
}

/// The pulse of one whose answers take 20 ms.
pub fn pulse(world: &mut World, id: &str, waiting: u32, moved: f64) -> Pulse {
    let waiting_since = if waiting > 0 { at(moved) } else { Timestamp::MAX };
    let (slot, usual) = (world.slot(id), Some(secs(0.02)));
    let (moved_at, first_byte_p99, slowest) = (at(moved), usual, usual);
    Pulse { slot, waiting, waiting_since, moved_at, first_byte_p99, slowest, latency: None, mean: None }
}

#[test]
fn a_destination_that_asks_for_less_is_never_ejected_nor_suspected_but_by_overload() {
    let ours = model::passive::PassiveCheck::native().policies;
    let with_rates =
        [failure_rate(0.3, 10.0, 10), max_fails(1, 10.0), PassivePolicy::FailureRate(FailureRate::default())];
    let others: Vec<_> = ours.iter().filter(|one| !matches!(one, PassivePolicy::Overload(_))).cloned().collect();
    for policies in [ours.clone(), [ours, with_rates.to_vec()].concat(), others] {
        let mut world = World::of(&[passive("c", &["a", "b"], &policies)]);
        let full = failed(OutcomeClass::Overload, FailureKind::Status);
        for second in 0..60 {
            world.run_until(f64::from(second));
            (0..50).for_each(|_| world.outcome("a", full));
            world.sums("b", 50);
        }
        assert_ne!(world.health("a").passive, Unhealthy);
        let is_weighed = policies.iter().any(|policy| matches!(policy, PassivePolicy::Overload(_)));
        assert_eq!(share(&mut world, "a"), if is_weighed { 0.1 } else { 1.0 });
        assert_eq!(world.available("c"), ["a", "b"]);
    }
}

#[test]
fn a_slow_one_keeps_the_part_of_its_weight_that_its_speed_earns() {
    let names = ["a", "b", "c"];
    let mut world = World::of(&[passive("c", &names, &[PassivePolicy::Latency(Latency::default())])]);
    let tell = |world: &mut World, second: f64, own: f64| {
        world.run_until(second);
        let latencies = [own, 0.1, 0.1];
        let pulses = names.iter().zip(latencies).map(|(id, latency)| {
            let one = pulse(world, id, 0, second);
            Pulse { mean: Some(secs(latency)), ..one }
        });
        let pulses = pulses.collect();
        world.input(Input::PulsesTaken { pulses });
        share(world, "a")
    };
    assert_eq!(tell(&mut world, 1.0, 0.4), 1.0);
    assert_eq!(tell(&mut world, 5.0, 0.4), 1.0);
    assert_eq!(tell(&mut world, 6.0, 0.5), 0.2);
    assert_eq!(tell(&mut world, 7.0, 10.0), 0.1);
    assert_eq!(tell(&mut world, 8.0, 0.2), 1.0);
}

#[test]
fn backups_serve_while_no_primary_is_good() {
    let policy = refusals();
    let cluster = with(passive("c", &["a", "b"], &[policy]), |cluster| {
        cluster.destinations[1].tier = Tier::Backup;
    });
    let mut world = World::of(&[cluster]);
    assert_eq!(world.available("c"), ["a"]);
    assert_eq!(world.destination("b").because, Because::Backup);
    (0..3).for_each(|_| world.outcome("a", refused()));
    assert_eq!(world.available("c"), ["b"]);
    world.run_until(60.0);
    assert_eq!(world.available("c"), ["a"]);
}

/// Each comparison in a build with debug assertions also sums the rest by a pass over the cluster, and panics where the kept
/// sum is another one: random failures, successes, times, ejections from inside and outside, probes and reloads.
#[test]
fn the_kept_sum_of_the_rest_is_what_a_pass_over_the_cluster_gives() {
    let ids = ["a", "b", "c", "d", "e", "f", "g"];
    let policies = [burst(), PassivePolicy::Outlier(Comparison { minimum: 5, ..Comparison::default() })];
    let mut convicted = 0;
    for seed in 0..40 {
        let mut random = model::random::Random::new(seed);
        let mut below = |n: usize| (random.unit() * n as f64) as usize;
        let mut members: Vec<&str> = ids[..5].to_vec();
        let mut world = World::of(&[returning("c", &members, &policies)]);
        for _ in 0..400 {
            let id = members[below(members.len())];
            let bad = ["a", "e"].contains(&id);
            match below(if bad { 12 } else { 20 }) {
                6..12 if bad => (0..1 + below(4)).for_each(|_| world.outcome(id, reset())),
                0 => world.outcome(id, reset()),
                1 => world.outcome(id, status(500, false)),
                2 => world.set(id, CheckKind::Passive, Unhealthy, Some(secs(below(30) as f64))),
                3 => world.set(id, CheckKind::Passive, Healthy, None),
                4 => {
                    members = ids.iter().copied().filter(|_| below(4) > 0).collect();
                    members.extend(members.is_empty().then_some("a"));
                    world.configure(&[returning("c", &members, &policies)]);
                }
                5..8 => {
                    let span = [0.05, 0.5, 3.0, 11.0, 47.0][below(5)];
                    world.run_until(world.now.as_secs_f64() + span);
                }
                _ => world.sums(id, 1 + below(20) as u64),
            }
        }
        let told = world.transitions();
        convicted += told.iter().filter(|one| one.evidence.rest_total.is_some_and(|total| total > 0)).count();
    }
    assert!(convicted > 20, "{convicted}: else nothing was compared");
}
