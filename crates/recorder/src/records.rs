//! What a segment holds, one after the other: inputs with their times, when outputs were asked for, and events.
//!
//! ```text
//!   kind (1 byte)  time since the record before (number)  what belongs to the kind
//! ```
//! What comes with each tick is kept in few bytes: a pulse says what differs from the destination's last one, an outcome
//! that is repeated is a count. Everything that is rare is JSON.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use health::{Input, OutcomeEvent, Probed, Pulse, Sum, Ticket};
use model::cluster::Cluster;
use model::event::Event;
use model::id::Slot;
use model::outcome::{FailureKind, Outcome, OutcomeClass};
use model::time::Timestamp;

use crate::bytes::{Reader, Writer};

/// One thing that happened at the core.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// It was told.
    Input(Timestamp, Input),
    /// It was asked what is to be done, or for its view: who is available is chosen then.
    Asked(Asked),
    /// It told an event, as JSON.
    Event(Vec<u8>),
}

/// How far the core was asked what is to be done before the next input came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// So many outputs were taken; none: only the view.
    Some(u64),
    /// Until there was nothing left.
    All,
}

/// The configurations of a recording, by number.
pub(crate) type Configurations = BTreeMap<u64, Vec<Arc<Cluster>>>;

/// Writes records. Times never go back: the core takes an earlier one for the one before, and so does this.
#[derive(Debug)]
pub(crate) struct Encoder {
    out: Writer,
    at: Timestamp,
    pulses: BTreeMap<Slot, Pulse>,
    /// The outcome that was written last, while nothing has followed it, and how often it came again.
    last: Option<(OutcomeEvent, u64)>,
}

impl Encoder {
    /// Nothing written; the first record's time counts from `at`.
    pub(crate) fn new(at: Timestamp) -> Self {
        Self { out: Writer::default(), at, pulses: BTreeMap::new(), last: None }
    }

    pub(crate) fn len(&self) -> usize {
        self.out.0.len()
    }

    /// Everything so far.
    pub(crate) fn bytes(&mut self) -> &[u8] {
        self.flush();
        &self.out.0
    }

    pub(crate) fn asked(&mut self, asked: Asked) {
        self.flush();
        match asked {
            Asked::All => self.out.byte(ASKED),
            Asked::Some(outputs) => {
                self.out.byte(ASKED_SOME);
                self.out.number(outputs);
            }
        }
    }

    pub(crate) fn event(&mut self, event: &Event) {
        self.flush();
        self.out.byte(EVENT);
        self.out.text(&json(event));
    }

    /// An input; a configuration under its number.
    pub(crate) fn input(&mut self, now: Timestamp, input: &Input, configuration: u64) {
        let now = now.max(self.at);
        if let Input::OutcomeSeen(event) = input {
            return self.outcome(now, event);
        }
        self.flush();
        match input {
            Input::OutcomeSeen(_) => {}
            Input::TimerDue => self.begin(TIMER, now),
            Input::SumsTaken { sums } => {
                self.begin(SUMS, now);
                self.out.number(sums.len() as u64);
                for Sum { slot, ok } in sums {
                    self.out.number(u64::from(slot.0));
                    self.out.number(*ok);
                }
            }
            Input::PulsesTaken { pulses } => {
                self.begin(PULSES, now);
                self.out.number(pulses.len() as u64);
                pulses.iter().for_each(|pulse| self.pulse(pulse));
            }
            Input::Probed(Probed { ticket, failure, status }) => {
                self.begin(PROBED, now);
                self.out.number(ticket.0);
                self.out.byte(failure_code(*failure));
                self.out.number(status.map_or(0, |status| u64::from(status) + 1));
            }
            Input::SlotQuiet { slot } => {
                self.begin(QUIET, now);
                self.out.number(u64::from(slot.0));
            }
            Input::Configured { clusters: _, summary } => {
                self.begin(CONFIGURED, now);
                self.out.number(configuration);
                self.out.text(summary.as_bytes());
            }
            Input::ConfigRefused { .. } | Input::HealthSet(_) | Input::HealthRestored(_) | Input::DrainStarted => {
                self.begin(OTHER, now);
                self.out.text(&json(input));
            }
        }
    }

