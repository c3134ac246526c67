//! One worker's record of one destination.

use crossbeam_utils::CachePadded;
use model::outcome::OutcomeClass;
use model::time::Timestamp;

use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Written by its worker alone, read by all. On lines of its own, so that a neighbour's reader does not slow it down.
#[derive(Default)]
pub(crate) struct Record(CachePadded<Fields>);

#[derive(Default)]
struct Fields {
    in_flight: AtomicU32,
    last_progress: AtomicU64,
    /// Ended attempts by class.
    counts: [AtomicU64; CLASSES],
    /// Events that found the ring full, by class. A part of `counts`.
    merged: [AtomicU32; CLASSES],
}

impl Record {
    pub(crate) fn in_flight(&self) -> u32 {
        self.0.in_flight.load(Ordering::Relaxed)
    }

    pub(crate) fn last_progress(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.last_progress.load(Ordering::Relaxed))
    }

    pub(crate) fn count(&self, class: OutcomeClass) -> u64 {
        self.0.counts.get(usize::from(class.code())).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Wraps around: compare by difference.
    pub(crate) fn merged(&self) -> [u32; CLASSES] {
        self.0.merged.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    // From here on: the owner's calls. A load and a store are enough where only one thread writes.

    pub(crate) fn enter(&self) {
        self.0.in_flight.store(self.in_flight().wrapping_add(1), Ordering::Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.0.in_flight.store(self.in_flight().saturating_sub(1), Ordering::Relaxed);
    }

    pub(crate) fn progress(&self, now: Timestamp) {
        self.0.last_progress.store(now.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn add(&self, class: OutcomeClass) {
        if let Some(count) = self.0.counts.get(usize::from(class.code())) {
            count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    pub(crate) fn merge(&self, class: OutcomeClass) {
        if let Some(count) = self.0.merged.get(usize::from(class.code())) {
            count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }
}

pub(crate) const CLASSES: usize = OutcomeClass::ALL.len();
