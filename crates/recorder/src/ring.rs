//! The last minutes in bounded memory: segments, each with the state that it begins with, so that the oldest can go.
//!
//! ```text
//!    forgotten <──│ segment │ segment │ ... │ open segment <── records
//!                 └ state    └ state         └ state
//! ```
//! A segment is closed when it is a 16th of the limits, by time or by size; later, where states are large, so that they do
//! not take the room of what happened. The oldest goes when the others alone span [`Limits::keep`], or when all together
//! are larger than [`Limits::size`].

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use model::time::Timestamp;

use crate::records::Encoder;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// At least so long, as far as `size` allows.
    pub keep: Duration,
    /// Bytes, all in all.
    pub size: usize,
}

/// What a segment begins with.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) at: Timestamp,
    /// The number of the configuration that was in force.
    pub(crate) configuration: u64,
    /// The core's checkpoint, as JSON.
    pub(crate) checkpoint: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) start: Start,
    pub(crate) records: Vec<u8>,
}

/// The state that a segment would begin with is too large a part of the whole: nothing useful would be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// The ring.
#[derive(Debug)]
pub(crate) struct Ring {
    limits: Limits,
    /// JSON by number, oldest first; those that some segment may name.
    configurations: VecDeque<(u64, Arc<[u8]>)>,
    closed: VecDeque<Segment>,
    start: Start,
    pub(crate) open: Encoder,
    /// Bytes of everything but the open segment's records.
    settled: usize,
}

impl Ring {
    /// Begins with `start`, under the configuration that it names.
    pub(crate) fn new(limits: Limits, start: Start, configuration: Arc<[u8]>) -> Result<Self, TooLarge> {
        let settled = start.checkpoint.len() + configuration.len();
        let open = Encoder::new(start.at);
        let configurations = VecDeque::from([(start.configuration, configuration)]);
        let ring = Self { limits, configurations, closed: VecDeque::new(), start, open, settled };
        ring.is_worth_it().then_some(ring).ok_or(TooLarge)
    }

    /// A configuration comes into force.
    pub(crate) fn configuration(&mut self, number: u64, json: Arc<[u8]>) {
        self.settled += json.len();
        self.configurations.push_back((number, json));
    }

    /// Whether the open segment is long enough.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        let is_long = now.since(self.start.at) >= self.limits.keep / PARTS;
        let state = self.start.checkpoint.len();
        let new = self.configurations.iter().filter(|(number, _)| *number > self.start.configuration);
        let gained = self.open.len() + new.map(|(_, json)| json.len()).sum::<usize>();
        let is_much = gained >= (self.limits.size / PARTS as usize).max(state);
        is_long && gained * 2 >= state || is_much
    }

    /// Closes the open segment and begins the next one.
    pub(crate) fn turn(&mut self, start: Start) -> Result<(), TooLarge> {
        let records = self.open.bytes().to_vec();
        self.open = Encoder::new(start.at);
        self.settled += start.checkpoint.len() + records.len();
        let before = std::mem::replace(&mut self.start, start);
        self.closed.push_back(Segment { start: before, records });
        self.forget();
        self.is_worth_it().then_some(()).ok_or(TooLarge)
    }

    /// Drops what is too old, or too much.
    pub(crate) fn forget(&mut self) {
        loop {
            let second = self.closed.get(1).map_or(self.start.at, |segment| segment.start.at);
            let is_old = self.start.at.since(second) >= self.limits.keep;
            if !is_old && self.len() <= self.limits.size {
                return;
            }
            let Some(oldest) = self.closed.pop_front() else { return };
            self.settled -= oldest.start.checkpoint.len() + oldest.records.len();
            let first = self.closed.front().map_or(self.start.configuration, |segment| segment.start.configuration);
            while self.configurations.front().is_some_and(|(number, _)| *number < first) {
                self.settled -= self.configurations.pop_front().map_or(0, |(_, json)| json.len());
            }
        }
    }

    /// Whether it is larger than it may be.
    pub(crate) fn is_full(&self) -> bool {
        self.len() > self.limits.size
    }

    fn is_worth_it(&self) -> bool {
        let configuration = self.configurations.back().map_or(0, |(_, json)| json.len());
        (self.start.checkpoint.len() + configuration).saturating_mul(4) <= self.limits.size
    }

    /// Bytes held.
    pub(crate) fn len(&self) -> usize {
        self.settled + self.open.len()
    }

    /// When the oldest record may be from.
    pub(crate) fn since(&self) -> Timestamp {
        self.closed.front().map_or(self.start.at, |segment| segment.start.at)
    }

    /// What the open segment began with, and the configuration that was in force then.
    pub(crate) fn begun(&self) -> (&Start, &[u8]) {
        let json = self.configurations.iter().find(|(number, _)| *number == self.start.configuration);
        (&self.start, json.map(|(_, json)| json.as_ref()).unwrap_or_default())
    }

    pub(crate) fn configurations(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.configurations.iter().map(|(number, json)| (*number, json.as_ref()))
    }

    /// All segments, oldest first, the open one last: what each begins with, and its records.
    pub(crate) fn segments(&mut self) -> impl Iterator<Item = (&Start, &[u8])> {
        let closed = self.closed.iter().map(|segment| (&segment.start, segment.records.as_slice()));
        closed.chain(std::iter::once((&self.start, self.open.bytes())))
    }
}

/// Segments that a full ring has.
const PARTS: u32 = 16;
