//! What happens next: events by time, those of one time in the order in which they were planned.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use model::time::Timestamp;

use super::event::Event;

/// Planned events.
#[derive(Debug, Default)]
pub struct Queue {
    heap: BinaryHeap<Reverse<(Timestamp, u64, Event)>>,
    planned: u64,
}

impl Queue {
    /// Plans an event.
    pub fn plan(&mut self, at: Timestamp, event: Event) {
        self.planned += 1;
        self.heap.push(Reverse((at, self.planned, event)));
    }

    /// When the next one is due; [`Timestamp::MAX`] when there is none.
    pub fn next_at(&self) -> Timestamp {
        self.heap.peek().map_or(Timestamp::MAX, |Reverse((at, ..))| *at)
    }

    /// Takes the next one.
    pub fn take(&mut self) -> Option<(Timestamp, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}
