//! A world around the core: virtual time, scripted destinations that answer probes, and a record of all that came out.

mod clusters;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use health::{Core, HealthSet, Input, OutcomeEvent, Output, ProbeOrder, Probed, Registry, Sum, Ticket};
use model::cluster::Cluster;
use model::event::{Event, EventKind, Transition};
use model::health::{CheckKind, Health, HealthPair};
use model::id::{DestinationKey, Slot};
use model::outcome::{FailureKind, Outcome, OutcomeClass};
use model::time::Timestamp;
use model::view::{ClusterHealth, DestinationHealth};

use words::words;

pub use Health::{Healthy, Unhealthy, Unknown};
pub use clusters::*;
pub use model::outcome::Try;

/// Seconds and their fractions as a moment.
pub fn at(seconds: f64) -> Timestamp {
    Timestamp::from_nanos((seconds * 1e6).round() as u64 * 1000)
}

pub fn secs(seconds: f64) -> Duration {
    at(seconds).since(Timestamp::ZERO)
}

/// How a destination answers probes.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub after: Duration,
    pub failure: Option<FailureKind>,
    pub status: Option<u16>,
}

impl Answer {
    pub fn status(status: u16) -> Self {
        Self { after: Duration::from_millis(1), failure: None, status: Some(status) }
    }

    pub fn fails(failure: FailureKind) -> Self {
        Self { after: Duration::from_millis(1), failure: Some(failure), status: None }
    }

    /// Never; its driver gives up at the timeout.
    pub fn hangs() -> Self {
        Self { after: Duration::MAX, failure: Some(FailureKind::HeadTimeout), status: None }
    }

    pub fn after(self, seconds: f64) -> Self {
        Self { after: secs(seconds), ..self }
    }
}

pub struct World {
    pub core: Core,
    pub now: Timestamp,
    /// By destination id; others answer 200 after 1 ms.
    pub answers: BTreeMap<String, Answer>,
    pub events: Vec<Event>,
    /// Every probe that was started.
    pub probes: Vec<ProbeOrder>,
    pub cancelled: BTreeSet<Ticket>,
    pub freed: Vec<Slot>,
    pub n_published: usize,
    /// Probes that were judged: when, which, and how it failed.
    pub judged: Vec<(Timestamp, Ticket, Option<FailureKind>)>,
    /// All that came out, in words.
    pub log: Vec<String>,
    /// Answers under way.
    pending: BTreeMap<(Timestamp, Ticket), Probed>,
    /// The driver answers no probe by itself, only by [`World::judge`].
    is_manual: bool,
    /// Probes in flight of a manual world.
    waiting: Vec<ProbeOrder>,
}

impl World {
    pub fn new() -> Self {
        Self::with_registry(Registry::default())
    }

    pub fn with_registry(registry: Registry) -> Self {
        Self {
            core: Core::with_registry(7, registry),
            now: Timestamp::ZERO,
            answers: BTreeMap::new(),
            events: Vec::new(),
            probes: Vec::new(),
            cancelled: BTreeSet::new(),
            freed: Vec::new(),
            n_published: 0,
            judged: Vec::new(),
            log: Vec::new(),
            pending: BTreeMap::new(),
            is_manual: false,
            waiting: Vec::new(),
        }
    }

    /// A world whose probes wait for [`World::judge`].
    pub fn manual(clusters: &[Cluster]) -> Self {
        let mut world = Self { is_manual: true, ..Self::new() };
        world.configure(clusters);
        world
    }

    /// Lets time pass until a probe of the destination is in flight, answers it, and tells the active value.
    pub fn judge(&mut self, id: &str, answer: Answer) -> Health {
        for _ in 0..1000 {
            if let Some(place) = self.waiting.iter().position(|order| order.destination.destination.as_str() == id) {
                let ticket = self.waiting.remove(place).ticket;
                self.input(Input::Probed(Probed { ticket, failure: answer.failure, status: answer.status }));
                return self.health(id).active;
            }
            self.now = self.now.max(self.core.poll_timeout().unwrap());
            self.input(Input::TimerDue);
        }
        panic!("no probe of {id}");
    }

    /// A world with these clusters configured at time 0.
    pub fn of(clusters: &[Cluster]) -> Self {
        let mut world = Self::new();
        world.configure(clusters);
        world
    }

    pub fn configure(&mut self, clusters: &[Cluster]) {
        let clusters = clusters.iter().cloned().map(Arc::new).collect();
        self.input(Input::Configured { clusters, summary: "test".to_owned() });
    }

