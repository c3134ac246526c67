//! One worker's record of one destination.

use crossbeam_utils::CachePadded;
use model::outcome::{OutcomeClass, Try};
use model::time::Timestamp;

use crate::first_byte::BUCKETS;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Written by its worker alone, read by all. On lines of its own, so that a neighbour's reader does not slow it down.
#[derive(Default)]
pub(crate) struct Record(CachePadded<Fields>);

struct Fields {
    in_flight: AtomicU32,
    /// Those of them that have no response head yet.
    waiting: AtomicU32,
    last_progress: AtomicU64,
    /// Ended attempts by class. Of those that ended well only the silent ones: no event tells of them.
    counts: [AtomicU64; CLASSES],
    /// Silent ones that ended well and were not the first try of their request. A part of `counts`.
    ok_repeats: AtomicU64,
    /// Ended well, and an event tells of each. No part of `counts`: what is told must not be summed.
    ok_told: AtomicU64,
    /// Events that found the ring full, by [`kind`]. A part of `counts` and `ok_told`.
    merged: [AtomicU32; KINDS],
    /// Response heads by their time to first byte.
    first_bytes: [AtomicU32; BUCKETS],
}

impl Default for Fields {
    fn default() -> Self {
        Self {
            in_flight: AtomicU32::default(),
            waiting: AtomicU32::default(),
            last_progress: AtomicU64::default(),
            counts: Default::default(),
            ok_repeats: AtomicU64::default(),
            ok_told: AtomicU64::default(),
            merged: Default::default(),
            first_bytes: std::array::from_fn(|_| AtomicU32::default()),
        }
    }
}

impl Record {
    /// Acquire: who sees that a request is over sees all that it left here.
    pub(crate) fn in_flight(&self) -> u32 {
        self.0.in_flight.load(Ordering::Acquire)
    }

    pub(crate) fn waiting(&self) -> u32 {
        self.0.waiting.load(Ordering::Relaxed)
    }

    /// Wraps around: compare by difference.
    pub(crate) fn first_bytes(&self) -> [u32; BUCKETS] {
        self.0.first_bytes.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    pub(crate) fn last_progress(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.last_progress.load(Ordering::Relaxed))
    }

    /// All that ended with this class.
    pub(crate) fn count(&self, class: OutcomeClass) -> u64 {
        let told = if class == OutcomeClass::Ok { self.0.ok_told.load(Ordering::Relaxed) } else { 0 };
        self.silent(class).wrapping_add(told)
    }

    /// Those that ended well without an event. Acquire: of each that is seen, it is seen whether it was a repeat.
    pub(crate) fn silent_ok(&self) -> u64 {
        self.silent(OutcomeClass::Ok)
    }

    fn silent(&self, class: OutcomeClass) -> u64 {
        self.0.counts.get(usize::from(class.code())).map_or(0, |count| count.load(Ordering::Acquire))
    }

    pub(crate) fn ok_repeats(&self) -> u64 {
        self.0.ok_repeats.load(Ordering::Relaxed)
    }

    /// Wraps around: compare by difference.
    pub(crate) fn merged(&self) -> [u32; KINDS] {
        self.0.merged.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    // From here on: the owner's calls. A load and a store are enough where only one thread writes.

    pub(crate) fn enter(&self) {
        self.0.in_flight.store(self.in_flight().wrapping_add(1), Ordering::Relaxed);
        self.0.waiting.store(self.waiting().wrapping_add(1), Ordering::Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.0.in_flight.store(self.in_flight().saturating_sub(1), Ordering::Release);
    }

    pub(crate) fn wait_begun(&self) {
        self.0.waiting.store(self.waiting().wrapping_add(1), Ordering::Relaxed);
    }

    pub(crate) fn wait_over(&self) {
        self.0.waiting.store(self.waiting().saturating_sub(1), Ordering::Relaxed);
    }

    pub(crate) fn first_byte(&self, bucket: usize) {
        if let Some(count) = self.0.first_bytes.get(bucket) {
            count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    pub(crate) fn progress(&self, now: Timestamp) {
        self.0.last_progress.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// One of which an event will tell.
    pub(crate) fn add_told(&self, class: OutcomeClass, which: Try) {
        if class == OutcomeClass::Ok {
            self.0.ok_told.store(self.0.ok_told.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        } else {
            self.add(class, which);
        }
    }

    pub(crate) fn add(&self, class: OutcomeClass, which: Try) {
        if which == Try::Repeat && class == OutcomeClass::Ok {
            let repeats = self.0.ok_repeats.load(Ordering::Relaxed).wrapping_add(1);
            self.0.ok_repeats.store(repeats, Ordering::Relaxed);
        }
        if let Some(count) = self.0.counts.get(usize::from(class.code())) {
            count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        }
    }

    pub(crate) fn merge(&self, class: OutcomeClass, which: Try) {
        if let Some(count) = self.0.merged.get(kind(class, which)) {
            count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }
}

/// The place of a class and a try among the merged counts.
fn kind(class: OutcomeClass, which: Try) -> usize {
    match which {
        Try::First => usize::from(class.code()),
        Try::Repeat => CLASSES + usize::from(class.code()),
    }
}

/// Classes and tries in the order of their places.
pub(crate) fn kinds() -> impl Iterator<Item = (OutcomeClass, Try)> {
    Try::ALL.into_iter().flat_map(|which| OutcomeClass::ALL.into_iter().map(move |class| (class, which)))
}

const CLASSES: usize = OutcomeClass::ALL.len();
pub(crate) const KINDS: usize = CLASSES * Try::ALL.len();
