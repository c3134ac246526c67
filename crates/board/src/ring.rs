//! The bounded queue from one worker to the reader: one producer, one consumer, no lock.
//!
//! ```text
//!        tail (reader's)          head (worker's)
//!          v                        v
//!   ... [ . ][ e ][ e ][ e ][ e ][   ][   ] ...      holds head - tail events; full at the capacity
//! ```
//!
//! The worker fills the words at `head`, then stores `head + 1` with Release; the reader loads `head` with Acquire and so
//! sees the words. The reader stores `tail` with Release after it has copied the words out; the worker loads it with
//! Acquire before it writes over them.

use crossbeam_utils::CachePadded;

use crate::event::{Entry, WORDS};
use crate::sync::{AtomicU64, Ordering};

/// The queue. `push` is for the producer's thread alone, `pop` for the consumer's.
pub(crate) struct Ring {
    cells: Box<[[AtomicU64; WORDS]]>,
    head: CachePadded<AtomicU64>,
    tail: CachePadded<AtomicU64>,
}

/// No room.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Ring {
    /// With room for `events`, rounded up to a power of two.
    pub(crate) fn new(events: usize) -> Self {
        let cells = (0..events.next_power_of_two()).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect();
        Self { cells, head: CachePadded::new(AtomicU64::new(0)), tail: CachePadded::new(AtomicU64::new(0)) }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.cells.len()
    }

    pub(crate) fn push(&self, entry: Entry) -> Result<(), Full> {
        let head = self.head.load(Ordering::Relaxed);
        let tail = self.tail.load(Ordering::Acquire);
        if head.wrapping_sub(tail) >= self.cells.len() as u64 {
            return Err(Full);
        }
        if let Some(cell) = self.cell(head) {
            for (word, value) in cell.iter().zip(entry.to_words()) {
                word.store(value, Ordering::Relaxed);
            }
        }
        self.head.store(head.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    pub(crate) fn pop(&self) -> Option<Entry> {
        loop {
            let tail = self.tail.load(Ordering::Relaxed);
            let head = self.head.load(Ordering::Acquire);
            if head == tail {
                return None;
            }
            let words = self.cell(tail)?.each_ref().map(|word| word.load(Ordering::Relaxed));
            self.tail.store(tail.wrapping_add(1), Ordering::Release);
            // Only `push` fills cells, so the words always stand for an entry; if not, the next one may.
            if let Some(entry) = Entry::from_words(words) {
                return Some(entry);
            }
        }
    }

    fn cell(&self, at: u64) -> Option<&[AtomicU64; WORDS]> {
        self.cells.get(at as usize & (self.cells.len() - 1))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use model::id::Slot;
    use model::outcome::{Outcome, OutcomeClass, Try};
    use model::time::Timestamp;

    use super::*;
    use crate::event::Ended;

    fn entry(number: u64) -> Entry {
        let at = Timestamp::from_nanos(number);
        let outcome =
            Outcome { class: OutcomeClass::Cut, failure: None, status: None, retryable: true, client_gone: false };
        Entry { slot: Slot(1), ended: Ended { picked_at: at, ended_at: at, which: Try::First, outcome }, ok: number }
    }

    #[test]
    fn a_full_ring_refuses_and_what_comes_out_keeps_its_order() {
        let ring = Ring::new(3);
        assert_eq!(ring.capacity(), 4);
        for round in 0..5 {
            for number in 0..4 {
                ring.push(entry(round * 4 + number)).unwrap();
            }
            assert_eq!(ring.push(entry(99)), Err(Full));
            for number in 0..4 {
                assert_eq!(ring.pop(), Some(entry(round * 4 + number)));
            }
            assert_eq!(ring.pop(), None);
        }
    }
}