    pub fn input(&mut self, input: Input) {
        self.core.handle(self.now, input);
        self.drain();
        if self.core.view().clusters.iter().map(|cluster| cluster.destinations.len()).sum::<usize>() < 10 {
            self.core.check_view();
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.core.poll_output() {
            self.log.push(format!("{} {}", self.now, words(&output)));
            match output {
                Output::Probe(order) => self.start(order),
                Output::CancelProbe(ticket) => {
                    self.cancelled.insert(ticket);
                    self.pending.retain(|(_, one), _| *one != ticket);
                    self.waiting.retain(|order| order.ticket != ticket);
                }
                Output::Event(event) => self.events.push(event),
                Output::Publish => self.n_published += 1,
                Output::FreeSlot(slot) => self.freed.push(slot),
            }
        }
    }

    fn start(&mut self, order: ProbeOrder) {
        assert_eq!(order.at, self.now);
        let name = order.destination.destination.as_str();
        let answer = self.answers.get(name).copied().unwrap_or(Answer::status(200));
        let end = if answer.after >= order.timeout {
            Probed { ticket: order.ticket, failure: Some(FailureKind::HeadTimeout), status: None }
        } else {
            Probed { ticket: order.ticket, failure: answer.failure, status: answer.status }
        };
        if self.is_manual {
            self.waiting.push(order.clone());
        } else {
            self.pending.insert((self.now + answer.after.min(order.timeout), order.ticket), end);
        }
        self.probes.push(order);
    }

    /// Lets time pass up to `end`, with timers and answers in their order.
    pub fn run_until(&mut self, end: f64) {
        let end = at(end);
        for _ in 0..1_000_000 {
            let timer = self.core.poll_timeout();
            let answer = self.pending.first_key_value().map(|(key, _)| key.0);
            let Some(next) = timer.into_iter().chain(answer).min().filter(|next| *next <= end) else {
                self.now = end.max(self.now);
                return;
            };
            self.now = self.now.max(next);
            if answer.is_some_and(|answer| answer <= next) {
                let (_, end) = self.pending.pop_first().unwrap();
                let is_expected = end.status.is_none_or(|status| (200..300).contains(&status));
                let failure = end.failure.or((!is_expected).then_some(FailureKind::Status));
                self.judged.push((self.now, end.ticket, failure));
                self.input(Input::Probed(end));
            } else {
                self.input(Input::TimerDue);
            }
        }
        panic!("time does not pass");
    }

    pub fn cluster(&mut self, cluster: &str) -> Arc<ClusterHealth> {
        let view = self.core.view();
        view.clusters.iter().find(|one| one.id.as_str() == cluster).unwrap().clone()
    }

    pub fn destination(&mut self, id: &str) -> DestinationHealth {
        let view = self.core.view();
        let mut all = view.clusters.iter().flat_map(|cluster| &cluster.destinations);
        all.find(|one| one.id.as_str() == id).unwrap().clone()
    }

    pub fn health(&mut self, id: &str) -> HealthPair {
        self.destination(id).health
    }

    pub fn slot(&mut self, id: &str) -> Slot {
        self.destination(id).slot
    }

    /// Ids of the available ones of a cluster.
    pub fn available(&mut self, cluster: &str) -> Vec<String> {
        let cluster = self.cluster(cluster);
        cluster.available.iter().map(|index| cluster.destinations[*index as usize].id.to_string()).collect()
    }

    pub fn set(&mut self, id: &str, check: CheckKind, health: Health, reactivation: Option<Duration>) {
        let view = self.core.view();
        let cluster = view.clusters.iter().find(|c| c.destinations.iter().any(|d| d.id.as_str() == id)).unwrap();
        let destination = DestinationKey::new(cluster.id.clone(), id);
        self.input(Input::HealthSet(HealthSet { destination, check, health, reactivation }));
    }

    /// One outcome of a request picked at this very moment.
    pub fn outcome(&mut self, id: &str, outcome: Outcome) {
        let now = self.now;
        self.outcome_picked_at(id, now, outcome);
    }

    pub fn outcome_picked_at(&mut self, id: &str, picked_at: Timestamp, outcome: Outcome) {
        self.ended(id, picked_at, Try::First, outcome);
    }

    /// One outcome of a request that has failed elsewhere, picked at this very moment.
    pub fn repeated(&mut self, id: &str, outcome: Outcome) {
        let now = self.now;
        self.ended(id, now, Try::Repeat, outcome);
    }

    fn ended(&mut self, id: &str, picked_at: Timestamp, which: Try, outcome: Outcome) {
        let slot = self.slot(id);
        self.input(Input::OutcomeSeen(OutcomeEvent { slot, picked_at, at: self.now, which, outcome }));
    }

    pub fn sums(&mut self, id: &str, ok: u64) {
        self.sums_of(id, ok, 0);
    }

    /// Successes, of which so many were repeats.
    pub fn sums_of(&mut self, id: &str, ok: u64, repeats: u64) {
        let slot = self.slot(id);
        self.input(Input::SumsTaken { sums: vec![Sum { slot, ok, repeats }] });
    }

    pub fn transitions(&self) -> Vec<Transition> {
        let transitions = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::Transition(transition) => Some(transition.clone()),
            EventKind::Availability { .. }
            | EventKind::Share { .. }
            | EventKind::Shadow { .. }
            | EventKind::Kept { .. }
            | EventKind::Config { .. }
            | EventKind::Draining => None,
        });
        transitions.collect()
    }

    /// Start times of a destination's probes, in seconds.
    pub fn probe_times(&self, id: &str) -> Vec<f64> {
        let own = self.probes.iter().filter(|order| order.destination.destination.as_str() == id);
        own.map(|order| order.at.as_secs_f64()).collect()
    }
}

pub fn ok() -> Outcome {
    Outcome { class: OutcomeClass::Ok, failure: None, status: Some(200), retryable: false, client_gone: false }
}

pub fn status(status: u16, retryable: bool) -> Outcome {
    let class = model::classify::status_class(Some(status));
    Outcome { class, failure: None, status: Some(status), retryable, client_gone: false }
}

pub fn refused() -> Outcome {
    failed(OutcomeClass::ConnFail, FailureKind::Refused)
}

pub fn failed(class: OutcomeClass, failure: FailureKind) -> Outcome {
    Outcome { class, failure: Some(failure), status: None, retryable: true, client_gone: false }
}
