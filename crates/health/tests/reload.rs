//! What a reload keeps, what it forgets, and that it never starves or doubles a probe.

use std::sync::Arc;

use model::active::{ActivePolicy, ProbeRound};
use model::address::Url;
use model::cluster::Cluster;
use model::event::Cause;
use model::health::{CheckKind, HealthPair};
use model::random::Random;

use crate::world::*;

fn touched(cluster: Cluster, round: usize) -> Cluster {
    with(cluster, |cluster| {
        cluster.metadata.insert("round".to_owned(), round.to_string());
    })
}

fn gaps(times: &[f64]) -> Vec<f64> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn twenty_reloads_keep_the_sick_one_out_and_burst_nothing() {
    let check = with(probed(), |check| check.policy = ActivePolicy::ConsecutiveFailures { threshold: 3 });
    let mut world = World::new();
    world.answers.insert("b".to_owned(), Answer::status(500));
    let cluster = active("c", &["a", "b"], check);
    world.configure(std::slice::from_ref(&cluster));
    world.run_until(30.0);
    assert_eq!(world.available("c"), ["a"]);
    let before = world.probes.len();
    for round in 0..20_u32 {
        world.run_until(30.0 + f64::from(round));
        let kept = world.destination("b");
        // Another route changes nothing here; every other time something of the cluster itself does.
        let next = if round % 2 == 0 { cluster.clone() } else { touched(cluster.clone(), round as usize) };
        world.configure(&[next]);
        assert_eq!(world.destination("b"), kept, "state, counts and next probe time survive");
        assert_eq!(world.available("c"), ["a"]);
    }
    world.run_until(50.0);
    assert!(world.probes.len() - before <= 10, "{} probes in 20 s", world.probes.len() - before);
}

#[test]
fn reloads_at_random_times_leave_one_probe_stream_per_destination() {
    let ids: Vec<String> = (0..30).map(|n| format!("d{n}")).collect();
    let clusters: Vec<Cluster> = (0..3)
        .map(|n| {
            let own: Vec<&str> = ids[n * 10..n * 10 + 10].iter().map(String::as_str).collect();
            active(&format!("c{n}"), &own, probed())
        })
        .collect();
    let mut world = World::of(&clusters);
    for (n, id) in ids.iter().enumerate() {
        let status = if n % 3 == 0 { 500 } else { 200 };
        world.answers.insert(id.clone(), Answer::status(status));
    }
    let mut random = Random::new(3);
    let mut time = 0.5;
    for round in 0..30 {
        time += 0.1 + 1.9 * random.unit();
        world.run_until(time);
        let next: Vec<Cluster> = clusters.iter().cloned().map(|cluster| touched(cluster, round)).collect();
        world.configure(&next);
        if round % 7 == 0 {
            time += 0.005;
            world.run_until(time);
            world.configure(&clusters);
        }
    }
    let end = time + 100.0;
    world.run_until(end);
    for (n, id) in ids.iter().enumerate() {
        let late: Vec<f64> = world.probe_times(id).into_iter().filter(|start| *start > time + 5.5).collect();
        assert!(gaps(&late).iter().all(|gap| (gap / 5.0 - 1.0).abs() <= 0.0501), "{id}: {late:?}");
        assert!(late.len() >= 17, "{id}: {}", late.len());
        let expected = if n % 3 == 0 { Unhealthy } else { Healthy };
        assert_eq!(world.health(id).active, expected, "{id}");
    }
}

