//! All that is shared, apart from the snapshot: one state per worker, gates, places, budgets and the waker.

use std::sync::OnceLock;
use std::time::Duration;

use crossbeam_utils::CachePadded;
use model::id::Slot;
use model::outcome::{OutcomeClass, Trend};
use model::time::Timestamp;

use crate::budget::Budget;
use crate::first_byte::BUCKETS;
use crate::gate::Gate;
use crate::place::Places;
use crate::record::Record;
use crate::ring::Ring;
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use crate::table::Table;

pub(crate) struct Shared {
    pub(crate) workers: Box<[CachePadded<WorkerState>]>,
    pub(crate) gates: Table<Gate>,
    pub(crate) places: Table<Places>,
    budgets: Table<Budget>,
    /// By slot: [`Trend`] as a flag.
    failing: Table<AtomicBool>,
    /// By slot: nanoseconds; 0 is unknown.
    latencies: Table<AtomicU64>,
    pub(crate) wake: Wake,
    pub(crate) reader_claimed: AtomicBool,
}

impl Shared {
    pub(crate) fn new(workers: usize, events: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| CachePadded::new(WorkerState::new(events))).collect(),
            gates: Table::new(),
            places: Table::new(),
            budgets: Table::new(),
            failing: Table::new(),
            latencies: Table::new(),
            wake: Wake::new(),
            reader_claimed: AtomicBool::new(false),
        }
    }

    pub(crate) fn in_flight(&self, slot: Slot) -> u32 {
        self.records(slot).map(Record::in_flight).fold(0, u32::saturating_add)
    }

    pub(crate) fn waiting(&self, slot: Slot) -> u32 {
        self.records(slot).map(Record::waiting).fold(0, u32::saturating_add)
    }

    pub(crate) fn first_bytes(&self, slot: Slot) -> [u32; BUCKETS] {
        self.records(slot).fold([0; BUCKETS], |mut sums, record| {
            sums.iter_mut().zip(record.first_bytes()).for_each(|(sum, count)| *sum = sum.wrapping_add(count));
            sums
        })
    }

    pub(crate) fn count(&self, slot: Slot, class: OutcomeClass) -> u64 {
        self.records(slot).map(|record| record.count(class)).sum()
    }

    pub(crate) fn last_progress(&self, slot: Slot) -> Timestamp {
        self.records(slot).map(Record::last_progress).max().unwrap_or(Timestamp::ZERO)
    }

    pub(crate) fn withdraw(&self, budget: u32, price: u32) -> bool {
        self.budgets.get(budget).is_some_and(|budget| budget.withdraw(price))
    }

    pub(crate) fn deposit(&self, budget: u32, amount: u32, cap: u32) {
        if let Some(budget) = self.budgets.grow(budget) {
            // A lost race leaves the balance a little lower until the next tick.
            let _ = budget.deposit(amount, cap);
        }
    }

    pub(crate) fn settle(&self, budget: u32, rest_of: impl Fn(u32) -> u32) {
        if let Some(budget) = self.budgets.grow(budget) {
            let _ = budget.settle(rest_of);
        }
    }

    pub(crate) fn balance(&self, budget: u32) -> u32 {
        self.budgets.get(budget).map_or(0, Budget::balance)
    }

    pub(crate) fn trend(&self, slot: Slot) -> Trend {
        match self.failing.get(slot.0) {
            Some(flag) if flag.load(Ordering::Relaxed) => Trend::Failing,
            Some(_) | None => Trend::Steady,
        }
    }

    pub(crate) fn set_trend(&self, slot: Slot, trend: Trend) {
        match (self.failing.get(slot.0), trend) {
            (None, Trend::Steady) => {}
            (_, trend) => {
                if let Some(flag) = self.failing.grow(slot.0) {
                    flag.store(trend == Trend::Failing, Ordering::Relaxed);
                }
            }
        }
    }

    pub(crate) fn latency(&self, slot: Slot) -> Option<Duration> {
        let nanos = self.latencies.get(slot.0)?.load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }

    pub(crate) fn set_latency(&self, slot: Slot, latency: Option<Duration>) {
        let nanos = latency.map_or(0, |latency| u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX).max(1));
        if let Some(place) = self.latencies.grow(slot.0) {
            place.store(nanos, Ordering::Relaxed);
        }
    }

    pub(crate) fn reopen(&self, slot: Slot) {
        if let Some(gate) = self.gates.get(slot.0) {
            gate.reopen();
        }
    }

    fn records(&self, slot: Slot) -> impl Iterator<Item = &Record> {
        self.workers.iter().filter_map(move |state| state.records.get(slot.0))
    }
}

