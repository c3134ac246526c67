//! YARP's available-destinations policies, row by row (H1 to H14), and PanicThreshold.

use health::available::{AvailablePolicy, Candidate, Candidates, HealthyAndUnknown, HealthyOrPanic, PanicThreshold};
use model::available::{AvailablePolicy as Options, Because};
use model::health::Switch::{self, Off, On};
use model::health::{CheckKind, HealthPair};
use model::ratio::Ratio;

use crate::world::*;

fn pair(text: &str) -> HealthPair {
    let value = |word: &str| match word {
        "H" => Healthy,
        "U" => Unhealthy,
        _ => Unknown,
    };
    let (active, passive) = text.split_once(',').unwrap();
    HealthPair::new(value(active), value(passive))
}

/// Which of `H,? U,U …` are chosen, counted from 1.
fn chosen(policy: &dyn AvailablePolicy, active: Switch, passive: Switch, pairs: &str) -> Vec<usize> {
    let destinations: Vec<Candidate> =
        pairs.split_whitespace().map(|text| Candidate { id: text.into(), health: pair(text), weight: 1 }).collect();
    let id = "c".into();
    let selection = policy.select(&Candidates { id: &id, active, passive, destinations: &destinations });
    selection.indexes.iter().map(|index| index + 1).collect()
}

#[test]
fn every_row_gives_yarps_list() {
    let unknown: &dyn AvailablePolicy = &HealthyAndUnknown;
    let panic: &dyn AvailablePolicy = &HealthyOrPanic;
    let hundred = format!("{} H,H", "U,? ".repeat(99));
    let rows: &[(&str, &dyn AvailablePolicy, Switch, Switch, &str, &[usize])] = &[
        ("H1", unknown, On, On, "H,? U,? U,H ?,U ?,H H,U U,U ?,?", &[1, 5, 8]),
        ("H2", unknown, Off, Off, "H,? U,U ?,U U,?", &[1, 2, 3, 4]),
        ("H3", unknown, On, On, "U,H", &[]),
        ("H4", unknown, Off, On, "U,H", &[1]),
        ("H5", unknown, On, On, "H,U", &[]),
        ("H6", unknown, On, Off, "H,U", &[1]),
        ("H7", unknown, Off, Off, "U,U", &[1]),
        ("H8", unknown, On, On, "U,U", &[]),
        ("H9", panic, On, On, "H,? U,? ?,H ?,?", &[1, 3, 4]),
        ("H10", panic, On, On, "U,? ?,U U,U U,H", &[1, 2, 3, 4]),
        ("H14", panic, On, On, &hundred, &[100]),
    ];
    for (row, policy, active, passive, pairs, expected) in rows {
        assert_eq!(chosen(*policy, *active, *passive, pairs), *expected, "{row}");
    }
}

#[test]
fn h11_h12_the_clusters_own_policy_alone_decides_from_all_of_its_destinations() {
    let mut world =
        World::of(&[active("panics", &["a", "b"], probed()), active("other", &["c"], probed())].map(|cluster| {
            with(cluster, |cluster| {
                if cluster.id.as_str() == "panics" {
                    cluster.health_check.available_destinations_policy = Options::HealthyOrPanic;
                }
            })
        }));
    world.run_until(1.0);
    for id in ["a", "b", "c"] {
        world.set(id, CheckKind::Active, Unhealthy, None);
    }
    assert_eq!((world.available("panics").len(), world.available("other").len()), (2, 0));
    assert_eq!(world.cluster("panics").destinations.len(), 2);
}

/// YARP's list of a new cluster is empty until the first full update; ours is never without one.
#[test]
fn h13_a_new_cluster_has_its_list_at_once() {
    let mut world = World::of(&[active("c", &["a", "b"], probed())]);
    assert_eq!(world.available("c"), ["a", "b"]);
}

#[test]
fn panic_shows_and_says_why() {
    let mut world = World::of(&[with(active("c", &["a", "b"], probed()), |cluster| {
        cluster.health_check.available_destinations_policy = Options::HealthyOrPanic;
    })]);
    world.run_until(1.0);
    world.set("a", CheckKind::Active, Unhealthy, None);
    assert_eq!((world.cluster("c").is_panic, world.destination("a").because), (false, Because::Unhealthy));
    world.set("b", CheckKind::Active, Unhealthy, None);
    assert!(world.cluster("c").is_panic);
    for id in ["a", "b"] {
        let destination = world.destination(id);
        assert_eq!((destination.is_available, destination.because), (true, Because::Panic));
        assert_eq!(destination.health.active, Unhealthy, "panic acts on availability, never on a value");
    }
}

#[test]
fn the_panic_threshold_is_a_share_that_must_not_be_fallen_below() {
    let policy = |threshold| PanicThreshold { threshold: Ratio::new(threshold).unwrap() };
    for (threshold, pairs, expected) in [
        (0.5, "H,H H,H U,U U,U", vec![1, 2]),
        (0.5, "H,H U,U U,U", vec![1, 2, 3]),
        (0.0, "U,U U,U", vec![]),
        (1.0, "H,H U,U", vec![1, 2]),
        (1.0, "H,H ?,?", vec![1, 2]),
        (0.5, "", vec![]),
    ] {
        assert_eq!(chosen(&policy(threshold), On, On, pairs), expected, "{threshold}: {pairs}");
    }
}