#[test]
fn adding_and_removing_a_fifth_destination_keeps_ejections_and_cadence() {
    let four = ["a", "b", "c", "d"];
    let make = |ids: &[&str]| {
        with(active("c", ids, probed()), |cluster| {
            cluster.health_check.passive = passive("c", &[], &[failure_rate(0.3, 60.0, 10)]).health_check.passive;
        })
    };
    let mut world = World::new();
    world.answers.insert("d".to_owned(), Answer::status(500));
    world.configure(&[make(&four)]);
    world.run_until(20.0);
    for _ in 0..10 {
        world.outcome("c", refused());
    }
    let deadline = world.destination("c").reactivation_at;
    assert_eq!(deadline, Some(at(80.0)));
    for step in 0..150_u32 {
        world.run_until(20.0 + f64::from(step) * 0.2);
        world.configure(&[if step % 2 == 0 { make(&["a", "b", "c", "d", "e"]) } else { make(&four) }]);
        let available = world.available("c");
        assert!(!available.contains(&"d".to_owned()) && !available.contains(&"c".to_owned()), "{available:?}");
        assert_eq!(world.destination("c").reactivation_at, deadline);
    }
    for id in ["a", "b"] {
        let gaps = gaps(&world.probe_times(id));
        assert!(gaps.iter().all(|gap| (gap / 5.0 - 1.0).abs() <= 0.0501), "{id}: {gaps:?}");
        assert!(world.probe_times(id).len() >= 9);
    }
    world.run_until(79.999);
    assert_eq!(world.health("c").passive, Unhealthy);
    world.run_until(80.0);
    assert_eq!(world.health("c").passive, Unknown);
}

#[test]
fn each_option_takes_effect_within_the_shorter_interval() {
    let slow = with(probed(), |check| {
        check.interval = secs(10.0);
        check.unhealthy_interval = secs(10.0);
    });
    let mut world = World::of(&[cluster("c", &["a"])]);
    world.run_until(3.0);
    assert_eq!(world.probes.len(), 0);
    world.configure(&[active("c", &["a"], slow.clone())]);
    world.run_until(3.5);
    assert_eq!(world.probe_times("a"), [3.0]);

    let fast = with(slow, |check| {
        check.interval = secs(1.0);
        check.unhealthy_interval = secs(1.0);
    });
    world.configure(&[active("c", &["a"], fast.clone())]);
    world.run_until(4.1);
    assert_eq!(world.probe_times("a").len(), 2, "10 s -> 1 s");

    let check = with(fast.clone(), |check| check.request.path = Some("/other".to_owned()));
    world.configure(&[active("c", &["a"], check)]);
    world.run_until(5.2);
    assert_eq!(world.probes.last().unwrap().request.path.as_deref(), Some("/other"));

    let check = with(fast.clone(), |check| check.timeout = secs(0.5));
    world.configure(&[active("c", &["a"], check)]);
    world.run_until(6.3);
    assert_eq!(world.probes.last().unwrap().timeout, secs(0.5));

    world.answers.insert("a".to_owned(), Answer::status(500));
    let check = with(fast.clone(), |check| check.policy = ActivePolicy::ConsecutiveFailures { threshold: 9 });
    world.configure(&[active("c", &["a"], check)]);
    world.run_until(10.5);
    assert_eq!(world.health("a").active, Healthy);
    world.configure(&[active("c", &["a"], fast)]);
    world.run_until(11.6);
    assert_eq!(world.health("a").active, Unhealthy, "the kept count is judged at the next result");
}

#[test]
fn flipping_the_check_fifty_times_leaves_one_probe_stream() {
    for round in [ProbeRound::Destination, ProbeRound::Cluster] {
        let on = active("c", &["a", "b"], with(probed(), |check| check.round = round));
        let off = cluster("c", &["a", "b"]);
        let mut world = World::of(&[]);
        world.answers.insert("a".to_owned(), Answer::status(200).after(0.3));
        for flip in 0..51_u32 {
            world.run_until(f64::from(flip) * 0.003);
            world.configure(&[if flip % 2 == 0 { on.clone() } else { off.clone() }]);
        }
        let start = world.now.as_secs_f64();
        world.run_until(start + 60.0);
        for id in ["a", "b"] {
            let late: Vec<f64> = world.probe_times(id).into_iter().filter(|time| *time >= start).collect();
            assert!((12..=13).contains(&late.len()), "{id}: {late:?}");
            assert!(gaps(&late).iter().all(|gap| (gap / 5.0 - 1.0).abs() <= 0.0501), "{id}: {late:?}");
            assert_eq!(world.health(id).active, Healthy);
        }
    }
}

