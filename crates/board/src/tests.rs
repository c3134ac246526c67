//! The board from outside: one thread for what each call means, many threads for what must not get lost.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use model::outcome::{FailureKind, Outcome, Try};

use super::*;

fn ended(at: u64, class: OutcomeClass) -> Ended {
    let outcome =
        Outcome { class, failure: Some(FailureKind::Reset), status: None, retryable: true, client_gone: false };
    let at = Timestamp::from_millis(at);
    Ended { picked_at: at, ended_at: at, which: Try::First, outcome }
}

fn repeat(at: u64, class: OutcomeClass) -> Ended {
    Ended { which: Try::Repeat, ..ended(at, class) }
}

fn successes(ok: u64, repeats: u64) -> Successes {
    Successes { ok, repeats }
}

fn drain(reader: &mut Reader) -> Vec<Drained> {
    let mut all = Vec::new();
    reader.drain(|drained| all.push(drained));
    all
}

#[test]
fn a_worker_sees_what_was_published_and_keeps_what_it_took() {
    let board = Board::new(1, Arc::new(1));
    let worker = board.worker(WorkerId(0)).unwrap();
    let before = worker.snapshot();
    board.publish(Arc::new(2));
    let after = worker.snapshot();
    assert_eq!((*before, *after, *board.load()), (1, 2, 2));
}

#[test]
fn an_idle_worker_lets_go_of_a_replaced_snapshot_at_its_tick() {
    let first = Arc::new(1);
    let board = Board::new(1, Arc::clone(&first));
    let worker = board.worker(WorkerId(0)).unwrap();
    board.publish(Arc::new(2));
    assert_eq!(Arc::strong_count(&first), 2);
    worker.tick(Timestamp::from_secs(3));
    assert_eq!(Arc::strong_count(&first), 1);
    assert_eq!(board.ticked_at(WorkerId(0)), Some(Timestamp::from_secs(3)));
    assert_eq!(board.tick_age(Timestamp::from_secs(5)), Duration::from_secs(2));
}

#[test]
fn a_worker_is_claimed_once_and_freed_with_its_last_handle() {
    let board = Board::new(2, Arc::new(()));
    let worker = board.worker(WorkerId(1)).unwrap();
    assert!(board.worker(WorkerId(1)).is_none());
    assert!(board.worker(WorkerId(2)).is_none());
    let flight = worker.start(Slot(0));
    drop(worker);
    assert!(board.worker(WorkerId(1)).is_none());
    drop(flight);
    assert!(board.worker(WorkerId(1)).is_some());
    assert!(board.reader().is_some());
    assert!(board.reader().is_none());
}

#[test]
fn attempts_in_flight_add_up_over_workers() {
    let board = Board::new(2, Arc::new(()));
    let (a, b) = (board.worker(WorkerId(0)).unwrap(), board.worker(WorkerId(1)).unwrap());
    let flights = [a.start(Slot(700)), a.start(Slot(700)), b.start(Slot(700)), b.start(Slot(1))];
    assert_eq!((board.in_flight(Slot(700)), a.in_flight(Slot(1)), b.in_flight(Slot(2))), (3, 1, 0));
    drop(flights);
    assert_eq!(board.in_flight(Slot(700)), 0);
}

#[test]
fn time_in_which_the_client_is_waited_for_is_not_the_destinations() {
    let board = Board::new(1, Arc::new(0));
    let worker = board.worker(WorkerId(0)).unwrap();
    let at = Timestamp::from_millis;
    let in_flight = worker.start(Slot(0));
    in_flight.wait_for_client(at(1));
    assert_eq!((board.in_flight(Slot(0)), board.waiting(Slot(0))), (1, 0));
    in_flight.wait_for_destination(at(9_001));
    assert_eq!(board.waiting(Slot(0)), 1);
    in_flight.answered(at(9_011), Duration::from_millis(9_010));
    assert_eq!(board.waiting(Slot(0)), 0);
    let counts = board.first_bytes(Slot(0));
    assert_eq!(counts.get(first_byte::bucket(Duration::from_millis(10))), Some(&1));
    drop(in_flight);
    // One that goes while its client is waited for leaves nothing behind.
    worker.start(Slot(0)).wait_for_client(at(9_012));
    assert_eq!((board.in_flight(Slot(0)), board.waiting(Slot(0))), (0, 0));
}

