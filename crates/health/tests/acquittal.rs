//! A probe that got not a byte convicts nobody whose requests are answered meanwhile: full is not dead.

use health::{Input, Pulse};
use model::active::ProbeRound;
use model::address::Url;
use model::cluster::Cluster;
use model::event::EventKind;
use model::guards::{AnsweringDestination, Guards};
use model::outcome::FailureKind;
use model::passive::{ConsecutiveErrors, PassivePolicy};

use crate::world::*;

fn watched() -> Cluster {
    let policy = PassivePolicy::ConsecutiveErrors(ConsecutiveErrors::default());
    with(passive("c", &["a", "b"], &[policy]), |cluster| {
        cluster.health_check.active = Some(probed());
        cluster.health_check.guards.answering = AnsweringDestination::Stays;
    })
}

/// Until `end` a request of `a` is answered each 100 ms, after three seconds in its queue.
fn answered(world: &mut World, end: f64) {
    answered_after(world, 3.0, end);
}

fn answered_after(world: &mut World, wait: f64, end: f64) {
    let first = (world.now.as_secs_f64() * 10.0).round() as u32 + 1;
    for tenth in first..=(end * 10.0).round() as u32 {
        world.run_until(f64::from(tenth) / 10.0);
        world.outcome("a", ok());
        let now = world.now.as_secs_f64();
        let pulse = Pulse { mean: Some(secs(wait)), ..crate::doubt::pulse(world, "a", 0, now) };
        world.input(Input::PulsesTaken { pulses: vec![pulse] });
    }
}

/// Twenty seconds in which the probes of `a` come to this and its requests are answered.
fn after_twenty_seconds(cluster: Cluster, answer: Answer) -> World {
    let mut world = World::of(&[cluster]);
    answered(&mut world, 10.0);
    world.answers.insert("a".to_owned(), answer);
    answered(&mut world, 30.0);
    world
}

#[test]
fn a_full_one_that_answers_its_requests_stays_whether_it_refuses_probes_or_lets_them_wait() {
    for round in [ProbeRound::Destination, ProbeRound::Cluster] {
        for answer in [Answer::fails(FailureKind::Refused), Answer::fails(FailureKind::ConnectTimeout), Answer::hangs()]
        {
            let cluster = with(watched(), |cluster| cluster.health_check.active.as_mut().unwrap().round = round);
            let mut world = after_twenty_seconds(cluster, answer);
            assert_eq!(world.health("a").active, Healthy, "{answer:?}");
            assert_eq!(world.available("c"), ["a", "b"]);
        }
    }
}

#[test]
fn it_is_out_with_the_next_probe_when_the_answers_stop() {
    for (answer, longest) in [(Answer::fails(FailureKind::Refused), 1.7), (Answer::hangs(), 5.1)] {
        let mut world = after_twenty_seconds(watched(), answer);
        world.run_until(30.0 + longest);
        assert_eq!(world.health("a").active, Unhealthy, "{answer:?}");
    }
}

#[test]
fn the_dead_are_out_with_one_more_probe_of_a_second_at_most() {
    let out_at = |cluster: Cluster, answer| {
        let mut world = World::of(&[cluster]);
        answered(&mut world, 10.0);
        world.answers.insert("a".to_owned(), answer);
        world.run_until(60.0);
        assert_eq!(world.health("a").active, Unhealthy);
        world.destination("a").changed_at.unwrap()
    };
    // A refusal is confirmed after 250 ms, and an answer of before speaks for 500: then the next probe decides, a second later.
    for (answer, at_most) in [(Answer::fails(FailureKind::Refused), 1.0), (Answer::hangs(), 0.0)] {
        let alone = with(watched(), |cluster| cluster.health_check.guards = Guards::default());
        let later = out_at(watched(), answer).since(out_at(alone, answer));
        assert!(later <= secs(at_most), "{answer:?}: {later:?} later");
    }
}

#[test]
fn sums_of_good_answers_speak_for_it_as_well() {
    let cluster = with(passive("c", &["a"], &[crate::doubt::refusals()]), |cluster| {
        cluster.health_check.active = Some(probed());
        cluster.health_check.guards.answering = AnsweringDestination::Stays;
    });
    let mut world = World::of(&[cluster]);
    for third in 1..20 {
        world.run_until(f64::from(third) / 3.0);
        world.answers.insert("a".to_owned(), Answer::fails(FailureKind::Refused));
        world.sums("a", 3);
    }
    assert_ne!(world.health("a").active, Unhealthy);
    world.run_until(15.0);
    assert_eq!(world.health("a").active, Unhealthy);
}

