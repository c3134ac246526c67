//! What a step of the core leaves behind: outputs, deadlines, numbers given. Kept apart from the clusters, so that one
//! cluster can be worked on while its effects are noted.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use model::event::{Event, EventKind};
use model::id::{Revision, Slot};
use model::random::Random;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::output::{Output, Ticket};
use crate::timers::{TimerKey, Timers};

/// How long facts may wait until they are published.
const FACTS_AFTER: Duration = Duration::from_millis(100);

/// The effects of this step and the numbers behind them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Effects {
    /// The time of the running input.
    pub(crate) now: Timestamp,
    /// Every deadline.
    pub(crate) timers: Timers,
    seed: u64,
    /// Probes in flight.
    pub(crate) tickets: BTreeMap<Ticket, Slot>,
    /// The last event's number.
    pub(crate) revision: Revision,
    #[serde(skip)]
    outputs: VecDeque<Output>,
    #[serde(skip)]
    is_publish_due: bool,
    next_ticket: u64,
    /// How often a value of anybody's health was written.
    #[serde(skip)]
    pub(crate) moves: u64,
}

impl Effects {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            now: Timestamp::ZERO,
            timers: Timers::default(),
            seed,
            tickets: BTreeMap::new(),
            revision: Revision::default(),
            outputs: VecDeque::new(),
            is_publish_due: false,
            next_ticket: 1,
            moves: 0,
        }
    }

    /// A generator of its own for each name, so that nobody's jitter depends on what happens to others.
    pub(crate) fn random(&self, name: &str) -> Random {
        // FNV-1a, 64 bits: well mixed by the generator's first step.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Random::new(self.seed ^ hash)
    }

    /// Whether nothing waits to be polled.
    pub(crate) fn is_drained(&self) -> bool {
        self.outputs.is_empty() && !self.is_publish_due
    }

    /// Notes an output.
    pub(crate) fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// Notes an event under the next number. What it tells of must be published with it.
    pub(crate) fn event(&mut self, kind: EventKind) {
        self.revision = self.revision.next();
        self.push(Output::Event(Event { revision: self.revision, at: self.now, kind }));
        self.publish();
    }

    /// The view must be published with this step.
    pub(crate) fn publish(&mut self) {
        self.is_publish_due = true;
        self.timers.cancel(TimerKey::Facts);
    }

    /// A mere fact has changed: published with the next occasion, or a little later.
    pub(crate) fn note_fact(&mut self) {
        if !self.is_publish_due && self.timers.at(TimerKey::Facts).is_none() {
            self.timers.set(TimerKey::Facts, self.now + FACTS_AFTER);
        }
    }

    /// A name for a new probe of this slot.
    pub(crate) fn ticket(&mut self, slot: Slot) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.tickets.insert(ticket, slot);
        ticket
    }

    /// The next output: everything in its order, a pending Publish behind it.
    pub(crate) fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front().or_else(|| std::mem::take(&mut self.is_publish_due).then_some(Output::Publish))
    }
}
