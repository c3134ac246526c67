//! Who asks for less than the others do gets less, and loses nothing else.

use model::cluster::Cluster;
use model::event::EventKind;
use model::passive::{Overload, PassivePolicy};
use model::random::Random;
use proptest::prelude::*;

use crate::world::*;

const IDS: [&str; 3] = ["a", "b", "c"];

fn watched() -> Cluster {
    passive("c", &IDS, &[PassivePolicy::Overload(Overload::default())])
}

fn part(world: &mut World, id: &str) -> f64 {
    world.destination(id).share.get()
}

/// About so much: a look comes in the middle of what ends at one moment.
fn assert_about(part: f64, expected: f64) {
    assert!((part - expected).abs() < 0.04, "{part}, expected about {expected}");
}

/// So many of the attempts that end now ask for less, and so many are answered.
fn ended(world: &mut World, id: &str, asked: u32, ok: u32) {
    if ok > 0 {
        world.sums(id, u64::from(ok));
    }
    (0..asked).for_each(|_| world.outcome(id, status(429, true)));
}

/// A hundred attempts a second at each until `end`; so many out of ten ask for less.
fn constant(world: &mut World, end: f64, asking: [u32; 3]) {
    let first = (world.now.as_secs_f64() * 10.0).round() as u32 + 1;
    for tenth in first..=(end * 10.0).round() as u32 {
        world.run_until(f64::from(tenth) / 10.0);
        for (id, asked) in IDS.into_iter().zip(asking) {
            ended(world, id, asked, 10 - asked);
        }
    }
}

#[test]
fn the_part_that_is_lost_is_the_part_that_was_too_much() {
    for (asked, expected) in [(2, 0.8), (5, 0.5), (8, 0.2), (10, 0.1)] {
        let mut world = World::of(&[watched()]);
        constant(&mut world, 3.0, [asked, 0, 0]);
        assert_about(part(&mut world, "a"), expected);
        assert_eq!((part(&mut world, "b"), part(&mut world, "c")), (1.0, 1.0));
    }
}

#[test]
fn what_the_rest_asks_for_is_nobodys_alone() {
    let mut world = World::of(&[watched()]);
    constant(&mut world, 3.0, [7, 4, 4]);
    assert_about(part(&mut world, "a"), 0.5);
    let mut world = World::of(&[watched()]);
    constant(&mut world, 30.0, [10, 10, 10]);
    assert!(IDS.iter().all(|id| part(&mut world, id) == 1.0));
}

#[test]
fn one_that_stops_asking_has_its_weight_back_step_by_step_and_without_traffic_too() {
    for ok_follows in [true, false] {
        let mut world = World::of(&[watched()]);
        constant(&mut world, 3.0, [5, 0, 0]);
        assert_about(part(&mut world, "a"), 0.5);
        if ok_follows {
            for (second, back) in [(5.0, 0.05), (7.0, 0.15), (9.0, 0.35)] {
                constant(&mut world, second, [0, 0, 0]);
                assert_about(part(&mut world, "a"), 0.5 + back);
            }
            constant(&mut world, 12.0, [0, 0, 0]);
        } else {
            world.run_until(11.0);
            assert_about(part(&mut world, "a"), 0.5);
            world.run_until(70.0);
        }
        assert_eq!(part(&mut world, "a"), 1.0);
    }
}

#[test]
fn all_that_ask_alike_keep_their_weight() {
    let mut world = World::of(&[watched()]);
    for tenth in 0..600_u32 {
        world.run_until(0.1 * f64::from(tenth));
        for (place, id) in (0..).zip(IDS) {
            // Two or three of five, in another rhythm at each.
            let asked = 2 + (tenth + place) % 2;
            ended(&mut world, id, asked, 5 - asked);
        }
    }
    assert_eq!(steps(&world), 0);
}

fn steps(world: &World) -> usize {
    world.events.iter().filter(|event| matches!(event.kind, EventKind::Share { .. })).count()
}

