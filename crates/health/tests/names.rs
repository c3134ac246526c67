//! Destinations behind names: state follows the address, whatever its name answers meanwhile.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use health::membership::{Answer as Answered, Lifetimes, Membership, expand, names};
use model::available::Because;
use model::cluster::Cluster;
use model::health::HealthPair;
use model::outcome::FailureKind;
use model::random::Random;
use model::time::Timestamp;
use model::view::NodeStatus;

use crate::world::*;

/// The cluster with these addresses behind each name; names without any stand nowhere.
fn at_addresses(cluster: &Cluster, all: &[(&str, &[&str])]) -> Cluster {
    let lifetimes = Lifetimes { least: Duration::from_secs(5), most: Duration::from_secs(300) };
    let mut membership = Membership::new(1, lifetimes);
    let keys: BTreeSet<_> = names(cluster).collect();
    membership.configured(Timestamp::ZERO, &keys, lifetimes);
    for key in keys {
        let found = all.iter().find(|(id, _)| *key.name == format!("{id}.test"));
        let addresses: Vec<IpAddr> =
            found.map_or(Vec::new(), |(_, ips)| ips.iter().map(|ip| ip.parse().unwrap()).collect());
        membership.answered(Timestamp::ZERO, &key, Answered::Found { addresses, ttl: Duration::from_secs(60) });
    }
    expand(cluster, &membership).unwrap()
}

/// Probed, and judged by traffic: one failure ejects for 60 s.
fn judged(ids: &[&str]) -> Cluster {
    with(active("c", ids, probed()), |cluster| {
        cluster.health_check.passive = passive("c", &[], &[max_fails(1, 60.0)]).health_check.passive;
    })
}

#[test]
fn from_one_address_to_several_and_back_nothing_is_lost() {
    let written = judged(&["a", "b"]);
    let one = at_addresses(&written, &[("a", &["10.0.0.1"]), ("b", &["10.0.1.1"])]);
    let two = at_addresses(&written, &[("a", &["10.0.0.1", "10.0.0.2"]), ("b", &["10.0.1.1"])]);
    let mut world = World::of(std::slice::from_ref(&one));
    world.run_until(7.0);
    world.outcome("a", refused());
    let before = world.destination("a");
    assert_eq!(before.health, HealthPair::new(Healthy, Unhealthy));
    world.configure(std::slice::from_ref(&two));
    let after = world.destination("a[10.0.0.1]");
    assert_eq!((after.slot, after.health, after.reactivation_at), (before.slot, before.health, before.reactivation_at));
    assert_eq!((after.counter, after.next_probe_at), (before.counter, before.next_probe_at));
    assert_eq!(world.health("a[10.0.0.2]"), HealthPair::default());
    world.run_until(7.0);
    assert_eq!(world.probe_times("a[10.0.0.2]"), [7.0], "a new address is probed at once");
    assert_eq!(world.available("c"), ["a[10.0.0.2]", "b"]);
    world.run_until(20.0);
    let slot = world.slot("a[10.0.0.1]");
    world.configure(std::slice::from_ref(&one));
    assert_eq!((world.slot("a"), world.health("a")), (slot, HealthPair::new(Healthy, Unhealthy)));
    world.run_until(66.9);
    assert_eq!(world.health("a").passive, Unhealthy);
    world.run_until(67.0);
    assert_eq!(world.health("a").passive, Unknown);
}

#[test]
fn an_address_that_is_back_within_ten_minutes_goes_on_and_later_begins_anew() {
    let written = judged(&["a"]);
    let both = at_addresses(&written, &[("a", &["10.0.0.1", "10.0.0.2"])]);
    let first = at_addresses(&written, &[("a", &["10.0.0.1"])]);
    let mut world = World::new();
    world.answers.insert("a[10.0.0.2]".to_owned(), Answer::status(500));
    world.configure(std::slice::from_ref(&both));
    world.run_until(20.0);
    world.outcome("a[10.0.0.2]", refused());
    let sick = world.destination("a[10.0.0.2]");
    assert_eq!(sick.health, HealthPair::new(Unhealthy, Unhealthy));
    world.configure(std::slice::from_ref(&first));
    world.run_until(50.0);
    world.probes.clear();
    world.configure(std::slice::from_ref(&both));
    let back = world.destination("a[10.0.0.2]");
    assert_eq!((back.slot, back.health, back.reactivation_at), (sick.slot, sick.health, Some(at(80.0))));
    assert_eq!(world.available("c"), ["a[10.0.0.1]"], "it does not come back as a clean one");
    world.run_until(50.0);
    assert_eq!(world.probe_times("a[10.0.0.2]"), [50.0], "and is probed at once");

    world.configure(std::slice::from_ref(&first));
    assert!(world.freed.is_empty());
    world.run_until(649.0);
    assert!(world.freed.is_empty());
    world.run_until(651.0);
    assert_eq!(world.freed, [sick.slot]);
    world.configure(std::slice::from_ref(&both));
    assert_ne!(world.slot("a[10.0.0.2]"), sick.slot);
    assert_eq!(world.health("a[10.0.0.2]"), HealthPair::default());
}