#[test]
fn a_success_writes_nothing_that_another_worker_or_the_core_reads_as_news() {
    let snapshot = Arc::new(7);
    let board = Board::new(2, Arc::clone(&snapshot));
    let mut reader = board.reader().unwrap();
    let woken = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&woken);
    board.set_waker(Box::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    }));
    board.deposit(3, 1_000, 5_000);
    let (worker, other) = (board.worker(WorkerId(0)).unwrap(), board.worker(WorkerId(1)).unwrap());
    drop((worker.snapshot(), other.snapshot()));
    let shared = Arc::strong_count(&snapshot);
    for request in 0..1_000 {
        let _current = worker.snapshot();
        // The snapshot's count of owners is memory of all: each worker counts its own requests in its own.
        assert_eq!(Arc::strong_count(&snapshot), shared);
        let _in_flight = worker.start(Slot(1));
        worker.progressed(Slot(1), Timestamp::from_millis(request));
        worker.succeeded(Slot(1));
    }
    assert_eq!(woken.load(Ordering::Relaxed), 0);
    assert_eq!(drain(&mut reader), []);
    assert_eq!(board.balance(3), 1_000);
    assert_eq!(board.count(Slot(1), OutcomeClass::Ok), 1_000);
    assert_eq!(board.in_flight(Slot(1)), 0);
}

#[test]
fn an_event_tells_the_successes_before_it_and_the_tick_tells_the_rest() {
    let board = Board::new(1, Arc::new(()));
    let worker = board.worker(WorkerId(0)).unwrap();
    let mut reader = board.reader().unwrap();
    let slot = Slot(5);
    (0..3).for_each(|_| worker.succeeded(slot));
    worker.report(slot, ended(1, OutcomeClass::AppFail));
    (0..2).for_each(|_| worker.succeeded(slot));
    worker.report(slot, ended(2, OutcomeClass::Timeout));
    worker.succeeded(slot);
    let event = |at, class, ok_before| Drained::Event { slot, worker: WorkerId(0), ok_before, ended: ended(at, class) };
    assert_eq!(drain(&mut reader), [event(1, OutcomeClass::AppFail, 3), event(2, OutcomeClass::Timeout, 2)]);
    assert_eq!(reader.ok_since(slot), successes(1, 0));
    assert_eq!(reader.ok_since(slot), successes(0, 0));
    assert_eq!((board.count(slot, OutcomeClass::Ok), board.count(slot, OutcomeClass::Timeout)), (6, 1));
}

#[test]
fn a_tick_between_a_failure_and_its_drain_tells_no_success_twice() {
    let board = Board::new(1, Arc::new(()));
    let worker = board.worker(WorkerId(0)).unwrap();
    let mut reader = board.reader().unwrap();
    worker.succeeded(Slot(0));
    worker.report(Slot(0), ended(1, OutcomeClass::Cut));
    assert_eq!(reader.ok_since(Slot(0)), successes(1, 0));
    let [Drained::Event { ok_before, .. }] = drain(&mut reader)[..] else { panic!("one event") };
    assert_eq!(ok_before, 0);
}

#[test]
fn a_success_that_an_event_tells_stands_in_no_sum() {
    let board = Board::with_ring(1, Arc::new(()), 2);
    let worker = board.worker(WorkerId(0)).unwrap();
    let mut reader = board.reader().unwrap();
    let slot = Slot(4);
    worker.succeeded(slot);
    worker.report(slot, ended(1, OutcomeClass::Ok));
    // A tick between the count and the drain.
    assert_eq!(reader.ok_since(slot), successes(1, 0));
    worker.report(slot, repeat(2, OutcomeClass::Ok));
    worker.report(slot, repeat(3, OutcomeClass::Ok));
    let event = |ended| Drained::Event { slot, worker: WorkerId(0), ok_before: 0, ended };
    let merged = Drained::Merged { slot, class: OutcomeClass::Ok, which: Try::Repeat, count: 1 };
    let told = [event(ended(1, OutcomeClass::Ok)), event(repeat(2, OutcomeClass::Ok)), merged];
    assert_eq!(drain(&mut reader), told);
    assert_eq!(reader.ok_since(slot), successes(0, 0));
    assert_eq!(board.count(slot, OutcomeClass::Ok), 4);
}

