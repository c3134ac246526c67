//! Requests that fail wherever they go speak against nobody, however their repeats fall; who is sick is found all the same.

use model::cluster::Cluster;
use model::event::{EventKind, ShareCause};
use model::outcome::{FailureKind, Outcome, OutcomeClass};
use model::passive::{Burst, Comparison, ConnectFailures, PassivePolicy};
use model::random::Random;
use model::ratio::Ratio;
use model::readmission::Readmission;

use crate::doubt::{returning, share};
use crate::world::*;

/// A destination, its weight, and the share of the requests that are no bad ones which it fails nevertheless.
type Server = (&'static str, u32, f64);

fn set() -> [PassivePolicy; 3] {
    [
        PassivePolicy::ConnectFailures(ConnectFailures::default()),
        PassivePolicy::Burst(Burst::default()),
        PassivePolicy::Outlier(Comparison::default()),
    ]
}

fn watched(servers: &[Server]) -> Cluster {
    let ids: Vec<&str> = servers.iter().map(|(id, ..)| *id).collect();
    passive("c", &ids, &set())
}

/// Fifty requests a second until `end`, up to three tries each; such a share of them fails wherever it goes.
fn serve(world: &mut World, random: &mut Random, servers: &[Server], end: f64, bad: f64) {
    while world.now < at(end) {
        let is_bad = random.unit() < bad;
        let mut tried: Vec<&str> = Vec::new();
        while tried.len() < 3 {
            let untried =
                servers.iter().filter(|(id, ..)| !tried.contains(id) && world.health(id).passive != Unhealthy);
            let untried: Vec<&Server> = untried.collect();
            let mut draw = random.unit() * untried.iter().map(|(_, weight, _)| f64::from(*weight)).sum::<f64>();
            let drawn = untried.iter().find(|(_, weight, _)| {
                draw -= f64::from(*weight);
                draw < 0.0
            });
            let Some((id, _, fails)) = drawn else { break };
            let is_failed = is_bad || random.unit() < *fails;
            match (is_failed, tried.is_empty()) {
                (true, true) => world.outcome(id, status(502, true)),
                (true, false) => world.repeated(id, status(502, true)),
                (false, is_first) => world.sums_of(id, 1, u64::from(!is_first)),
            }
            if !is_failed {
                break;
            }
            tried.push(id);
        }
        let next = world.now.as_secs_f64() + 0.02;
        world.run_until(next);
    }
}

fn doubts(world: &World) -> usize {
    let is_doubt = |kind: &EventKind| match kind {
        EventKind::Share { because, .. } => matches!(because, ShareCause::Suspect { .. }),
        EventKind::Transition(transition) => transition.to == Unhealthy,
        EventKind::Availability { .. }
        | EventKind::Shadow { .. }
        | EventKind::Kept { .. }
        | EventKind::Config { .. }
        | EventKind::Draining => false,
    };
    world.events.iter().filter(|event| is_doubt(&event.kind)).count()
}

#[test]
fn one_of_little_weight_is_not_blamed_for_repeats_of_requests_that_fail_wherever_they_go() {
    for servers in [&[("a", 9, 0.0), ("b", 1, 0.0)][..], &[("a", 9, 0.0), ("b", 9, 0.0), ("c", 1, 0.0)]] {
        for bad in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6] {
            let mut world = World::of(&[watched(servers)]);
            serve(&mut world, &mut Random::new(11), servers, 30.0, bad);
            assert_eq!(doubts(&world), 0, "{servers:?}, {bad} bad: {:?}", world.log);
        }
    }
}