#[test]
fn a_new_address_is_another_server() {
    let make = |address: &str| {
        with(active("c", &["a", "b"], probed()), |cluster| {
            cluster.health_check.passive = passive("c", &[], &[max_fails(1, 60.0)]).health_check.passive;
            cluster.destinations[0].address = Url::parse(address).unwrap();
        })
    };
    let mut world = World::of(&[make("http://one.test/")]);
    world.answers.insert("a".to_owned(), Answer::status(500));
    world.run_until(20.0);
    world.outcome("a", refused());
    assert_eq!(world.health("a"), HealthPair::new(Unhealthy, Unhealthy));
    let (slot, n) = (world.slot("a"), world.transitions().len());
    world.answers.insert("a".to_owned(), Answer::status(200));
    world.configure(&[make("http://two.test/")]);
    assert_eq!(world.health("a"), HealthPair::default());
    assert_eq!(world.destination("a").reactivation_at, None);
    assert!(world.transitions()[n..].iter().all(|transition| transition.cause == Cause::AddressChanged));
    assert_eq!(world.transitions().len(), n + 2);
    assert_ne!(world.slot("a"), slot);
    assert_eq!(world.freed, [slot]);
    world.run_until(20.1);
    assert_eq!(world.health("a").active, Healthy, "probed at once");
}

#[test]
fn turning_a_check_off_forgets_it_and_only_it() {
    let both = with(active("c", &["a"], probed()), |cluster| {
        cluster.health_check.passive = passive("c", &[], &[max_fails(1, 60.0)]).health_check.passive;
    });
    let mut world = World::of(std::slice::from_ref(&both));
    world.run_until(1.0);
    world.outcome("a", refused());
    assert_eq!(world.health("a"), HealthPair::new(Healthy, Unhealthy));
    world.configure(&[with(both.clone(), |cluster| cluster.health_check.passive = None)]);
    assert_eq!(world.health("a"), HealthPair::new(Healthy, Unknown));
    assert_eq!(world.transitions().last().unwrap().cause, Cause::CheckOff);
    assert_eq!(world.transitions().last().unwrap().check, CheckKind::Passive);
    world.configure(std::slice::from_ref(&both));
    assert_eq!((world.health("a").passive, world.destination("a").reactivation_at), (Unknown, None));
    world.configure(&[with(both, |cluster| cluster.health_check.active = None)]);
    assert_eq!(world.health("a"), HealthPair::default());
    assert_eq!(world.destination("a").next_probe_at, None);
}

#[test]
fn a_refused_configuration_only_leaves_its_event() {
    let mut world = World::of(&[active("c", &["a"], probed())]);
    world.run_until(1.0);
    let (view, n) = (world.core.view(), world.events.len());
    world.input(health::Input::ConfigRefused { summary: "line 3".to_owned() });
    assert_eq!(world.events.len(), n + 1);
    assert!(Arc::ptr_eq(&view.clusters[0], &world.core.view().clusters[0]), "unchanged clusters are shared");
}

#[test]
fn changing_between_rounds_and_single_probes_keeps_the_values() {
    let make = |round| active("c", &["a", "b"], with(probed(), |check| check.round = round));
    let mut world = World::of(&[make(ProbeRound::Destination)]);
    world.answers.insert("b".to_owned(), Answer::status(500));
    world.run_until(12.0);
    for (n, round) in [ProbeRound::Cluster, ProbeRound::Destination, ProbeRound::Cluster].into_iter().enumerate() {
        world.configure(&[make(round)]);
        assert_eq!((world.health("a").active, world.health("b").active), (Healthy, Unhealthy));
        let end = 12.0 + 30.0 * (n as f64 + 1.0);
        let before = world.probes.len();
        world.run_until(end);
        assert!((12..=14).contains(&(world.probes.len() - before)), "{}", world.probes.len() - before);
    }
}
