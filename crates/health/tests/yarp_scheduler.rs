//! YARP's scheduler, rows S1 to S10: scheduling is always ours, so each test says YARP's result and states ours.

use model::active::ProbeRound;
use model::cluster::{Cluster, Compat};

use crate::world::*;

fn every(id: &str, destination: &str, seconds: f64) -> Cluster {
    let check = with(probed(), |check| {
        check.interval = secs(seconds);
        check.unhealthy_interval = check.interval;
    });
    with(active(id, &[destination], check), |cluster| cluster.compat = Compat::Yarp)
}

fn gaps(times: &[f64]) -> Vec<f64> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// YARP: each timer with its own period, from the end of one round to the start of the next.
/// Ours: from start to start, 5 % of jitter.
#[test]
fn s1_each_destination_keeps_its_own_interval() {
    let mut world = World::of(&[every("c", "a", 20.0), every("d", "b", 10.0)]);
    world.run_until(1000.0);
    for (id, interval) in [("a", 20.0), ("b", 10.0)] {
        let times = world.probe_times(id);
        assert!(gaps(&times).iter().all(|gap| (gap / interval - 1.0).abs() <= 0.0501), "{id}: {times:?}");
        assert!((times.len() as f64 - 1000.0 / interval).abs() <= 3.0, "{id}: {}", times.len());
    }
}

/// YARP: timers exist, unarmed, until Start; run-once ones are gone after their run.
/// Ours: there is no start beside the first configuration, and probes never run once.
#[test]
fn s2_nothing_runs_before_the_first_configuration() {
    let mut world = World::new();
    world.run_until(100.0);
    assert_eq!((world.probes.len(), world.core.poll_timeout()), (0, None));
}

/// YARP: a removed timer never runs, the others go on. Ours: the same.
#[test]
fn s3_s4_a_removed_cluster_is_probed_no_more_the_others_are() {
    let mut world = World::of(&[every("c", "a", 10.0), every("d", "b", 10.0)]);
    world.run_until(15.0);
    let before = world.probe_times("a").len();
    world.configure(&[every("d", "b", 10.0)]);
    world.run_until(60.0);
    assert_eq!(world.probe_times("a").len(), before);
    assert!(world.probe_times("b").len() >= 6);
}

/// YARP: a period changed before Start counts at Start; one changed later arms the timer with a full new period from
/// now. Ours: the next probe comes within the shorter one of old and new.
#[test]
fn s5_s6_a_changed_interval_counts_within_the_shorter_of_both() {
    let mut world = World::of(&[every("c", "a", 100.0)]);
    world.run_until(50.0);
    world.configure(&[every("c", "a", 10.0)]);
    world.run_until(60.001);
    assert!(world.probe_times("a")[1] <= 60.0, "{:?}", world.probe_times("a"));
    world.configure(&[every("c", "a", 100.0)]);
    let next = world.destination("a").next_probe_at.unwrap();
    assert!(next <= at(71.0), "{next}");
}

/// YARP: acts like scheduling it. Ours: a cluster that was not there is a new one, probed at once.
#[test]
fn s7_an_unknown_cluster_is_a_new_one() {
    let mut world = World::of(&[]);
    world.run_until(5.0);
    world.configure(&[every("c", "a", 10.0)]);
    world.run_until(5.0);
    assert_eq!(world.probe_times("a"), [5.0]);
}

/// YARP: scheduling an entity that is there is ignored. Ours: the same configuration again changes nothing.
#[test]
fn s8_the_same_again_keeps_the_timer() {
    let mut world = World::of(&[every("c", "a", 10.0)]);
    world.run_until(3.0);
    let timer = world.destination("a").next_probe_at;
    world.configure(&[every("c", "a", 10.0)]);
    assert_eq!(world.destination("a").next_probe_at, timer);
    assert_eq!(world.probes.len(), 1);
}

/// YARP: a change each 5 s with a period of 10 s, even to the same period, re-arms for a full period and so never fires.
/// Ours: no reload moves the clock.
#[test]
fn s9_frequent_reloads_starve_nobody() {
    let mut world = World::of(&[every("c", "a", 10.0)]);
    for round in 1..=20_u32 {
        world.run_until(f64::from(round) * 5.0);
        let cluster = with(every("c", "a", 10.0), |cluster| {
            cluster.metadata.insert("round".to_owned(), round.to_string());
        });
        world.configure(&[cluster]);
    }
    let times = world.probe_times("a");
    assert!((10..=11).contains(&times.len()), "{times:?}");
    assert!(gaps(&times).iter().all(|gap| (gap / 10.0 - 1.0).abs() <= 0.0501));
}

/// YARP: an action that throws is never run again. Ours: a driver that never answers does not end the schedule, by
/// destination or by round.
#[test]
fn s10_a_lost_probe_does_not_end_the_schedule() {
    for round in [ProbeRound::Destination, ProbeRound::Cluster] {
        let cluster = with(every("c", "a", 10.0), |cluster| {
            cluster.health_check.active.as_mut().unwrap().round = round;
        });
        let mut world = World::manual(&[cluster]);
        world.run_until(100.0);
        assert!((9..=11).contains(&world.probes.len()), "{}", world.probes.len());
        assert_eq!(world.cancelled.len() + 1, world.probes.len(), "each but the last was given up");
        assert_eq!(world.health("a").active, Unknown, "what the driver lost says nothing");
    }
}
