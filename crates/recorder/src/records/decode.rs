//! Reading records, of which nothing is believed.

use std::collections::BTreeMap;
use std::time::Duration;

use health::{Input, OutcomeEvent, Probed, Pulse, Sum, Ticket};
use model::id::Slot;
use model::outcome::{FailureKind, Outcome, OutcomeClass, Try};
use model::time::Timestamp;

use super::{
    AGAIN, ASKED, ASKED_SOME, Asked, CONFIGURED, Configurations, EVENT, OTHER, OUTCOME, PROBED, PULSES, QUIET, Record,
    SUMS, TIMER, no_pulse,
};
use crate::bytes::Reader;

/// Reads records.
pub(crate) struct Decoder<'a> {
    reader: Reader<'a>,
    configurations: &'a Configurations,
    at: Timestamp,
    pulses: BTreeMap<Slot, Pulse>,
    again: u64,
    last: Option<OutcomeEvent>,
}

/// The bytes are no records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Garbled;

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: Timestamp, configurations: &'a Configurations) -> Self {
        Self { reader: Reader(bytes), configurations, at, pulses: BTreeMap::new(), again: 0, last: None }
    }

    /// The next record; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Record>, Garbled> {
        if let Some(event) = self.last.filter(|_| self.again > 0) {
            self.again -= 1;
            return Ok(Some(Record::Input(self.at, Input::OutcomeSeen(event))));
        }
        if self.reader.is_over() {
            return Ok(None);
        }
        let record = self.record().ok_or(Garbled)?;
        match record {
            Some(record) => Ok(Some(record)),
            // A repetition: what is repeated comes now.
            None => self.next(),
        }
    }

    fn record(&mut self) -> Option<Option<Record>> {
        let kind = self.reader.byte()?;
        match kind {
            ASKED => return Some(Some(Record::Asked(Asked::All))),
            ASKED_SOME => return Some(Some(Record::Asked(Asked::Some(self.reader.number()?)))),
            EVENT => return Some(Some(Record::Event(self.reader.text()?.to_vec()))),
            AGAIN => {
                self.again = self.reader.number().filter(|again| *again > 0 && self.last.is_some())?;
                return Some(None);
            }
            _ => {}
        }
        let passed = self.reader.number()?;
        self.at = Timestamp::from_nanos(self.at.as_nanos().checked_add(passed)?);
        self.last = None;
        let input = self.input(kind)?;
        Some(Some(Record::Input(self.at, input)))
    }

    fn input(&mut self, kind: u8) -> Option<Input> {
        match kind {
            TIMER => Some(Input::TimerDue),
            OUTCOME => {
                let event = self.outcome()?;
                self.last = Some(event);
                Some(Input::OutcomeSeen(event))
            }
            SUMS => {
                let n = self.reader.number()?;
                let sums: Option<Vec<Sum>> = (0..n).map(|_| self.sum()).collect();
                Some(Input::SumsTaken { sums: sums? })
            }
            PULSES => {
                let n = self.reader.number()?;
                let pulses: Option<Vec<Pulse>> = (0..n).map(|_| self.pulse()).collect();
                Some(Input::PulsesTaken { pulses: pulses? })
            }
            PROBED => Some(Input::Probed(Probed {
                ticket: Ticket(self.reader.number()?),
                failure: self.failure()?,
                status: self.status()?,
            })),
            QUIET => Some(Input::SlotQuiet { slot: self.slot()? }),
            CONFIGURED => {
                let clusters = self.configurations.get(&self.reader.number()?)?.clone();
                let summary = String::from_utf8(self.reader.text()?.to_vec()).ok()?;
                Some(Input::Configured { clusters, summary })
            }
            OTHER => serde_json::from_slice(self.reader.text()?).ok(),
            _ => None,
        }
    }

    fn outcome(&mut self) -> Option<OutcomeEvent> {
        let now = self.at.as_nanos();
        let slot = self.slot()?;
        let picked_at = Timestamp::from_nanos(self.reader.step(now)?);
        let at = Timestamp::from_nanos(self.reader.step(now)?);
        let class = OutcomeClass::from_code(self.reader.byte()?)?;
        let failure = self.failure()?;
        let status = self.status()?;
        let flags = self.reader.byte()?;
        let outcome = Outcome { class, failure, status, retryable: flags & 1 > 0, client_gone: flags & 2 > 0 };
        let which = if flags & 4 > 0 { Try::Repeat } else { Try::First };
        Some(OutcomeEvent { slot, picked_at, at, which, outcome })
    }

    fn sum(&mut self) -> Option<Sum> {
        let (slot, ok, repeats) = (self.slot()?, self.reader.number()?, self.reader.number()?);
        Some(Sum { slot, ok, repeats })
    }

    fn pulse(&mut self) -> Option<Pulse> {
        let slot = self.slot()?;
        let changes = self.reader.byte()?;
        let mut pulse = self.pulses.get(&slot).copied().unwrap_or(no_pulse(slot));
        let now = self.at.as_nanos();
        if changes & 1 > 0 {
            pulse.waiting = u32::try_from(self.reader.number()?).ok()?;
        }
        if changes & 2 > 0 {
            pulse.waiting_since = Timestamp::from_nanos(self.reader.step(now)?);
        }
        if changes & 4 > 0 {
            pulse.moved_at = Timestamp::from_nanos(self.reader.step(now)?);
        }
        if changes & 8 > 0 {
            pulse.first_byte_p99 = self.span()?;
        }
        if changes & 16 > 0 {
            pulse.latency = self.span()?;
        }
        if changes & 32 > 0 {
            pulse.mean = self.span()?;
        }
        if changes & 64 > 0 {
            pulse.slowest = self.span()?;
        }
        self.pulses.insert(slot, pulse);
        Some(pulse)
    }

    fn span(&mut self) -> Option<Option<Duration>> {
        match self.reader.byte()? {
            0 => Some(None),
            1 => {
                let seconds = self.reader.number()?;
                let nanos = u32::try_from(self.reader.number()?).ok().filter(|nanos| *nanos < 1_000_000_000)?;
                Some(Some(Duration::new(seconds, nanos)))
            }
            _ => None,
        }
    }

    fn slot(&mut self) -> Option<Slot> {
        u32::try_from(self.reader.number()?).ok().map(Slot)
    }

    fn failure(&mut self) -> Option<Option<FailureKind>> {
        match self.reader.byte()? {
            0 => Some(None),
            code => FailureKind::from_code(code - 1).map(Some),
        }
    }

    fn status(&mut self) -> Option<Option<u16>> {
        match self.reader.number()? {
            0 => Some(None),
            status => u16::try_from(status - 1).ok().map(Some),
        }
    }
}
