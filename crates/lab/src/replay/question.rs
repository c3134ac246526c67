//! What another policy would have done with a recording's inputs: an open loop, for the traffic is the recorded one.
//!
//! ```text
//!   record ──> the recorded core, as it was ──> who was out, whose slot and ticket is whose
//!      └─────> another core, with another passive block ──> who would have been out
//! ```
//! A destination that would have been out keeps its recorded requests: they are counted as spared (failed ones) or moved
//! (good ones), and the other core does not hear of them, for they would have gone elsewhere. Where the recorded process
//! had a destination out, nobody knows how it would have served: that time is counted as unseen. Successes are known as
//! sums, so a policy that wants each outcome gets them before the failures of the same drain. A probe that the other core
//! wants is answered by the destination's next recorded one, or by the last when its time is over.

pub mod film;

mod watched;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use health::{Core, Input, Needs, OutcomeEvent, Output, Probed, Registry, SavedHealth, Sum, Ticket};
use model::cluster::Cluster;
use model::health::Health;
use model::id::DestinationKey;
use model::outcome::{FailureKind, Outcome, OutcomeClass, Try};
use model::time::Timestamp;
use recorder::{Record, Recording, ReplayError};

use crate::policy::{Policy, PolicyError};
use film::{Failures, Lane, Met};
use watched::Watched;

/// What one policy would have done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its name.
    pub policy: String,
    /// Of each destination that was there at any time, in order.
    pub rows: Vec<(DestinationKey, Row)>,
    /// How each of them served over time: as it was, and as it would have been; in the same order.
    pub lanes: Vec<(Lane, Lane)>,
    /// Failed attempts over time.
    pub failures: Failures,
}

/// One destination under both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// As it was.
    pub recorded: Side,
    /// As it would have been.
    pub other: Side,
    /// Recorded attempts that failed while it would have been out.
    pub spared: u64,
    /// Recorded attempts that were good, or no sign of anything, while it would have been out.
    pub moved: u64,
    /// It was out and would have been in: how it would have served is not known.
    pub unseen: Duration,
}

/// How a destination fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Times its traffic had it called Unhealthy.
    pub ejections: u64,
    /// How long it took no traffic, for whatever reason.
    pub out: Duration,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionError {
    /// The recording is at fault.
    Replay(ReplayError),
    /// The policy cannot be asked.
    Policy(PolicyError),
}

impl std::fmt::Display for QuestionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Replay(error) => error.fmt(f),
            Self::Policy(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for QuestionError {}

/// Asks one policy.
pub fn ask(recording: &Recording, policy: &Policy) -> Result<Answer, QuestionError> {
    let replay = QuestionError::Replay;
    let recorded = recording.core(Registry::default()).map_err(replay)?;
    let failures = Failures::new(recording.begins_at(), recording.header.saved_at);
    let mut question = Question::new(recorded, policy, failures);
    question.begin(recording.begins_at(), &recording.clusters()).map_err(QuestionError::Policy)?;
    let mut refused = None;
    recording
        .each(|record| {
            if refused.is_none() {
                refused = question.take(record).err();
            }
        })
        .map_err(|error| replay(ReplayError::Read(error)))?;
    refused.map_or_else(|| Ok(question.answer()), |error| Err(QuestionError::Policy(error)))
}

struct Question<'a> {
    policy: &'a Policy,
    now: Timestamp,
    recorded: Watched,
    other: Watched,
    /// Whose probe the recorded tickets are.
    tickets: BTreeMap<Ticket, DestinationKey>,
    /// What the other core waits for, and until when.
    pending: BTreeMap<Ticket, (DestinationKey, Timestamp)>,
    /// The last recorded result.
    results: BTreeMap<DestinationKey, (Option<FailureKind>, Option<u16>)>,
    counts: BTreeMap<DestinationKey, (u64, u64)>,
    unseen: BTreeMap<DestinationKey, Duration>,
    failures: Failures,
}

impl<'a> Question<'a> {
    fn new(recorded: Core, policy: &'a Policy, failures: Failures) -> Self {
        Self {
            policy,
            now: Timestamp::ZERO,
            recorded: Watched::new(recorded),
            other: Watched::new(Core::new(0)),
            tickets: BTreeMap::new(),
            pending: BTreeMap::new(),
            results: BTreeMap::new(),
            counts: BTreeMap::new(),
            failures,
            unseen: BTreeMap::new(),
        }
    }