    fn begin(&mut self, kind: u8, now: Timestamp) {
        self.out.byte(kind);
        self.out.number(now.as_nanos() - self.at.as_nanos());
        self.at = now;
    }

    fn flush(&mut self) {
        if let Some((_, again)) = self.last.take().filter(|(_, again)| *again > 0) {
            self.out.byte(AGAIN);
            self.out.number(again);
        }
    }

    fn outcome(&mut self, now: Timestamp, event: &OutcomeEvent) {
        if let Some((last, again)) = &mut self.last
            && last == event
            && now == self.at
        {
            *again += 1;
            return;
        }
        self.flush();
        self.begin(OUTCOME, now);
        let OutcomeEvent { slot, picked_at, at, outcome } = event;
        self.out.number(u64::from(slot.0));
        self.out.step(now.as_nanos(), picked_at.as_nanos());
        self.out.step(now.as_nanos(), at.as_nanos());
        self.out.byte(outcome.class.code());
        self.out.byte(failure_code(outcome.failure));
        self.out.number(outcome.status.map_or(0, |status| u64::from(status) + 1));
        self.out.byte(u8::from(outcome.retryable) | (u8::from(outcome.client_gone) << 1));
        self.last = Some((*event, 0));
    }

    fn pulse(&mut self, pulse: &Pulse) {
        let before = self.pulses.insert(pulse.slot, *pulse).unwrap_or(no_pulse(pulse.slot));
        let changes = [
            before.waiting != pulse.waiting,
            before.waiting_since != pulse.waiting_since,
            before.moved_at != pulse.moved_at,
            before.first_byte_p99 != pulse.first_byte_p99,
            before.latency != pulse.latency,
            before.mean != pulse.mean,
        ];
        self.out.number(u64::from(pulse.slot.0));
        self.out.byte(changes.iter().zip(0..).fold(0, |mask, (is_new, bit)| mask | (u8::from(*is_new) << bit)));
        let [waiting, since, moved, p99, latency, mean] = changes;
        if waiting {
            self.out.number(u64::from(pulse.waiting));
        }
        if since {
            self.out.step(self.at.as_nanos(), pulse.waiting_since.as_nanos());
        }
        if moved {
            self.out.step(self.at.as_nanos(), pulse.moved_at.as_nanos());
        }
        if p99 {
            self.span(pulse.first_byte_p99);
        }
        if latency {
            self.span(pulse.latency);
        }
        if mean {
            self.span(pulse.mean);
        }
    }

    fn span(&mut self, span: Option<Duration>) {
        let Some(span) = span else { return self.out.byte(0) };
        self.out.byte(1);
        self.out.number(span.as_secs());
        self.out.number(u64::from(span.subsec_nanos()));
    }
}

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
                let sums: Option<Vec<Sum>> =
                    (0..n).map(|_| Some(Sum { slot: self.slot()?, ok: self.reader.number()? })).collect();
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
        Some(OutcomeEvent { slot, picked_at, at, outcome })
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

/// What a destination's first pulse is told against.
fn no_pulse(slot: Slot) -> Pulse {
    Pulse {
        slot,
        waiting: 0,
        waiting_since: Timestamp::MAX,
        moved_at: Timestamp::ZERO,
        first_byte_p99: None,
        latency: None,
        mean: None,
    }
}

fn failure_code(failure: Option<FailureKind>) -> u8 {
    failure.map_or(0, |failure| failure.code() + 1)
}

/// Our own types have text keys alone and always become JSON.
fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

const ASKED: u8 = 0;
const EVENT: u8 = 1;
const AGAIN: u8 = 2;
const TIMER: u8 = 3;
const OUTCOME: u8 = 4;
const SUMS: u8 = 5;
const PULSES: u8 = 6;
const PROBED: u8 = 7;
const QUIET: u8 = 8;
const CONFIGURED: u8 = 9;
const OTHER: u8 = 10;
const ASKED_SOME: u8 = 11;
