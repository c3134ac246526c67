//! The loop: the next event, what it does, and what follows from it.

use std::sync::Arc;
use std::time::Duration;

use model::config::Config;
use model::time::Timestamp;

use super::deadlines::Deadlines;
use super::destination::{Completion, Destination, Planned, Who};
use super::event::{Edge, Event};
use super::flight::Flights;
use super::proxy::Proxy;
use super::queue::Queue;
use super::source::Source;
use crate::chance::{Chance, Draw};
use crate::meter::{Figures, Film, Meter, Trace};
use crate::policy::{Policy, PolicyError};
use crate::scenario::{FaultKind, Scenario, Truth};

/// One run.
pub struct World<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) chance: Chance,
    pub(super) now: Timestamp,
    pub(super) queue: Queue,
    pub(super) proxies: Vec<Proxy>,
    pub(super) destinations: Vec<Destination>,
    pub(super) sources: Vec<Source>,
    pub(super) flights: Flights,
    /// To the response, to connect, in all; then the patience of each source.
    pub(super) deadlines: Vec<Deadlines>,
    /// Faults of the requests themselves that are on: the share and the status of each.
    pub(super) bad_requests: Vec<(usize, f64, u16)>,
    pub(super) meter: Meter,
}

/// Places in [`World::deadlines`].
pub(super) const TO_RESPONSE: usize = 0;
pub(super) const TO_CONNECT: usize = 1;
pub(super) const IN_ALL: usize = 2;
pub(super) const PATIENCE: usize = 3;

impl<'a> World<'a> {
    /// Everything well, nothing asked yet.
    pub fn new(scenario: &'a Scenario, policy: &Policy, chance: Chance) -> Result<Self, PolicyError> {
        let config: Arc<Config> = Arc::new(policy.config(scenario)?);
        let proxies: Option<Vec<Proxy>> = (0..scenario.proxies.count)
            .map(|proxy| {
                let seed = chance.stream(Draw::Proxy, u64::from(proxy), 0).bits();
                Proxy::new(&config, scenario, policy, seed)
            })
            .collect();
        let proxies = proxies.ok_or_else(|| PolicyError(format!("{}: no board can be made for it", policy.name)))?;
        let mut world = Self {
            scenario,
            chance,
            now: Timestamp::ZERO,
            queue: Queue::default(),
            proxies,
            destinations: scenario.destinations.iter().map(Destination::new).collect(),
            sources: (0..).zip(&scenario.traffic).map(|(n, traffic)| Source::new(traffic, n, chance)).collect(),
            flights: Flights::default(),
            deadlines: (0..PATIENCE + scenario.traffic.len()).map(|_| Deadlines::default()).collect(),
            bad_requests: Vec::new(),
            meter: Meter::new(scenario),
        };
        world.plan_all();
        Ok(world)
    }

    /// Runs to the end of the scenario. What is on its way then is not counted.
    pub fn run(mut self) -> (Figures, Film) {
        self.play();
        self.meter.figures()
    }

    /// As [`Self::run`], and keeps everything one by one.
    pub fn trace(mut self) -> Trace {
        self.meter.keep_trace();
        self.play();
        self.meter.take_trace().unwrap_or_default()
    }

    fn play(&mut self) {
        let end = Timestamp::ZERO + self.scenario.duration;
        loop {
            let due = self.queue.next_at();
            let next = self.sources.iter().enumerate().map(|(place, source)| (source.next_at, place)).min();
            match next {
                // What was planned goes before an arrival of the same moment.
                Some((at, place)) if at < due => {
                    if at >= end {
                        break;
                    }
                    self.now = at;
                    if let Some(request) = self.sources.get_mut(place).map(Source::take) {
                        self.request(place as u32, request);
                    }
                }
                _ => {
                    if due >= end {
                        break;
                    }
                    let Some((at, event)) = self.queue.take() else { break };
                    self.now = at;
                    self.happens(event);
                }
            }
        }
    }

