//! `Stall`: silence that is suspected, and silence that is not.

use health::{Input, Pulse};
use model::cluster::Cluster;
use model::event::EventKind;
use model::outcome::FailureKind;
use model::passive::{PassivePolicy, Stall};

use crate::doubt::{pulse, share};
use crate::world::*;

fn unprobed() -> Cluster {
    passive("c", &["a", "b"], &[PassivePolicy::Stall(Stall::default())])
}

/// A cluster whose probes come each 5 s.
fn with_probes() -> World {
    World::of(&[with(unprobed(), |cluster| cluster.health_check.active = Some(probed()))])
}

/// Ticks of 100 ms until then: `b` answers all the time, `a` is silent since `moved`. `change` makes the pulse of `a` another one.
fn silence(world: &mut World, until: f64, moved: f64, change: impl Fn(Pulse) -> Pulse) {
    let mut tick = world.now.as_secs_f64();
    while tick + 0.1 <= until + 1e-9 {
        tick += 0.1;
        world.run_until(tick);
        let pulses = vec![change(pulse(world, "a", 5, moved)), pulse(world, "b", 2, tick - 0.01)];
        world.input(Input::PulsesTaken { pulses });
    }
}

fn shares_told(world: &World) -> usize {
    world.events.iter().filter(|event| matches!(event.kind, EventKind::Share { .. })).count()
}

#[test]
fn a_server_that_hangs_while_others_move_gets_nothing_until_it_moves() {
    let mut world = World::of(&[unprobed()]);
    world.run_until(1.5);
    let pulses = vec![pulse(&mut world, "a", 3, 0.4), pulse(&mut world, "b", 2, 1.4)];
    world.input(Input::PulsesTaken { pulses });
    assert_eq!((share(&mut world, "a"), share(&mut world, "b")), (0.0, 1.0));
    assert_eq!(world.health("a").passive, Unknown);
    let pulses = vec![pulse(&mut world, "a", 3, 1.5), pulse(&mut world, "b", 2, 1.4)];
    world.input(Input::PulsesTaken { pulses });
    assert_eq!(share(&mut world, "a"), 1.0);
}

#[test]
fn clients_that_all_gave_up_do_not_bring_back_the_one_that_hangs() {
    let mut world = World::of(&[unprobed()]);
    let mut tell = |second: f64, waiting| {
        world.run_until(second);
        let pulses = vec![pulse(&mut world, "a", waiting, 0.4), pulse(&mut world, "b", 2, second)];
        world.input(Input::PulsesTaken { pulses });
        share(&mut world, "a")
    };
    assert_eq!(tell(1.5, 5), 0.0);
    assert_eq!(tell(1.6, 0), 0.0);
    assert_eq!(tell(11.4, 0), 0.0);
    // Then some are let through again, to see.
    assert_eq!(tell(11.6, 0), 1.0);
}

#[test]
fn silence_is_no_stall_where_nobody_moves_or_few_wait_or_answers_always_take_long_or_none_is_known() {
    let quick = Some(0.02);
    // Waiting, when the other one moved, the percentile and the slowest answer of late.
    let cases = [
        (3, 0.3, quick, quick),
        (2, 1.4, quick, quick),
        (3, 1.4, Some(0.5), Some(0.5)),
        (3, 1.4, quick, Some(1.2)),
        (3, 1.4, None, Some(0.3)),
        (3, 1.4, None, None),
    ];
    for (waiting, other_moved, p99, slowest) in cases {
        let mut world = World::of(&[unprobed()]);
        world.run_until(1.5);
        let stalled = pulse(&mut world, "a", waiting, 0.4);
        let known = |one| Pulse { first_byte_p99: p99.map(secs), slowest: slowest.map(secs), ..one };
        let pulses = vec![known(stalled), known(pulse(&mut world, "b", 2, other_moved))];
        world.input(Input::PulsesTaken { pulses });
        assert_eq!(share(&mut world, "a"), 1.0, "{waiting} {other_moved} {p99:?} {slowest:?}");
    }
}

