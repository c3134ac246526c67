//! Pulses over a real board.

#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use model::id::WorkerId;

use super::*;

fn at(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn wanted(slots: &[Slot]) -> Arc<[Slot]> {
    slots.into()
}

/// The pulse of the only one, told now or before.
fn one<S>(pulses: &mut Pulses, board: &Board<S>, slots: &Arc<[Slot]>, now: Timestamp) -> Pulse {
    pulses.stir(slots);
    let _ = pulses.pulses(board, slots, now);
    pulses.seen[slots[0].index()].as_ref().unwrap().told.unwrap()
}

#[test]
fn waiting_counts_from_the_tick_that_first_saw_it_and_ends_with_the_head() {
    let board = Board::new(1, Arc::new(()));
    let worker = board.worker(WorkerId(0)).unwrap();
    let mut pulses = Pulses::default();
    let slots = wanted(&[Slot(4)]);
    let flight = worker.start(Slot(4));
    assert_eq!(one(&mut pulses, &board, &slots, at(100)).waiting_since, at(100));
    let pulse = one(&mut pulses, &board, &slots, at(200));
    assert_eq!((pulse.waiting, pulse.waiting_since, pulse.moved_at), (1, at(100), Timestamp::ZERO));
    flight.answered(at(250), Duration::from_millis(150));
    let pulse = one(&mut pulses, &board, &slots, at(300));
    assert_eq!((pulse.waiting, pulse.waiting_since, pulse.moved_at), (0, Timestamp::MAX, at(250)));
    drop(flight);
    assert_eq!(board.waiting(Slot(4)), 0);
    assert!(pulses.pulses(&board, &wanted(&[]), at(400)).is_empty());
}

#[test]
fn the_percentile_is_of_late_and_the_mean_follows_peaks_at_once() {
    let board = Board::new(1, Arc::new(()));
    let worker = board.worker(WorkerId(0)).unwrap();
    let mut pulses = Pulses::default();
    let slots = wanted(&[Slot(0)]);
    let _ = one(&mut pulses, &board, &slots, at(0));
    let answer = |millis: u64, n| {
        (0..n).for_each(|_| worker.start(Slot(0)).answered(at(1), Duration::from_millis(millis)));
    };
    answer(1, 95);
    answer(100, 5);
    let pulse = one(&mut pulses, &board, &slots, at(100));
    let p99 = pulse.first_byte_p99.unwrap();
    assert!((80..130).contains(&p99.as_millis()), "{p99:?}");
    let slow = pulse.latency.unwrap();
    answer(1, 100);
    let later = one(&mut pulses, &board, &slots, at(200)).latency.unwrap();
    assert!(later < slow && later > slow / 2, "{later:?} {slow:?}");
    answer(100, 100);
    assert!(one(&mut pulses, &board, &slots, at(300)).latency.unwrap() > Duration::from_millis(80));
    for tick in 4..1000 {
        answer(1, 10);
        let _ = one(&mut pulses, &board, &slots, at(tick * 100));
    }
    let pulse = one(&mut pulses, &board, &slots, at(100_000));
    assert!(pulse.first_byte_p99.unwrap() < Duration::from_millis(2));
    assert!(pulse.latency.unwrap() < Duration::from_millis(2));
}

#[test]
fn a_peak_is_forgotten_by_time_however_few_requests_come_and_the_mean_knows_no_peaks() {
    let board = Board::new(1, Arc::new(()));
    let worker = board.worker(WorkerId(0)).unwrap();
    let mut pulses = Pulses::default();
    let slot = Slot(0);
    let slots = wanted(&[slot]);
    let mut tick = |millis: u64, took: Option<u64>| {
        if let Some(took) = took {
            worker.start(slot).answered(at(millis), Duration::from_millis(took));
        }
        one(&mut pulses, &board, &slots, at(millis))
    };
    tick(0, None);
    assert!(tick(100, Some(1000)).latency.unwrap() > Duration::from_millis(900));
    (2..200).for_each(|n| _ = tick(100 * n, None));
    assert_eq!(tick(20_000, None).mean, None);
    let last = tick(20_100, Some(10));
    // Two half-lives: a quarter of it is left.
    let latency = last.latency.unwrap();
    assert!(latency > Duration::from_millis(220) && latency < Duration::from_millis(290), "{latency:?}");
    assert!(last.mean.unwrap() < Duration::from_millis(15), "{:?}", last.mean);
}

#[test]
fn where_nothing_happens_is_told_once_more_and_then_left_alone() {
    let board = Board::new(2, Arc::new(()));
    let mut reader = board.reader().unwrap();
    let worker = board.worker(WorkerId(1)).unwrap();
    let slots = wanted(&[Slot(0), Slot(9), Slot(40)]);
    let mut pulses = Pulses::default();
    assert_eq!(pulses.pulses(&board, &slots, at(0)).len(), 3, "all are told when they are new");
    assert!(pulses.pulses(&board, &slots, at(100)).is_empty());
    worker.start(Slot(9)).answered(at(150), Duration::from_millis(3));
    let mut told = Vec::new();
    for tick in 2..600 {
        pulses.stir(&reader.stirred());
        told.extend(pulses.pulses(&board, &slots, at(tick * 100)));
    }
    assert!(told.iter().all(|pulse| pulse.slot == Slot(9)));
    let means = told.iter().filter(|pulse| pulse.mean.is_some()).count();
    assert_eq!(means, told.len() - 1, "the last one says that the mean is forgotten");
    assert!((50..90).contains(&means), "a tenth of a sample is left after 6.6 s: {means}");
    let flight = worker.start(Slot(40));
    flight.answered(at(60_000), Duration::from_millis(1));
    for tick in 600..1200 {
        pulses.stir(&reader.stirred());
        // Bytes of a long answer stir nothing, and yet are seen.
        worker.progressed(Slot(40), at(tick * 100));
        let pulse = pulses.pulses(&board, &slots, at(tick * 100)).pop().unwrap();
        assert_eq!((pulse.slot, pulse.moved_at), (Slot(40), at(tick * 100)));
    }
    drop(flight);
    assert!(pulses.pulses(&board, &slots, at(120_000)).is_empty(), "nothing that was not told");
    assert!(pulses.pulses(&board, &slots, at(120_100)).is_empty());
    assert_eq!(pulses.pulses(&board, &wanted(&[Slot(9)]), at(120_200)).len(), 1, "another list is told whole");
}