#[test]
fn repeats_are_told_apart_among_successes_failures_and_what_was_merged() {
    let board = Board::with_ring(1, Arc::new(()), 2);
    let worker = board.worker(WorkerId(0)).unwrap();
    let mut reader = board.reader().unwrap();
    let slot = Slot(2);
    worker.count(slot, OutcomeClass::Ok, Try::Repeat);
    worker.succeeded(slot);
    worker.report(slot, repeat(1, OutcomeClass::AppFail));
    worker.report(slot, ended(2, OutcomeClass::AppFail));
    worker.report(slot, repeat(3, OutcomeClass::Timeout));
    worker.report(slot, ended(4, OutcomeClass::Timeout));
    worker.count(slot, OutcomeClass::Ok, Try::Repeat);
    worker.count(slot, OutcomeClass::Neutral, Try::Repeat);
    let event = |ended, ok_before| Drained::Event { slot, worker: WorkerId(0), ok_before, ended };
    let merged = |which| Drained::Merged { slot, class: OutcomeClass::Timeout, which, count: 1 };
    assert_eq!(
        drain(&mut reader),
        [
            event(repeat(1, OutcomeClass::AppFail), 2),
            event(ended(2, OutcomeClass::AppFail), 0),
            merged(Try::First),
            merged(Try::Repeat),
        ]
    );
    // Of the two that the first event told one was a repeat.
    assert_eq!(reader.ok_since(slot), successes(1, 2));
    assert_eq!(reader.ok_since(slot), successes(0, 0));
}

#[test]
fn events_of_several_workers_come_in_the_order_of_their_ends() {
    let board = Board::new(2, Arc::new(()));
    let (a, b) = (board.worker(WorkerId(0)).unwrap(), board.worker(WorkerId(1)).unwrap());
    let mut reader = board.reader().unwrap();
    a.report(Slot(0), ended(2, OutcomeClass::Cut));
    a.report(Slot(0), ended(4, OutcomeClass::Cut));
    b.report(Slot(0), ended(1, OutcomeClass::Cut));
    b.report(Slot(0), ended(3, OutcomeClass::Cut));
    let order: Vec<u32> = drain(&mut reader)
        .into_iter()
        .map(|drained| match drained {
            Drained::Event { worker, .. } => worker.0,
            Drained::Merged { .. } => panic!("nothing was merged"),
        })
        .collect();
    assert_eq!(order, [1, 0, 1, 0]);
}

#[test]
fn what_does_not_fit_the_ring_is_merged_and_counted() {
    let board = Board::with_ring(1, Arc::new(()), 2);
    let worker = board.worker(WorkerId(0)).unwrap();
    let mut reader = board.reader().unwrap();
    for at in 0..4 {
        worker.report(Slot(1), ended(at, OutcomeClass::ConnFail));
    }
    worker.report(Slot(300), ended(9, OutcomeClass::Timeout));
    let drained = drain(&mut reader);
    assert!(matches!(drained[..2], [Drained::Event { .. }, Drained::Event { .. }]));
    assert_eq!(
        drained[2..],
        [
            Drained::Merged { slot: Slot(1), class: OutcomeClass::ConnFail, which: Try::First, count: 2 },
            Drained::Merged { slot: Slot(300), class: OutcomeClass::Timeout, which: Try::First, count: 1 },
        ]
    );
    assert_eq!(board.merged(), 3);
    assert_eq!(drain(&mut reader), []);
    assert_eq!(board.count(Slot(1), OutcomeClass::ConnFail), 4);
}

#[test]
fn the_waker_is_called_once_until_the_next_drain() {
    let board = Board::new(1, Arc::new(()));
    let worker = board.worker(WorkerId(0)).unwrap();
    let mut reader = board.reader().unwrap();
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    board.set_waker(Box::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    }));
    worker.succeeded(Slot(0));
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    (0..3).for_each(|at| worker.report(Slot(0), ended(at, OutcomeClass::Cut)));
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert_eq!(drain(&mut reader).len(), 3);
    worker.report(Slot(0), ended(9, OutcomeClass::Cut));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

#[test]
fn a_slot_beyond_the_last_is_ignored_and_counted() {
    let board = Board::new(1, Arc::new(()));
    let worker = board.worker(WorkerId(0)).unwrap();
    let slot = Slot(Board::<()>::SLOTS);
    drop(worker.start(slot));
    worker.report(slot, ended(1, OutcomeClass::Cut));
    assert_eq!((board.in_flight(slot), board.strays()), (0, 2));
    worker.succeeded(Slot(Board::<()>::SLOTS - 1));
    assert_eq!(board.strays(), 2);
}

