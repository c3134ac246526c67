//! A recorded core that is driven as the monitor does it.

use std::time::Duration;

use health::{Core, Input, Output, Probed};
use model::event::Event;
use model::id::Slot;
use model::time::Timestamp;
use recorder::{Header, Limits, RecordedCore, Recording};

pub struct Tape {
    pub core: RecordedCore,
    /// Everything that it told.
    pub events: Vec<Event>,
    freed: Vec<Slot>,
}

pub fn limits(keep: u64, size: usize) -> Limits {
    Limits { keep: Duration::from_secs(keep), size }
}

pub fn header() -> Header {
    let (version, instance) = ("1.2.3".to_owned(), "test".to_owned());
    Header { version, instance, saved_at_unix_ms: 0, saved_at: Timestamp::ZERO }
}

impl Tape {
    pub fn new(limits: Limits) -> Self {
        Self::begun(limits, Timestamp::ZERO)
    }

    /// Of a process that began then, on a clock that may have run before.
    pub fn begun(limits: Limits, now: Timestamp) -> Self {
        let mut core = RecordedCore::new(Core::new(3), now);
        core.limit(Some(limits));
        Self { core, events: Vec::new(), freed: Vec::new() }
    }

    /// Several inputs, then everything that is to be done; every third probe cannot be sent, which is told in between.
    pub fn take(&mut self, inputs: impl IntoIterator<Item = (Timestamp, Input)>) {
        for (now, input) in inputs {
            for slot in std::mem::take(&mut self.freed) {
                self.core.handle(now, Input::SlotQuiet { slot });
            }
            self.core.handle(now, input);
        }
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Event(event) => self.events.push(event),
                Output::Probe(order) if order.ticket.0 % 3 == 0 => {
                    let failure = Some(model::outcome::FailureKind::Cancelled);
                    self.core.handle(order.at, Input::Probed(Probed { ticket: order.ticket, failure, status: None }));
                }
                Output::Publish => drop(self.core.core_for_view().view()),
                Output::FreeSlot(slot) => self.freed.push(slot),
                Output::Probe(_) | Output::CancelProbe(_) => {}
            }
        }
    }

    pub fn saved(&mut self) -> Recording {
        Recording::read(&self.core.save(&header()).unwrap()).unwrap()
    }
}
