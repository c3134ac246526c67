//! One round of polls after the other, never two at once.
//!
//! A cycle asks for each upstream once, all at the same time, and ends when the last one is answered or its deadline
//! (`apisix_timeout`) is over, whichever is first; what is outstanding then has failed by timeout. The next one starts
//! `apisix_poll_interval` after the start of this one or at its end, whichever is later. So polls neither overlap nor
//! pile up when the timeout is longer than the interval. A deadline that is noticed late is put off once, by as much, a second
//! at most: the process stood still.

use std::collections::BTreeSet;
use std::time::Duration;

use model::time::Timestamp;
use model::vip::UpstreamRef;

/// The running cycle, or the last one.
#[derive(Clone, Debug, Default)]
pub struct Cycle {
    number: u64,
    started: Option<Timestamp>,
    waiting: BTreeSet<UpstreamRef>,
    is_put_off: bool,
    completed: u64,
    last_complete_start: Option<Timestamp>,
}

impl Cycle {
    /// Starts the next one and returns its number.
    pub fn start(&mut self, now: Timestamp, upstreams: BTreeSet<UpstreamRef>) -> u64 {
        self.number = self.number.saturating_add(1);
        self.started = Some(now);
        self.waiting = upstreams;
        self.is_put_off = false;
        self.number
    }

    /// Crosses an upstream off. False when nobody waits for it: a late answer, or one to a cycle of the past.
    pub fn answered(&mut self, number: u64, upstream: &UpstreamRef) -> bool {
        number == self.number && self.waiting.remove(upstream)
    }

    /// Puts the running one's deadline off. False where that was done before, or nothing is outstanding.
    pub fn put_off(&mut self) -> bool {
        self.is_running() && !std::mem::replace(&mut self.is_put_off, true)
    }

    /// Takes what is outstanding at the deadline.
    pub fn take_outstanding(&mut self) -> BTreeSet<UpstreamRef> {
        std::mem::take(&mut self.waiting)
    }

    /// Counts it as complete.
    pub fn complete(&mut self) {
        self.completed = self.completed.saturating_add(1);
        self.last_complete_start = self.started;
    }

    /// Gives the running one up, without a result.
    pub fn abandon(&mut self) {
        self.waiting.clear();
    }

    /// When the next one starts if this one ends at `now`.
    pub fn next_start(&self, now: Timestamp, interval: Duration) -> Timestamp {
        self.started.map_or(now, |started| now.max(started + interval))
    }

    /// Whether answers are outstanding.
    pub fn is_running(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the answer of this upstream is outstanding.
    pub fn awaits(&self, upstream: &UpstreamRef) -> bool {
        self.waiting.contains(upstream)
    }

    /// When the last one that came to its end began.
    pub fn last_complete_start(&self) -> Option<Timestamp> {
        self.last_complete_start
    }

    /// How many came to their end.
    pub fn completed(&self) -> u64 {
        self.completed
    }
}