    fn plan_all(&mut self) {
        for (fault, windows) in (0..).zip(self.scenario.faults.iter().map(|fault| &fault.windows)) {
            for (window, (from, until)) in (0..).zip(windows) {
                self.queue.plan(*from, Event::Fault { fault, window, edge: Edge::Begin });
                self.queue.plan(*until, Event::Fault { fault, window, edge: Edge::End });
            }
        }
        for proxy in 0..self.scenario.proxies.count {
            // Proxies do not tick together.
            let phase = self.chance.unit(Draw::Proxy, u64::from(proxy), 1);
            self.queue.plan(Timestamp::ZERO + self.scenario.proxies.tick.mul_f64(phase), Event::Tick(proxy));
            self.after_core(proxy);
            self.after_model(proxy);
        }
        for source in 0..self.sources.len() {
            let asks = self.sources.get(source).map(Source::first_asks).unwrap_or_default();
            for (client, at) in (0..).zip(asks) {
                self.queue.plan(at, Event::Ask { source: source as u32, client });
            }
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Fault { fault, window, edge } => self.fault(fault as usize, window as usize, edge),
            Event::Completed { destination, job, life } => self.completed(destination, job, life),
            Event::Deadline(kind) => self.deadline(kind as usize),
            Event::Tick(proxy) => {
                self.queue.plan(self.now + self.scenario.proxies.tick, Event::Tick(proxy));
                let now = self.now;
                self.turn(proxy, |one| one.tick(now));
            }
            Event::Wake(proxy) => {
                let now = self.now;
                if let Some(one) = self.proxies.get_mut(proxy as usize) {
                    one.is_waking = false;
                }
                self.turn(proxy, |one| one.wake(now));
            }
            Event::CoreTimer(proxy) => {
                let now = self.now;
                if let Some(one) = self.proxies.get_mut(proxy as usize) {
                    one.timer_at = None;
                }
                self.turn(proxy, |one| one.timers(now));
            }
            Event::ModelTimer(proxy) => {
                let now = self.now;
                if let Some(one) = self.proxies.get_mut(proxy as usize) {
                    one.model_at = None;
                    if let Some(model) = &mut one.model {
                        model.on_timeout(now);
                    }
                }
                self.after_model(proxy);
            }
            Event::ProbeEnd { proxy, probe, end } => self.probe_end(proxy, probe, end),
            Event::Ask { source, client } => {
                if let Some(request) = self.sources.get_mut(source as usize).map(|source| source.ask(client)) {
                    self.request(source, request);
                }
            }
        }
    }

    /// Lets a proxy's health core do something, and follows.
    pub(super) fn turn(&mut self, proxy: u32, act: impl FnOnce(&mut Proxy) -> bool) {
        let Some(one) = self.proxies.get_mut(proxy as usize) else { return };
        if act(one) {
            self.note_standings(proxy);
        }
        self.after_core(proxy);
    }

    /// Sends the probes that are due and plans the core's next timer.
    pub(super) fn after_core(&mut self, proxy: u32) {
        self.send_probes(proxy);
        let Some(one) = self.proxies.get_mut(proxy as usize) else { return };
        if let Some(at) = one.next_timer()
            && one.timer_at.is_none_or(|planned| at < planned)
        {
            one.timer_at = Some(at);
            self.queue.plan(at.max(self.now), Event::CoreTimer(proxy));
        }
    }

    /// Takes over what a proxy's model thinks, sends its probes and plans its next timer.
    pub(super) fn after_model(&mut self, proxy: u32) {
        let now = self.now;
        let Some(one) = self.proxies.get_mut(proxy as usize) else { return };
        if one.model.is_none() {
            return;
        }
        if one.follow_model(now) {
            self.note_standings(proxy);
            self.after_core(proxy);
        }
        self.send_model_probes(proxy);
        let Some(one) = self.proxies.get_mut(proxy as usize) else { return };
        if let Some(at) = one.model.as_ref().and_then(|model| model.poll_timeout())
            && one.model_at.is_none_or(|planned| at < planned)
        {
            one.model_at = Some(at);
            self.queue.plan(at.max(now), Event::ModelTimer(proxy));
        }
    }