    /// Both know the same of probes; of traffic the other one knows nothing yet.
    fn begin(&mut self, at: Timestamp, clusters: &[Arc<Cluster>]) -> Result<(), PolicyError> {
        self.now = at;
        let saved = without_traffic(self.recorded.core.save());
        self.recorded.learn(self.now);
        let clusters = self.applied(clusters)?;
        self.other.core.handle(at, Input::Configured { clusters, summary: String::new() });
        self.other.core.handle(at, Input::HealthRestored(Box::new(saved)));
        self.settle_other();
        self.other.learn(self.now);
        Ok(())
    }

    fn applied(&self, clusters: &[Arc<Cluster>]) -> Result<Vec<Arc<Cluster>>, PolicyError> {
        clusters.iter().map(|cluster| self.policy.applied_to(cluster).map(Arc::new)).collect()
    }

    fn take(&mut self, record: Record) -> Result<(), PolicyError> {
        match record {
            Record::Event(_) => {}
            Record::Asked(_) => {
                self.settle_recorded();
                self.settle_other();
            }
            Record::Input(now, input) => {
                self.advance(now);
                self.tell_other(now, &input)?;
                let is_new = matches!(input, Input::Configured { .. });
                self.recorded.core.handle(now, input);
                if is_new {
                    self.settle_recorded();
                    self.settle_other();
                    self.recorded.learn(self.now);
                    self.other.learn(self.now);
                }
            }
        }
        Ok(())
    }

    /// Time passes: the other core has timers of its own, and probes that nobody answered.
    fn advance(&mut self, now: Timestamp) {
        while let Some(due) = self.next_due().filter(|due| *due <= now) {
            self.pass(due);
            self.other.core.handle(due, Input::TimerDue);
            let late: Vec<(Ticket, DestinationKey)> = (self.pending.iter())
                .filter(|(_, (_, until))| *until <= due)
                .map(|(ticket, (key, _))| (*ticket, key.clone()))
                .collect();
            for (ticket, key) in late {
                self.pending.remove(&ticket);
                let unknown = (Some(FailureKind::Cancelled), None);
                let (failure, status) = self.results.get(&key).copied().unwrap_or(unknown);
                self.other.core.handle(due, Input::Probed(Probed { ticket, failure, status }));
            }
            self.settle_other();
        }
        self.pass(now);
    }

    fn next_due(&self) -> Option<Timestamp> {
        let probes = self.pending.values().map(|(_, until)| *until).min();
        self.other.core.poll_timeout().into_iter().chain(probes).min()
    }

    fn pass(&mut self, now: Timestamp) {
        let span = now.since(self.now);
        self.now = self.now.max(now);
        let both = self.recorded.destinations.iter().filter(|(key, one)| !one.is_in && self.other.is_in(key));
        for (key, _) in both {
            *self.unseen.entry(key.clone()).or_default() += span;
        }
        self.recorded.pass(span);
        self.other.pass(span);
    }

    fn tell_other(&mut self, now: Timestamp, input: &Input) -> Result<(), PolicyError> {
        let told = match input {
            Input::Configured { clusters, summary } => {
                Input::Configured { clusters: self.applied(clusters)?, summary: summary.clone() }
            }
            Input::HealthRestored(saved) => Input::HealthRestored(Box::new(without_traffic((**saved).clone()))),
            Input::TimerDue | Input::HealthSet(_) | Input::DrainStarted => input.clone(),
            Input::ConfigRefused { .. } | Input::SlotQuiet { .. } => return Ok(()),
            Input::Probed(end) => {
                self.probed(now, *end);
                return Ok(());
            }
            Input::OutcomeSeen(event) => {
                self.outcome(now, event);
                return Ok(());
            }
            Input::SumsTaken { sums } => {
                sums.iter().for_each(|sum| self.sum(now, *sum));
                return Ok(());
            }
            Input::PulsesTaken { pulses } => {
                let moved = pulses.iter().filter_map(|pulse| {
                    let slot = self.other.slot(self.recorded.key(pulse.slot)?)?;
                    Some(health::Pulse { slot, ..*pulse })
                });
                Input::PulsesTaken { pulses: moved.collect() }
            }
        };
        self.other.core.handle(now, told);
        Ok(())
    }

    fn probed(&mut self, now: Timestamp, end: Probed) {
        let Some(key) = self.tickets.remove(&end.ticket) else { return };
        if matches!(end.failure, Some(FailureKind::Cancelled | FailureKind::Local)) {
            return;
        }
        let waiting: Vec<Ticket> =
            self.pending.iter().filter(|(_, (whose, _))| *whose == key).map(|(ticket, _)| *ticket).collect();
        for ticket in waiting {
            self.pending.remove(&ticket);
            self.other.core.handle(now, Input::Probed(Probed { ticket, ..end }));
        }
        self.results.insert(key, (end.failure, end.status));
    }

