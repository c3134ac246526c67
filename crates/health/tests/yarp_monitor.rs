//! YARP's active monitor, rows A1 to A18: each test says YARP's result and states ours. User-Agent (A16, A17) and the
//! readiness flag (A9 to A11: `/readyz`) belong to the shells.

use std::sync::{Arc, Mutex};

use health::Registry;
use health::active::{ActivePolicy, ActiveVerdict, ClusterProbes, ProbeResult};
use model::active::{ActivePolicy as Options, ProbeRound};
use model::address::Url;
use model::cluster::Cluster;
use model::outcome::FailureKind;
use model::time::Timestamp;

use crate::world::*;

type Seen = Arc<Mutex<Vec<(String, Vec<ProbeResult>)>>>;

/// Notes what it is asked.
#[derive(Debug)]
struct Witness(Seen);

impl ActivePolicy for Witness {
    fn name(&self) -> &str {
        "Witness"
    }
    fn on_probes(&mut self, _: Timestamp, cluster: &ClusterProbes<'_>, results: &[ProbeResult]) -> Vec<ActiveVerdict> {
        self.0.lock().unwrap().push((cluster.id.to_string(), results.to_vec()));
        Vec::new()
    }
}

fn witnessed(round: ProbeRound) -> (World, Seen, impl Fn(&str, &[&str]) -> Cluster) {
    let seen = Seen::default();
    let mut registry = Registry::default();
    let notes = seen.clone();
    registry.active("Witness", move || Witness(notes.clone()));
    let check = with(probed(), |check| {
        check.policy = Options::Custom("Witness".into());
        check.round = round;
        check.interval = secs(10.0);
    });
    (World::with_registry(registry), seen, move |id, destinations| active(id, destinations, check.clone()))
}

/// YARP: one GET per destination of the enabled clusters, each policy called once with both results.
/// Ours: the same with rounds; by default a call per result.
#[test]
fn a1_enabled_clusters_are_probed_and_judged_by_their_own_policy() {
    for (round, calls) in [(ProbeRound::Cluster, vec![2]), (ProbeRound::Destination, vec![1, 1])] {
        let (mut world, seen, checked) = witnessed(round);
        world.configure(&[checked("one", &["a", "b"]), cluster("off", &["x", "y"]), checked("two", &["c", "d"])]);
        world.run_until(1.0);
        assert_eq!(world.probes.len(), 4);
        for id in ["one", "two"] {
            let seen = seen.lock().unwrap();
            let sizes: Vec<usize> = seen.iter().filter(|call| call.0 == id).map(|call| call.1.len()).collect();
            assert_eq!(sizes, calls, "{id}");
        }
    }
}

/// YARP: timers hold the interval, a probe and a call per fire; after a removal only the other goes on (A3). Ours: alike.
#[test]
fn a2_a3_each_round_is_one_call() {
    let (mut world, seen, checked) = witnessed(ProbeRound::Cluster);
    world.configure(&[checked("one", &["a"]), checked("two", &["b"])]);
    world.run_until(35.0);
    let calls = |id: &str| seen.lock().unwrap().iter().filter(|call| call.0 == id).count();
    assert_eq!((calls("one"), calls("two")), (4, 4));
    world.configure(&[checked("two", &["b"])]);
    world.run_until(100.0);
    assert_eq!((calls("one"), world.probe_times("a").len()), (4, 4));
    assert!(calls("two") >= 9);
}

/// YARP: a cluster added after the start is probed one interval later (A4), and so is one whose check a reload turned on
/// (A15). Ours: at once.
#[test]
fn a4_a15_what_a_reload_adds_or_turns_on_is_probed_at_once() {
    let mut world = World::of(&[cluster("c", &["a"])]);
    world.run_until(7.0);
    world.configure(&[active("c", &["a"], probed()), active("d", &["b"], probed())]);
    world.run_until(7.01);
    assert_eq!((world.probe_times("a"), world.probe_times("b").len()), (vec![7.0], 1));
}