#[test]
fn chance_alone_lowers_somebody_once_in_hundreds_of_looks() {
    let mut n = 0;
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let mut world = World::of(&[watched()]);
        for tenth in 0..600 {
            world.run_until(0.1 * f64::from(tenth));
            for id in IDS {
                let asked = (0..5).filter(|_| random.unit() < 0.5).count() as u32;
                ended(&mut world, id, asked, 5 - asked);
            }
        }
        n += steps(&world);
    }
    // Nine hundred looks; each step down has some back.
    assert!(n <= 10, "{n}");
}

#[test]
fn a_server_of_a_third_of_the_size_is_asked_for_about_a_third() {
    let mut world = World::of(&[watched()]);
    // 150 requests a second; it bears 20 of its 50, the others 100 each.
    let (mut credit, mut asked_before, mut asked_after) = ([0.0; 3], 0, 0);
    let mut parts = Vec::new();
    for second in 0..120_u32 {
        world.run_until(f64::from(second));
        let shares = IDS.map(|id| part(&mut world, id));
        let whole: f64 = shares.iter().sum();
        for ((id, share), (credit, bears)) in IDS.into_iter().zip(shares).zip(credit.iter_mut().zip([20, 100, 100])) {
            *credit += 150.0 * share / whole;
            let offered = *credit as u32;
            *credit -= f64::from(offered);
            let ok = offered.min(bears);
            ended(&mut world, id, offered - ok, ok);
            match second {
                0..2 => asked_before += offered - ok,
                60.. => asked_after += offered - ok,
                _ => {}
            }
        }
        if second >= 60 {
            parts.push(part(&mut world, "a"));
        }
    }
    // 20 of 150 is its part at 0.31 of its weight.
    let mean = parts.iter().sum::<f64>() / parts.len() as f64;
    assert!((0.2..0.45).contains(&mean), "{mean}");
    let (before, after) = (f64::from(asked_before) / 2.0, f64::from(asked_after) / 60.0);
    assert!(before == 30.0 && after < before / 4.0, "asked for less {before} times a second, then {after}");
}

#[test]
fn one_that_is_full_is_well_and_in_use_for_everybody_who_looks() {
    let facts = |world: &mut World| {
        let cluster = world.cluster("c");
        let all = cluster.destinations.iter();
        (cluster.is_panic, all.map(|one| (one.health, one.status, one.is_available, one.because)).collect::<Vec<_>>())
    };
    let mut world = World::of(&[watched()]);
    constant(&mut world, 1.0, [0, 0, 0]);
    let before = facts(&mut world);
    constant(&mut world, 60.0, [10, 0, 0]);
    assert_eq!(part(&mut world, "a"), 0.1);
    assert_eq!(facts(&mut world), before);
    assert_eq!(world.available("c"), IDS);
}

#[test]
fn few_attempts_tell_nothing() {
    let mut world = World::of(&[watched()]);
    for second in 0..60 {
        world.run_until(f64::from(second));
        ended(&mut world, "a", 1, 0);
        ended(&mut world, "b", 0, 10);
    }
    assert_eq!(part(&mut world, "a"), 1.0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_asked_ejects_nobody_and_lowers_only_who_asked(
        story in prop::collection::vec([(0..12_u32, 0..30_u32), (0..12, 0..30), (0..1, 0..30)], 1..60),
        steps in prop::collection::vec(1..30_u32, 60),
    ) {
        let mut world = World::of(&[watched()]);
        let mut tenths = 0;
        for (moment, step) in story.into_iter().zip(steps) {
            tenths += step;
            world.run_until(0.1 * f64::from(tenths));
            for (id, (asked, ok)) in IDS.into_iter().zip(moment) {
                ended(&mut world, id, asked, ok);
            }
            for id in IDS {
                let one = world.destination(id);
                prop_assert!(one.health.passive != Unhealthy && one.is_available);
                prop_assert!((0.1..=1.0).contains(&one.share.get()));
            }
            prop_assert_eq!(part(&mut world, "c"), 1.0);
        }
    }
}
