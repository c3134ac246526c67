//! Writing records in few bytes.

use std::collections::BTreeMap;
use std::time::Duration;

use health::{Input, OutcomeEvent, Probed, Pulse, Sum};
use model::event::Event;
use model::id::Slot;
use model::outcome::{FailureKind, Try};
use model::time::Timestamp;

use super::{
    AGAIN, ASKED, ASKED_SOME, Asked, CONFIGURED, EVENT, OTHER, OUTCOME, PROBED, PULSES, QUIET, SUMS, TIMER, no_pulse,
};
use crate::bytes::Writer;

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
                for Sum { slot, ok, repeats } in sums {
                    self.out.number(u64::from(slot.0));
                    self.out.number(*ok);
                    self.out.number(*repeats);
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
        let OutcomeEvent { slot, picked_at, at, which, outcome } = event;
        self.out.number(u64::from(slot.0));
        self.out.step(now.as_nanos(), picked_at.as_nanos());
        self.out.step(now.as_nanos(), at.as_nanos());
        self.out.byte(outcome.class.code());
        self.out.byte(failure_code(outcome.failure));
        self.out.number(outcome.status.map_or(0, |status| u64::from(status) + 1));
        let is_repeat = u8::from(*which == Try::Repeat);
        self.out.byte(u8::from(outcome.retryable) | (u8::from(outcome.client_gone) << 1) | (is_repeat << 2));
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
            before.slowest != pulse.slowest,
        ];
        self.out.number(u64::from(pulse.slot.0));
        self.out.byte(changes.iter().zip(0..).fold(0, |mask, (is_new, bit)| mask | (u8::from(*is_new) << bit)));
        let [waiting, since, moved, p99, latency, mean, slowest] = changes;
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
        if slowest {
            self.span(pulse.slowest);
        }
    }

    fn span(&mut self, span: Option<Duration>) {
        let Some(span) = span else { return self.out.byte(0) };
        self.out.byte(1);
        self.out.number(span.as_secs());
        self.out.number(u64::from(span.subsec_nanos()));
    }
}

fn failure_code(failure: Option<FailureKind>) -> u8 {
    failure.map_or(0, |failure| failure.code() + 1)
}

/// Our own types have text keys alone and always become JSON.
fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}