/// What one worker writes.
pub(crate) struct WorkerState {
    pub(crate) claimed: AtomicBool,
    pub(crate) records: Table<Record>,
    /// By [`STIR`] neighbouring slots: how often one of them was stirred.
    pub(crate) stirs: Table<AtomicU32>,
    pub(crate) ring: Ring,
    ticked_at: AtomicU64,
    overflowed: AtomicU64,
    strays: AtomicU64,
}

impl WorkerState {
    fn new(events: usize) -> Self {
        Self {
            claimed: AtomicBool::new(false),
            records: Table::new(),
            stirs: Table::new(),
            ring: Ring::new(events),
            ticked_at: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
            strays: AtomicU64::new(0),
        }
    }

    pub(crate) fn ticked_at(&self) -> Timestamp {
        Timestamp::from_nanos(self.ticked_at.load(Ordering::Relaxed))
    }

    /// Acquire: who sees the number sees the merged counts behind it.
    pub(crate) fn overflowed(&self) -> u64 {
        self.overflowed.load(Ordering::Acquire)
    }

    pub(crate) fn strays(&self) -> u64 {
        self.strays.load(Ordering::Relaxed)
    }

    // From here on: the owner's calls.

    /// The record, made when it is the first use; `None`, counted, for a slot beyond the last.
    pub(crate) fn record(&self, slot: Slot) -> Option<&Record> {
        let record = self.records.grow(slot.0);
        if record.is_none() {
            self.strays.store(self.strays().wrapping_add(1), Ordering::Relaxed);
        }
        record
    }

    /// After a write to the slot's record. Release: who sees the number sees the write behind it.
    pub(crate) fn stir(&self, slot: Slot) {
        if let Some(stirs) = self.stirs.grow(slot.0 / STIR) {
            stirs.store(stirs.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        }
    }

    pub(crate) fn tick(&self, now: Timestamp) {
        self.ticked_at.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// Release: after the merged count was stored.
    pub(crate) fn overflow(&self) {
        let overflowed = self.overflowed.load(Ordering::Relaxed).wrapping_add(1);
        self.overflowed.store(overflowed, Ordering::Release);
    }
}

/// So many neighbouring slots are stirred as one: few numbers to look through, few quiet slots among the stirred.
pub(crate) const STIR: u32 = 8;

/// Wakes the reader once for all events until its next drain.
///
/// Worker: event, fence, look at `pending`. Reader: clear `pending`, fence, look for events. The two fences are ordered
/// one way or the other, so either the worker sees that it must wake, or the reader sees the event.
pub(crate) struct Wake {
    pending: AtomicBool,
    waker: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Wake {
    fn new() -> Self {
        Self { pending: AtomicBool::new(false), waker: OnceLock::new() }
    }

    pub(crate) fn set(&self, waker: Box<dyn Fn() + Send + Sync>) {
        let _ = self.waker.set(waker);
    }

    /// After an event was stored.
    pub(crate) fn notify(&self) {
        fence(Ordering::SeqCst);
        if !self.pending.load(Ordering::Relaxed)
            && !self.pending.swap(true, Ordering::AcqRel)
            && let Some(wake) = self.waker.get()
        {
            wake();
        }
    }

    /// Before events are looked for.
    pub(crate) fn clear(&self) {
        self.pending.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}