#[test]
fn a_probe_that_passes_acquits_of_silence_until_the_destination_moves_again() {
    let mut world = with_probes();
    world.run_until(7.0);
    let regular = world.probes.len();
    // Long polls: the percentile is of quick answers, before them.
    silence(&mut world, 9.9, 7.0, |pulse| pulse);
    assert_eq!(world.probes.len(), regular + 1, "one probe was asked for, and no second one for the same silence");
    assert_eq!((share(&mut world, "a"), shares_told(&world)), (1.0, 0));
    silence(&mut world, 11.0, 9.9, |pulse| pulse);
    let of_a = world.probe_times("a");
    assert!(
        of_a.iter().filter(|at| **at > 7.0 && **at < 11.0).count() >= 2,
        "it has moved, and is silent again: {of_a:?}"
    );
    assert_eq!((share(&mut world, "a"), shares_told(&world)), (1.0, 0));
}

#[test]
fn silence_of_three_times_the_patience_overrules_the_probes_that_pass() {
    let mut world = with_probes();
    world.run_until(7.0);
    let slow = |pulse: Pulse| Pulse { slowest: Some(secs(6.0)), ..pulse };
    silence(&mut world, 12.8, 7.0, slow);
    assert_eq!(share(&mut world, "a"), 1.0, "an answer took as long before");
    silence(&mut world, 13.2, 7.0, slow);
    assert_eq!(share(&mut world, "a"), 0.0);
    silence(&mut world, 16.0, 13.2, |pulse| pulse);
    assert_eq!((share(&mut world, "a"), shares_told(&world)), (1.0, 2));
    silence(&mut world, 16.4, 13.2, |pulse| pulse);
    let told = shares_told(&world);
    silence(&mut world, 22.0, 13.2, |pulse| pulse);
    assert_eq!((share(&mut world, "a"), shares_told(&world)), (0.0, told), "no probe that passes moves it");
}

#[test]
fn where_a_probe_hangs_as_well_the_silence_of_a_second_takes_the_weight() {
    let mut world = with_probes();
    world.run_until(7.0);
    for answer in [Answer::hangs(), Answer::fails(FailureKind::Reset)] {
        world.answers.insert("a".to_owned(), answer);
        let moved = world.now.as_secs_f64();
        silence(&mut world, moved + 0.9, moved, |pulse| pulse);
        assert_eq!(share(&mut world, "a"), 1.0, "{answer:?}");
        let asked = world.probe_times("a").into_iter().any(|at| at > moved && at < moved + 0.75);
        silence(&mut world, moved + 1.1, moved, |pulse| pulse);
        assert_eq!((share(&mut world, "a"), asked), (0.0, true), "{answer:?}");
        world.answers.clear();
        world.run_until(moved + 20.0);
        silence(&mut world, moved + 20.2, moved + 20.0, |pulse| pulse);
        assert_eq!(share(&mut world, "a"), 1.0, "{answer:?}");
    }
}

#[test]
fn answers_too_few_for_a_percentile_are_waited_for_as_long_as_the_slowest_of_late_tells() {
    let few =
        |slowest: Option<f64>| move |pulse: Pulse| Pulse { first_byte_p99: None, slowest: slowest.map(secs), ..pulse };
    for mut world in [World::of(&[unprobed()]), with_probes()] {
        world.answers.insert("a".to_owned(), Answer::hangs());
        world.run_until(1.0);
        silence(&mut world, 8.9, 1.0, few(Some(2.0)));
        assert_eq!(share(&mut world, "a"), 1.0);
        silence(&mut world, 9.4, 1.0, few(Some(2.0)));
        assert_eq!(share(&mut world, "a"), 0.0, "four times the slowest");
    }
    // Of its own it has none: the others answer within 20 ms.
    let mut world = World::of(&[unprobed()]);
    silence(&mut world, 1.2, 0.05, few(None));
    assert_eq!(share(&mut world, "a"), 0.0);
}