#[test]
fn a_status_that_says_no_is_believed_and_one_that_asks_for_less_is_not() {
    for (status, health) in [(503, Unhealthy), (404, Unhealthy), (429, Healthy), (529, Healthy)] {
        let mut world = after_twenty_seconds(watched(), Answer::status(status));
        assert_eq!(world.health("a").active, health, "{status}");
    }
}

#[test]
fn probes_to_another_port_are_believed_and_so_are_all_where_no_guard_is_asked_for() {
    let elsewhere = with(watched(), |cluster| {
        cluster.destinations[0].health = Some(Url::parse("http://a.test:9000/").unwrap());
    });
    let strict = with(watched(), |cluster| cluster.health_check.guards = Guards::default());
    for cluster in [elsewhere, strict] {
        let mut world = after_twenty_seconds(cluster, Answer::fails(FailureKind::Refused));
        assert_eq!(world.health("a").active, Unhealthy);
    }
    let page = with(watched(), |cluster| {
        cluster.destinations[0].health = Some(Url::parse("http://a.test/health").unwrap());
    });
    let mut world = after_twenty_seconds(page, Answer::fails(FailureKind::Refused));
    assert_eq!(world.health("a").active, Healthy);
}

/// Who was kept, by which policy, and for which failures.
fn kept(world: &World) -> Vec<(String, String, Vec<FailureKind>)> {
    let told = world.events.iter().filter_map(|event| match &event.kind {
        EventKind::Kept { destination, policy, evidence } => {
            let failures = evidence.last.iter().filter_map(|seen| seen.failure).collect();
            Some((destination.destination.to_string(), policy.clone(), failures))
        }
        _ => None,
    });
    told.collect()
}

#[test]
fn it_is_told_once_that_one_is_spared_and_anew_after_a_passed_probe() {
    let mut world = after_twenty_seconds(watched(), Answer::fails(FailureKind::Refused));
    let told = kept(&world);
    assert_eq!(told.len(), 1, "{told:?}");
    let (destination, policy, failures) = &told[0];
    assert_eq!((destination.as_str(), policy.as_str()), ("a", "ConsecutiveFailures"));
    assert!(!failures.is_empty() && failures.iter().all(|failure| *failure == FailureKind::Refused));
    world.answers.insert("a".to_owned(), Answer::status(200));
    answered(&mut world, 45.0);
    world.answers.insert("a".to_owned(), Answer::fails(FailureKind::Refused));
    answered(&mut world, 60.0);
    assert_eq!(kept(&world).len(), 2);
}

#[test]
fn nobody_is_told_to_stay_who_is_out() {
    let mut world = World::of(&[watched()]);
    world.run_until(10.0);
    world.answers.insert("a".to_owned(), Answer::fails(FailureKind::Refused));
    world.run_until(20.0);
    assert_eq!(world.health("a").active, Unhealthy);
    // As where nobody is left and all serve, or where long answers of before end.
    answered(&mut world, 60.0);
    assert_eq!((world.health("a").active, kept(&world)), (Unhealthy, vec![]));
}

#[test]
fn answers_speak_for_one_where_no_policy_watches_its_traffic() {
    let cluster = with(watched(), |cluster| cluster.health_check.passive = None);
    let mut world = World::of(&[cluster]);
    for third in 1..60 {
        world.run_until(f64::from(third) / 3.0);
        world.answers.insert("a".to_owned(), Answer::fails(FailureKind::Refused));
        world.sums("a", 3);
    }
    assert_ne!(world.health("a").active, Unhealthy);
    world.run_until(30.0);
    assert_eq!(world.health("a").active, Unhealthy);
}

#[test]
fn one_whose_probes_hang_is_out_though_it_answers_the_rest_unless_requests_wait_as_long() {
    // Its probes have two seconds.
    for (wait, health) in [(0.02, Unhealthy), (0.9, Unhealthy), (1.1, Healthy)] {
        let mut world = World::of(&[watched()]);
        answered_after(&mut world, wait, 10.0);
        world.answers.insert("a".to_owned(), Answer::hangs());
        answered_after(&mut world, wait, 30.0);
        assert_eq!(world.health("a").active, health, "requests take {wait} s");
    }
    let mut quick = World::of(&[watched()]);
    quick.answers.insert("a".to_owned(), Answer::fails(FailureKind::Refused));
    answered_after(&mut quick, 0.02, 20.0);
    assert_ne!(quick.health("a").active, Unhealthy, "nobody waits to be refused");
}