#[test]
fn one_of_little_weight_that_fails_all_is_found_within_seconds_by_its_few_first_tries() {
    let found = |bad: f64| {
        let sick = [("a", 9, 0.0), ("b", 1, 1.0)];
        let mut world = World::of(&[watched(&sick)]);
        let mut random = Random::new(5);
        serve(&mut world, &mut random, &[("a", 9, 0.0), ("b", 1, 0.0)], 20.0, bad);
        serve(&mut world, &mut random, &sick, 40.0, bad);
        let out = world.events.iter().find_map(|event| match &event.kind {
            EventKind::Transition(one) if one.to == Unhealthy => Some((event.at, one.destination.destination.clone())),
            _ => None,
        });
        let (out_at, who) = out.unwrap();
        assert_eq!(who.as_str(), "b");
        out_at.as_secs_f64() - 20.0
    };
    // Five first tries a second: five of them fail before the sum has lasted for a second.
    assert!(found(0.0) <= 1.5, "{}", found(0.0));
    // Beside a rest that fails a fifth each of them says less, and those of the last ten seconds that went well count, too.
    for bad in [0.1, 0.2] {
        assert!(found(bad) <= 4.0, "{bad} bad: {}", found(bad));
    }
}

#[test]
fn one_that_gets_nothing_but_repeats_is_judged_by_what_others_make_of_theirs() {
    for (is_sick, expected) in [(true, Unhealthy), (false, Unknown)] {
        let mut world = World::of(&[watched(&[("a", 1, 0.0), ("b", 1, 0.0), ("c", 0, 0.0)])]);
        for k in 0..100_u32 {
            world.run_until(f64::from(k) / 10.0);
            // A request fails at one of two that take turns, then at the third; the other one answers it, or not.
            let (one, other) = if k % 2 == 0 { ("a", "b") } else { ("b", "a") };
            (0..4).for_each(|_| world.sums(one, 1));
            world.outcome(one, status(502, true));
            world.repeated("c", status(502, true));
            if is_sick { world.sums_of(other, 1, 1) } else { world.repeated(other, status(502, true)) }
        }
        assert_eq!(world.health("c").passive, expected);
        assert!(["a", "b"].iter().all(|id| world.health(id).passive != Unhealthy));
    }
}

#[test]
fn one_that_gets_all_first_tries_is_judged_by_the_repeats_that_others_answer() {
    let mut world = World::of(&[watched(&[("a", 1, 1.0), ("b", 0, 0.0)])]);
    for k in 0..100_u32 {
        world.run_until(f64::from(k) / 50.0);
        if world.health("a").passive != Unhealthy {
            world.outcome("a", status(503, true));
        }
        world.sums_of("b", 1, 1);
    }
    assert_eq!(world.health("a").passive, Unhealthy);
}

#[test]
fn burst_hears_of_repeats_only_what_no_request_can_cause() {
    for (outcome, expected) in [(status(502, true), 1.0), (refused(), 0.1)] {
        let mut world = World::of(&[passive("c", &["a", "b"], &[PassivePolicy::Burst(Burst::default())])]);
        world.sums_of("b", 60, 60);
        (0..20).for_each(|_| world.repeated("a", outcome));
        assert_eq!(share(&mut world, "a"), expected, "{outcome:?}");
    }
}

#[test]
fn a_trial_that_has_failed_elsewhere_and_is_answered_with_an_error_says_nothing() {
    let reset = failed(OutcomeClass::AppFail, FailureKind::Reset);
    let cases: [(Try, Outcome, _); 4] = [
        (Try::Repeat, status(502, true), false),
        (Try::First, status(502, true), true),
        (Try::Repeat, refused(), true),
        (Try::Repeat, reset, true),
    ];
    for (which, outcome, is_out_again) in cases {
        let rule = Readmission { jitter: Ratio::ZERO, ..Readmission::default() };
        let mut cluster = returning("c", &["a", "b"], &set());
        cluster.health_check.passive.as_mut().unwrap().readmission = Some(rule);
        let mut world = World::of(&[cluster]);
        world.sums("b", 50);
        (0..10).for_each(|k| {
            world.run_until(f64::from(k) / 10.0);
            world.outcome("a", refused());
        });
        assert_eq!(world.health("a").passive, Unhealthy);
        let back = world.now.as_secs_f64() + rule.first.as_secs_f64() + 0.1;
        world.run_until(back);
        assert!(world.destination("a").is_gated);
        match which {
            Try::First => world.outcome("a", outcome),
            Try::Repeat => world.repeated("a", outcome),
        }
        assert_eq!(world.health("a").passive == Unhealthy, is_out_again, "{which:?} {outcome:?}");
        assert_eq!(world.destination("a").is_gated, !is_out_again);
    }
}