/// YARP: the next fire uses the new URI. Ours: a new health URL is probed at once; the probe in flight is called off.
#[test]
fn a5_a_new_health_url_is_probed_at_once() {
    let with_health = |url: Option<&str>| {
        with(active("c", &["a"], probed()), |cluster| {
            cluster.destinations[0].health = url.map(|url| Url::parse(url).unwrap());
        })
    };
    let mut world = World::manual(&[with_health(Some("http://a.test:81/"))]);
    world.run_until(0.5);
    let slot = world.slot("a");
    world.configure(&[with_health(None)]);
    world.run_until(0.5);
    let bases: Vec<String> = world.probes.iter().map(|order| order.base.to_string()).collect();
    assert_eq!(bases, ["http://a.test:81/", "http://a.test/"]);
    assert_eq!((world.cancelled.len(), world.slot("a")), (1, slot));
}

/// YARP: no probe any more, the one in flight still writes its value. Ours: the value is Unknown and stays so.
#[test]
fn a6_turning_the_check_off_ignores_the_probe_in_flight() {
    let mut world = World::manual(&[active("c", &["a"], probed())]);
    world.run_until(0.1);
    let ticket = world.probes[0].ticket;
    world.configure(&[cluster("c", &["a"])]);
    world.input(health::Input::Probed(health::Probed { ticket, failure: None, status: Some(200) }));
    world.run_until(100.0);
    assert_eq!((world.health("a").active, world.probes.len()), (Unknown, 1));
    assert_eq!(world.core.ignored().tickets, 1);
}

/// YARP: a response whatever its status, or an exception. Ours: the same facts, the failure's kind told apart.
#[test]
fn a7_results_are_each_destinations_own() {
    let (mut world, seen, checked) = witnessed(ProbeRound::Cluster);
    world.answers.insert("a".to_owned(), Answer::status(500));
    world.answers.insert("b".to_owned(), Answer::fails(FailureKind::Refused));
    world.configure(&[checked("c", &["a", "b", "d"])]);
    world.run_until(1.0);
    let results = seen.lock().unwrap()[0].1.clone();
    let facts: Vec<_> = results.iter().map(|result| (result.slot, result.failure, result.status)).collect();
    let expected = [
        (world.slot("a"), Some(FailureKind::Status), Some(500)),
        (world.slot("b"), Some(FailureKind::Refused), None),
        (world.slot("d"), None, Some(200)),
    ];
    assert_eq!(facts, expected);
}

/// YARP: a cancellation that is not its timeout is a failed probe. Ours: it says nothing, the others count.
#[test]
fn a12_a13_a_cancelled_probe_says_nothing() {
    let (mut world, seen, checked) = witnessed(ProbeRound::Cluster);
    world.answers.insert("a".to_owned(), Answer::fails(FailureKind::Cancelled));
    world.configure(&[checked("c", &["a", "b"])]);
    world.run_until(1.0);
    let results = seen.lock().unwrap()[0].1.clone();
    assert_eq!(results.iter().map(|result| result.slot).collect::<Vec<_>>(), [world.slot("b")]);
    assert_eq!(world.destination("a").probed_at, None);
}

/// YARP: one result without a response. Ours: the same, named a timeout.
#[test]
fn a14_a_timeout_is_a_failed_probe() {
    let mut world = World::new();
    world.answers.insert("a".to_owned(), Answer::hangs());
    world.configure(&[active("c", &["a"], probed())]);
    world.run_until(2.1);
    assert_eq!(world.destination("a").probe_failure, Some(FailureKind::HeadTimeout));
}

/// YARP: the verdict of the fast one waits for the slow one's timeout, and so does everybody's next round.
/// Ours: nobody waits for anybody.
#[test]
fn a18_a_hanging_destination_delays_nobody() {
    let check = with(probed(), |check| {
        check.interval = secs(15.0);
        check.timeout = secs(10.0);
    });
    let mut world = World::new();
    world.answers.insert("d1".to_owned(), Answer::status(200).after(0.01));
    world.answers.insert("d2".to_owned(), Answer::hangs());
    world.configure(&[active("c", &["d1", "d2"], check)]);
    world.run_until(0.011);
    assert_eq!(world.health("d1").active, Healthy);
    world.run_until(16.0);
    assert_eq!(world.probe_times("d1").len(), 2);
}
