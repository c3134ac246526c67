//! YARP's health updater, row by row (U1 to U8), under `compat: yarp`; where our own differs, it stands beside it.

use model::cluster::{Cluster, Compat};
use model::health::{CheckKind, HealthPair};

use crate::world::*;

/// Both checks on, probes far away.
fn cluster_of(compat: Compat, destinations: &[&str]) -> Cluster {
    let policies = [failure_rate(0.3, 60.0, 10)];
    let check = with(probed(), |check| {
        check.interval = secs(100_000.0);
        check.unhealthy_interval = check.interval;
    });
    with(passive("c", destinations, &policies), |cluster| {
        cluster.compat = compat;
        cluster.health_check.active = Some(check);
    })
}

fn world(destinations: &[&str]) -> World {
    let mut world = World::of(&[cluster_of(Compat::Yarp, destinations)]);
    world.run_until(1.0);
    world
}

#[test]
fn u1_u2_an_ejection_leaves_active_alone_and_ends_at_unknown() {
    let mut world = world(&["a"]);
    world.set("a", CheckKind::Passive, Healthy, None);
    world.set("a", CheckKind::Passive, Unhealthy, Some(secs(2.0)));
    assert_eq!(world.health("a"), HealthPair::new(Healthy, Unhealthy));
    assert!(world.available("c").is_empty());
    assert_eq!(world.destination("a").reactivation_at, Some(at(3.0)));
    world.run_until(3.0);
    assert_eq!(world.health("a"), HealthPair::new(Healthy, Unknown));
    assert_eq!((world.available("c"), world.destination("a").reactivation_at), (vec!["a".to_owned()], None));
}

#[test]
fn u3_passive_healthy_brings_it_back_without_a_timer() {
    let mut world = world(&["a"]);
    world.set("a", CheckKind::Passive, Unhealthy, Some(secs(2.0)));
    world.set("a", CheckKind::Passive, Healthy, None);
    assert_eq!(world.health("a").passive, Healthy);
    assert_eq!((world.available("c").len(), world.destination("a").reactivation_at), (1, None));
}

#[test]
fn u4_an_equal_value_is_nothing() {
    for value in [Unknown, Healthy, Unhealthy] {
        let mut world = world(&["a"]);
        world.set("a", CheckKind::Passive, value, Some(secs(9.0)));
        world.run_until(2.0);
        let (timer, published, events) = (world.core.poll_timeout(), world.n_published, world.events.len());
        world.set("a", CheckKind::Passive, value, Some(secs(2.0)));
        assert_eq!(world.core.poll_timeout(), timer, "{value}");
        assert_eq!((world.n_published, world.events.len()), (published, events), "{value}");
    }
}

#[test]
fn u5_active_values_leave_passive_alone_and_rebuild_the_list() {
    let mut world = world(&["a", "b", "c", "d"]);
    for (id, before, _) in FOUR {
        world.set(id, CheckKind::Active, before, None);
    }
    for (id, _, after) in FOUR {
        world.set(id, CheckKind::Active, after, None);
        assert_eq!(world.health(id), HealthPair::new(after, Unknown));
    }
    assert_eq!(world.available("c"), ["b", "d"]);
}

const FOUR: [(&str, model::health::Health, model::health::Health); 4] =
    [("a", Healthy, Unhealthy), ("b", Healthy, Healthy), ("c", Unhealthy, Unhealthy), ("d", Unhealthy, Healthy)];

#[test]
fn u6_a_pending_reactivation_is_not_replaced_ours_is() {
    for (compat, first_end, second_end) in [(Compat::Yarp, 60.0, 60.0), (Compat::None, 110.0, 110.0)] {
        let mut world = World::of(&[cluster_of(compat, &["a"])]);
        let set = |world: &mut World, value| world.set("a", CheckKind::Passive, value, Some(secs(60.0)));
        set(&mut world, Unhealthy);
        world.run_until(10.0);
        set(&mut world, Healthy);
        world.run_until(50.0);
        set(&mut world, Unhealthy);
        assert_eq!(world.destination("a").reactivation_at, Some(at(first_end)));
        world.run_until(second_end - 0.001);
        assert_eq!(world.health("a").passive, Unhealthy);
        world.run_until(second_end);
        assert_eq!(world.health("a").passive, Unknown);
    }
}

#[test]
fn u7_a_timer_that_finds_healthy_does_nothing() {
    for compat in [Compat::Yarp, Compat::None] {
        let mut world = World::of(&[cluster_of(compat, &["a"])]);
        world.set("a", CheckKind::Passive, Unhealthy, Some(secs(2.0)));
        world.set("a", CheckKind::Passive, Healthy, None);
        world.run_until(10.0);
        assert_eq!(world.health("a").passive, Healthy);
    }
}

#[test]
fn u8_a_good_probe_does_not_end_an_ejection() {
    for compat in [Compat::Yarp, Compat::None] {
        let mut cluster = cluster_of(compat, &["a"]);
        cluster.health_check.active.as_mut().unwrap().interval = secs(1.0);
        let mut world = World::of(&[cluster]);
        world.set("a", CheckKind::Passive, Unhealthy, Some(secs(30.0)));
        world.run_until(29.0);
        assert_eq!(world.health("a"), HealthPair::new(Healthy, Unhealthy));
        assert!(world.available("c").is_empty());
        world.run_until(30.0);
        assert_eq!(world.health("a").passive, Unknown);
    }
}