#[test]
fn budgets_are_empty_until_paid_into() {
    let board = Board::new(0, Arc::new(()));
    assert!(!board.withdraw(3, 1));
    board.deposit(3, 1500, 1000);
    assert_eq!(board.balance(3), 1000);
    assert!(board.withdraw(3, 1000));
    assert!(!board.withdraw(3, 1));
}

#[test]
fn a_trend_is_steady_until_the_core_says_otherwise() {
    let board = Board::new(0, Arc::new(()));
    assert_eq!(board.trend(Slot(9)), Trend::Steady);
    board.set_trend(Slot(9), Trend::Failing);
    assert_eq!((board.trend(Slot(9)), board.trend(Slot(8))), (Trend::Failing, Trend::Steady));
    board.set_trend(Slot(9), Trend::Steady);
    assert_eq!(board.trend(Slot(9)), Trend::Steady);
}

/// Four workers count, fail and fly over destinations that they share, through rings that are far too small, while the
/// reader drains: in the end the sums are exact.
#[test]
fn nothing_is_lost_between_four_workers_and_the_reader() {
    const WORKERS: u32 = 4;
    const ROUNDS: u64 = 20_000;
    const SLOTS: u64 = 3;
    let board = Board::with_ring(WORKERS as usize, Arc::new(0_u64), 64);
    let mut reader = board.reader().unwrap();
    let (wake, woken) = mpsc::channel();
    board.set_waker(Box::new(move || wake.send(()).unwrap()));
    let (mut ok, mut failed) = ([0_u64; SLOTS as usize], [0_u64; SLOTS as usize]);
    let mut repeats = [0_u64; SLOTS as usize];
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|id| {
                let board = Arc::clone(&board);
                scope.spawn(move || {
                    let worker = board.worker(WorkerId(id)).unwrap();
                    let mut seen = 0;
                    for round in 0..ROUNDS {
                        let slot = Slot((round % SLOTS) as u32);
                        let flight = worker.start(slot);
                        match round % 4 {
                            0 => worker.report(slot, ended(round, OutcomeClass::AppFail)),
                            1 => worker.count(slot, OutcomeClass::Ok, Try::Repeat),
                            2 => worker.succeeded(slot),
                            _ => worker.report(slot, ended(round, OutcomeClass::Ok)),
                        }
                        drop(flight);
                        let snapshot = *worker.snapshot();
                        assert!(snapshot >= seen, "a snapshot went back from {seen} to {snapshot}");
                        seen = snapshot;
                    }
                })
            })
            .collect();
        let mut published = 0;
        let mut take = |reader: &mut Reader| {
            let told = ok;
            reader.drain(|drained| match drained {
                Drained::Event { slot, ok_before, ended, .. } => {
                    let of = if ended.outcome.class == OutcomeClass::Ok { &mut ok } else { &mut failed };
                    of[slot.index()] += 1;
                    ok[slot.index()] += ok_before;
                }
                Drained::Merged { slot, class, which: _, count } => {
                    let of = if class == OutcomeClass::Ok { &mut ok } else { &mut failed };
                    of[slot.index()] += u64::from(count);
                }
            });
            for (slot, ok) in (0..).zip(&mut ok) {
                let new = reader.ok_since(Slot(slot));
                *ok += new.ok;
                repeats[slot as usize] += new.repeats;
                assert!(new.repeats <= *ok - told[slot as usize], "more repeats than successes in one drain");
            }
        };
        while workers.iter().any(|worker| !worker.is_finished()) {
            // The bound is for successes, which wake nobody.
            let _ = woken.recv_timeout(Duration::from_millis(10));
            take(&mut reader);
            published += 1;
            board.publish(Arc::new(published));
        }
        take(&mut reader);
    });
    let rounds_at = |slot: u64, kinds: &[u64]| {
        let rounds = (0..ROUNDS).filter(|round| round % SLOTS == slot && kinds.contains(&(round % 4)));
        rounds.count() as u64 * u64::from(WORKERS)
    };
    for slot in 0..SLOTS {
        assert_eq!(failed[slot as usize], rounds_at(slot, &[0]), "failures at {slot}");
        assert_eq!(ok[slot as usize], rounds_at(slot, &[1, 2, 3]), "successes at {slot}");
        assert_eq!(repeats[slot as usize], rounds_at(slot, &[1]), "repeats among them at {slot}");
        assert_eq!(board.in_flight(Slot(slot as u32)), 0);
    }
}