#[test]
fn an_ejection_that_ended_while_its_address_was_away_is_over_when_it_is_back() {
    let written = judged(&["a"]);
    let both = at_addresses(&written, &[("a", &["10.0.0.1", "10.0.0.2"])]);
    let mut world = World::of(std::slice::from_ref(&both));
    world.run_until(10.0);
    world.outcome("a[10.0.0.2]", refused());
    world.configure(&[at_addresses(&written, &[("a", &["10.0.0.1"])])]);
    world.run_until(100.0);
    world.configure(std::slice::from_ref(&both));
    world.run_until(100.1);
    assert_eq!(world.health("a[10.0.0.2]").passive, Unknown);
}

#[test]
fn what_is_configured_away_is_forgotten_with_its_absent_addresses() {
    let written = judged(&["a", "b"]);
    let both = at_addresses(&written, &[("a", &["10.0.0.1", "10.0.0.2"]), ("b", &["10.0.1.1"])]);
    for is_cluster_gone in [true, false] {
        let mut world = World::of(std::slice::from_ref(&both));
        world.run_until(10.0);
        world.configure(&[at_addresses(&written, &[("a", &["10.0.0.1"]), ("b", &["10.0.1.1"])])]);
        assert!(world.freed.is_empty());
        let rest = at_addresses(&judged(&["b"]), &[("b", &["10.0.1.1"])]);
        world.configure(if is_cluster_gone { &[] } else { std::slice::from_ref(&rest) });
        assert_eq!(world.freed.len(), if is_cluster_gone { 3 } else { 2 });
    }
}

#[test]
fn a_name_without_address_gets_no_traffic_and_its_address_inherits_nothing() {
    let written = judged(&["a", "b"]);
    let nowhere = at_addresses(&written, &[("b", &["10.0.1.1"])]);
    let mut world = World::new();
    world.answers.insert("a".to_owned(), Answer::fails(FailureKind::Dns));
    world.configure(std::slice::from_ref(&nowhere));
    assert_eq!(world.available("c"), ["b"]);
    let a = world.destination("a");
    assert_eq!((a.because, a.status), (Because::NoAddress, NodeStatus::Unhealthy));
    world.run_until(10.0);
    assert_eq!((world.health("a").active, world.destination("a").probe_failure), (Unhealthy, Some(FailureKind::Dns)));

    world.answers.insert("a".to_owned(), Answer::status(500));
    world.configure(&[at_addresses(&written, &[("a", &["10.0.0.1"]), ("b", &["10.0.1.1"])])]);
    assert_eq!(world.health("a"), HealthPair::default(), "neither the sickness nor the health of before");
    let now = world.now;
    world.run_until(10.0);
    assert!(world.probes.iter().any(|probe| probe.at == now && probe.base.literal().is_some()), "a probe at once");
    world.run_until(15.0);
    assert_eq!(world.health("a").active, Unhealthy);

    // And the other way: a healthy one whose name loses its address.
    world.configure(&[at_addresses(&written, &[("a", &["10.0.0.1"])])]);
    assert_eq!(world.health("b"), HealthPair::default());
    assert_eq!(world.available("c"), Vec::<String>::new(), "panic does not revive who has no address");
}

#[test]
fn names_that_come_and_go_at_random_never_contradict_themselves() {
    // The core checks its invariants after each input.
    let written = judged(&["a", "b", "c"]);
    let pool = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "2001:db8::1"];
    for seed in 0..8 {
        let mut random = Random::new(seed);
        let mut world = World::new();
        let mut time = 0.0;
        for _ in 0..120 {
            let some =
                |random: &mut Random| -> Vec<&str> { pool.iter().copied().filter(|_| random.below(2) == 0).collect() };
            let (a, b, c) = (some(&mut random), some(&mut random), some(&mut random));
            let mut next = at_addresses(&written, &[("a", &a), ("b", &b), ("c", &c)]);
            match random.below(12) {
                0 => next.health_check.active = None,
                1 => next.health_check.passive = None,
                2 => next.destinations.truncate(1),
                _ => {}
            }
            world.configure(&[next]);
            let shown = world.cluster("c");
            if let Some(one) = shown.destinations.get(random.below(shown.destinations.len().max(1))) {
                let outcome = if random.below(3) == 0 { refused() } else { ok() };
                world.outcome(one.id.as_str(), outcome);
            }
            time += random.unit() * if random.below(20) == 0 { 700.0 } else { 9.0 };
            world.run_until(time);
        }
        world.configure(&[]);
        let freed: BTreeSet<_> = world.freed.iter().collect();
        assert_eq!(freed.len(), world.freed.len(), "each slot is freed once");
    }
}