    /// Something failed at a proxy: it looks at that soon.
    pub(super) fn wake(&mut self, proxy: u32) {
        let Some(one) = self.proxies.get_mut(proxy as usize) else { return };
        if one.take_failed() && !std::mem::replace(&mut one.is_waking, true) {
            self.queue.plan(self.now + self.scenario.proxies.publish, Event::Wake(proxy));
        }
    }

    fn note_standings(&mut self, proxy: u32) {
        let Some(one) = self.proxies.get_mut(proxy as usize) else { return };
        for (destination, standing) in one.standings().into_iter().enumerate() {
            self.meter.stands(self.now, proxy, destination, standing);
        }
    }

    fn fault(&mut self, fault: usize, window: usize, edge: Edge) {
        let Some(config) = self.scenario.faults.get(fault) else { return };
        let Some((_, until)) = config.windows.get(window).copied() else { return };
        if let FaultKind::ClientErrors { share, status } = config.kind {
            match edge {
                Edge::Begin => self.bad_requests.push((fault, share, status)),
                Edge::End => self.bad_requests.retain(|(one, ..)| *one != fault),
            }
            return;
        }
        let mut reset = Vec::new();
        for place in config.on.iter().copied() {
            let Some(destination) = self.destinations.get_mut(place) else { continue };
            match edge {
                Edge::Begin => reset.extend(destination.begin(self.scenario, fault, self.now, until)),
                Edge::End => destination.end(self.scenario, fault),
            }
            while let Some(planned) =
                self.destinations.get_mut(place).and_then(|one| one.next_waiting(self.scenario, self.now))
            {
                self.plan_completion(place as u32, planned);
            }
        }
        for place in config.on.iter().copied() {
            self.truth(place);
        }
        for who in reset {
            match who {
                Who::Attempt { flight, serial } => self.reset(flight, serial),
                Who::Probe { proxy, probe } => self.probe_end(proxy, probe, super::event::ProbeEnd::Failed),
            }
        }
    }

    fn truth(&mut self, destination: usize) {
        let now = self.now;
        for proxy in 0..self.scenario.proxies.count {
            let truth = self.destinations.get(destination).map_or(Truth::Healthy, |d| d.truth(self.scenario, proxy));
            self.meter.is_true(now, proxy, destination, truth);
            self.turn(proxy, |one| one.told(now, destination, truth));
        }
    }

    fn completed(&mut self, destination: u32, job: u32, life: u32) {
        let Some(one) = self.destinations.get_mut(destination as usize) else { return };
        match one.completed(self.scenario, self.now, job, life) {
            Completion::Gone => {}
            Completion::Later(planned) => self.plan_completion(destination, planned),
            Completion::Done { who, reply, next } => {
                if let Some(planned) = next {
                    self.plan_completion(destination, planned);
                }
                match who {
                    Who::Attempt { flight, serial } => self.replied(flight, serial, destination, reply),
                    Who::Probe { proxy, probe } => self.probe_replied(proxy, probe, destination, reply),
                }
            }
        }
    }

    pub(super) fn plan_completion(&mut self, destination: u32, planned: Planned) {
        let Planned { at, job, life } = planned;
        self.queue.plan(at, Event::Completed { destination, job, life });
    }

    /// Sets a deadline of a kind.
    pub(super) fn set_deadline(&mut self, kind: usize, after: Duration, flight: u32, serial: u32) {
        let Some(deadlines) = self.deadlines.get_mut(kind) else { return };
        if let Some(at) = deadlines.set(self.now + after, super::deadlines::Mark { flight, serial }) {
            self.queue.plan(at, Event::Deadline(kind as u32));
        }
    }
}