    fn outcome(&mut self, now: Timestamp, event: &OutcomeEvent) {
        let Some(key) = self.recorded.key(event.slot).cloned() else { return };
        let Some(slot) = self.other.slot(&key) else { return };
        let is_failure = match event.outcome.class {
            OutcomeClass::AppFail | OutcomeClass::ConnFail | OutcomeClass::Timeout | OutcomeClass::Cut => true,
            OutcomeClass::Ok | OutcomeClass::Overload | OutcomeClass::Slow | OutcomeClass::Neutral => false,
        };
        let met = if self.other.is_in(&key) { Met::In } else { Met::Out };
        if is_failure {
            self.failures.count(now, met);
        }
        if met == Met::In {
            self.other.core.handle(now, Input::OutcomeSeen(OutcomeEvent { slot, ..*event }));
            return;
        }
        let (spared, moved) = self.counts.entry(key).or_default();
        *(if is_failure { spared } else { moved }) += 1;
    }

    fn sum(&mut self, now: Timestamp, sum: Sum) {
        let Some(key) = self.recorded.key(sum.slot).cloned() else { return };
        let Some(slot) = self.other.slot(&key) else { return };
        // There each success is an event as well.
        if self.recorded.core.needs(&key.cluster) == Needs::EveryOutcome {
            return;
        }
        if !self.other.is_in(&key) {
            self.counts.entry(key).or_default().1 += sum.ok;
        } else if self.other.core.needs(&key.cluster) == Needs::EveryOutcome {
            let class = OutcomeClass::Ok;
            let outcome = Outcome { class, failure: None, status: Some(200), retryable: false, client_gone: false };
            let event = |which| OutcomeEvent { slot, picked_at: now, at: now, which, outcome };
            (0..sum.ok).for_each(|nth| {
                let which = if nth < sum.repeats { Try::Repeat } else { Try::First };
                self.other.core.handle(now, Input::OutcomeSeen(event(which)));
            });
        } else {
            self.other.core.handle(now, Input::SumsTaken { sums: vec![Sum { slot, ..sum }] });
        }
    }

    fn settle_recorded(&mut self) {
        while let Some(output) = self.recorded.core.poll_output() {
            match output {
                Output::Event(event) => self.recorded.heard(&event),
                Output::Probe(order) => {
                    self.tickets.insert(order.ticket, order.destination);
                }
                Output::CancelProbe(ticket) => {
                    self.tickets.remove(&ticket);
                }
                Output::Publish | Output::FreeSlot(_) => {}
            }
        }
    }

    fn settle_other(&mut self) {
        let now = self.now;
        while let Some(output) = self.other.core.poll_output() {
            match output {
                Output::Event(event) => self.other.heard(&event),
                Output::Probe(order) => {
                    self.pending.insert(order.ticket, (order.destination, now + order.timeout));
                }
                Output::CancelProbe(ticket) => {
                    self.pending.remove(&ticket);
                }
                // Nobody but this holds it.
                Output::FreeSlot(slot) => self.other.core.handle(now, Input::SlotQuiet { slot }),
                Output::Publish => {}
            }
        }
    }

    fn answer(self) -> Answer {
        let row = |key: &DestinationKey| {
            let (spared, moved) = self.counts.get(key).copied().unwrap_or_default();
            let side = |watched: &Watched| watched.destinations.get(key).map(|one| one.side).unwrap_or_default();
            let unseen = self.unseen.get(key).copied().unwrap_or_default();
            Row { recorded: side(&self.recorded), other: side(&self.other), spared, moved, unseen }
        };
        let keys = self.recorded.destinations.keys();
        let lane =
            |watched: &Watched, key| watched.destinations.get(key).map(|one| one.lane.clone()).unwrap_or_default();
        Answer {
            policy: self.policy.name.clone(),
            rows: keys.clone().map(|key| (key.clone(), row(key))).collect(),
            lanes: keys.map(|key| (lane(&self.recorded, key), lane(&self.other, key))).collect(),
            failures: self.failures,
        }
    }
}

fn without_traffic(mut saved: SavedHealth) -> SavedHealth {
    for destination in saved.clusters.iter_mut().flat_map(|cluster| &mut cluster.destinations) {
        destination.traffic = Default::default();
        destination.health.passive = Health::Unknown;
    }
    saved
}
