//! Every interleaving (up to three preemptions) of the protocols between threads.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p board --test loom --target-dir target/loom`, also a part of `cargo xtask test`.
//! Without `--cfg loom` there is nothing in this file.
#![cfg(loom)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use board::{Board, Drained, Ended};
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use model::id::{Slot, WorkerId};
use model::outcome::{Outcome, OutcomeClass, Try};
use model::time::Timestamp;

const SLOT: Slot = Slot(0);
const WORKER: WorkerId = WorkerId(0);

fn ended(at: u64) -> Ended {
    let at = Timestamp::from_nanos(at);
    let outcome =
        Outcome { class: OutcomeClass::AppFail, failure: None, status: None, retryable: false, client_gone: false };
    Ended { picked_at: at, ended_at: at, which: Try::First, outcome }
}

fn explore(check: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(check);
}

/// Events and merged counts that a drain brings, events by their number.
fn drain(reader: &mut board::Reader) -> (Vec<u64>, u32) {
    let (mut events, mut merged) = (Vec::new(), 0);
    reader.drain(|drained| match drained {
        Drained::Event { ended, .. } => events.push(ended.ended_at.as_nanos()),
        Drained::Merged { count, .. } => merged += count,
    });
    (events, merged)
}

#[test]
fn a_worker_that_knows_of_a_snapshot_finds_it() {
    explore(|| {
        let board = Board::with_ring(1, Arc::new(0_u64), 1);
        let publisher = Arc::clone(&board);
        let publishing = thread::spawn(move || {
            publisher.publish(Arc::new(1));
            publisher.publish(Arc::new(2));
        });
        let worker = board.worker(WORKER).unwrap();
        let first = *worker.snapshot();
        let second = *worker.snapshot();
        assert!(first <= second);
        publishing.join().unwrap();
        assert_eq!(*worker.snapshot(), 2);
    });
}

#[test]
fn each_event_comes_out_once_whole_and_in_order_or_is_merged() {
    explore(|| {
        let board = Board::with_ring(1, Arc::new(()), 2);
        // The record's chunk is made before the threads part: its once-cell is the standard library's.
        board.worker(WORKER).unwrap().succeeded(SLOT);
        let mut reader = board.reader().unwrap();
        let reporter = Arc::clone(&board);
        let reporting = thread::spawn(move || {
            let worker = reporter.worker(WORKER).unwrap();
            (1..=3).for_each(|at| worker.report(SLOT, ended(at)));
        });
        let (mut events, mut merged) = drain(&mut reader);
        reporting.join().unwrap();
        let (later, more) = drain(&mut reader);
        events.extend(later);
        merged += more;
        assert!(events.is_sorted() && !events.contains(&0), "{events:?}");
        assert_eq!(events.len() + merged as usize, 3, "{events:?} and {merged}");
        assert_eq!(board.merged(), u64::from(merged));
    });
}

#[test]
fn an_event_after_the_last_drain_has_woken_the_reader() {
    explore(|| {
        let board = Board::with_ring(1, Arc::new(()), 2);
        board.worker(WORKER).unwrap().succeeded(SLOT);
        let mut reader = board.reader().unwrap();
        let wakes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&wakes);
        board.set_waker(Box::new(move || {
            // Whatever really wakes a thread orders memory like this.
            counted.fetch_add(1, Ordering::Release);
        }));
        let reporter = Arc::clone(&board);
        let reporting = thread::spawn(move || {
            let worker = reporter.worker(WORKER).unwrap();
            (1..=2).for_each(|at| worker.report(SLOT, ended(at)));
        });
        let mut seen = drain(&mut reader).0.len();
        let wakes_before = wakes.load(Ordering::Acquire);
        seen += drain(&mut reader).0.len();
        reporting.join().unwrap();
        let is_woken = wakes.load(Ordering::Acquire) > wakes_before;
        assert!(seen == 2 || is_woken, "{seen} of 2 seen, and nobody wakes the reader");
    });
}

#[test]
fn two_claims_of_one_gate_at_one_time_have_one_holder() {
    explore(|| {
        let board = Board::with_ring(0, Arc::new(()), 1);
        let lease = Duration::from_secs(1);
        // Makes the gate's chunk.
        drop(board.claim(SLOT, Timestamp::from_nanos(1), lease));
        let other = Arc::clone(&board);
        let claiming = thread::spawn(move || other.claim(SLOT, Timestamp::from_nanos(2), lease));
        let mine = board.claim(SLOT, Timestamp::from_nanos(2), lease);
        let theirs = claiming.join().unwrap();
        assert!(mine.is_some() != theirs.is_some());
    });
}

#[test]
fn a_holder_whose_lease_is_over_does_not_open_the_next_holders_gate() {
    explore(|| {
        let board = Board::with_ring(0, Arc::new(()), 1);
        let lease = Duration::from_nanos(10);
        let late = board.claim(SLOT, Timestamp::from_nanos(1), lease).unwrap();
        let other = Arc::clone(&board);
        let claiming = thread::spawn(move || other.claim(SLOT, Timestamp::from_nanos(11), lease));
        drop(late);
        let next = claiming.join().unwrap();
        // The claim may lose against the release and then finds the gate changed: it is refused, and the gate is open.
        let third = board.claim(SLOT, Timestamp::from_nanos(12), lease);
        assert!(next.is_some() != third.is_some());
    });
}

#[test]
fn two_withdrawals_never_take_more_than_there_is() {
    explore(|| {
        let board = Board::with_ring(0, Arc::new(()), 1);
        board.deposit(0, 1500, 2000);
        let other = Arc::clone(&board);
        let withdrawing = thread::spawn(move || other.withdraw(0, 1000));
        let mine = board.withdraw(0, 1000);
        let theirs = withdrawing.join().unwrap();
        assert!(mine != theirs);
        assert_eq!(board.balance(0), 500);
    });
}

#[test]
fn who_finds_all_places_taken_and_then_waits_is_seen_by_who_gives_back() {
    explore(|| {
        let board = Board::with_ring(0, Arc::new(()), 1);
        let one = std::num::NonZeroU32::MIN;
        // The chunk is made before the threads part: its once-cell is the standard library's.
        let held = board.take_place(SLOT, one).unwrap();
        let waiting = Arc::new(AtomicU64::new(0));
        let (other, seen) = (Arc::clone(&board), Arc::clone(&waiting));
        let giving = thread::spawn(move || {
            drop(held);
            seen.load(Ordering::Relaxed)
        });
        // As the queue does: joins, then looks once more.
        waiting.store(1, Ordering::Relaxed);
        let found = other.take_place(SLOT, one);
        let was_seen = giving.join().unwrap() == 1;
        assert!(found.is_some() || was_seen, "nobody would ever wake the one that waits");
        drop(found);
        let again = board.take_place(SLOT, one);
        assert!(again.is_some() && board.take_place(SLOT, one).is_none(), "none is lost and none is made");
    });
}
