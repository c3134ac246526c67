//! The destinations of one contestant: patients that work as the scenario says, and the faults at their times.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use lab::chance::{Chance, Draw};
use lab::scenario::{FaultKind, OnFull, ProbesSee, Reply, Scenario};
use model::time::Timestamp;
use patients::{Behaviour, End, Patient, Task, Work};
use tokio::time::Instant;

/// Running destinations.
pub struct Destinations {
    patients: Vec<Patient>,
    ward: Arc<Ward>,
}

/// Where a destination is. Probes have a port of their own, for a connection that is refused tells nothing but its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doors {
    /// For requests.
    pub traffic: SocketAddr,
    /// For probes.
    pub probes: SocketAddr,
}

/// What all destinations of a contestant know together.
struct Ward {
    scenario: Scenario,
    chance: Chance,
    /// Empty until the script begins.
    began: OnceLock<Instant>,
    state: Mutex<State>,
}

struct State {
    /// Per destination: faults that are on, by place in the scenario, with the times of their windows.
    active: Vec<BTreeMap<usize, (Timestamp, Timestamp)>>,
    arrivals: Vec<Vec<Timestamp>>,
    /// Those whose answer the share of a fault has spoilt.
    spoilt: Vec<Vec<Timestamp>>,
    /// How often each request has been tried; requests are numbered by the lab.
    tries: BTreeMap<u64, u64>,
}

/// A fault begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    at: Timestamp,
    begins: bool,
    fault: usize,
    until: Timestamp,
}

/// Says why a scenario can have no twin.
pub fn check(scenario: &Scenario) -> Result<()> {
    ensure!(scenario.proxies.count == 1, "twins have one proxy");
    for server in &scenario.destinations {
        let OnFull::Status { retry_after: false, .. } = server.on_full else {
            bail!("{}: a full twin answers with a status and no Retry-After: `on_full: {{status: 503}}`", server.id);
        };
    }
    for fault in &scenario.faults {
        ensure!(fault.proxies.is_none(), "{}: twins have one proxy", fault.kind.as_str());
        match fault.kind {
            FaultKind::Blackhole | FaultKind::Capacity(_) | FaultKind::Errors { retry_after: true, .. } => {
                bail!("there is no twin of {} (and of Retry-After)", fault.kind.as_str())
            }
            FaultKind::Crash
            | FaultKind::Refuse
            | FaultKind::Hang
            | FaultKind::Pause
            | FaultKind::Slow(_)
            | FaultKind::Cold(_)
            | FaultKind::Errors { .. }
            | FaultKind::Resets(_)
            | FaultKind::Cuts(_)
            | FaultKind::ClientErrors { .. } => {}
        }
    }
    Ok(())
}

impl Destinations {
    /// Starts them, all well.
    pub async fn start(scenario: &Scenario, chance: Chance) -> Result<Self> {
        let n = scenario.destinations.len();
        let none = || vec![Vec::new(); n];
        let state =
            State { active: vec![BTreeMap::new(); n], arrivals: none(), spoilt: none(), tries: BTreeMap::new() };
        let ward =
            Arc::new(Ward { scenario: scenario.clone(), chance, began: OnceLock::new(), state: Mutex::new(state) });
        let mut patients = Vec::new();
        for (place, server) in scenario.destinations.iter().enumerate() {
            let on_full = match server.on_full {
                OnFull::Refuse => 503,
                OnFull::Status { status, .. } => status,
            };
            let inside = Arc::clone(&ward);
            let work = Work {
                concurrency: server.concurrency as usize,
                backlog: server.backlog as usize,
                on_full,
                task: Arc::new(move |path| inside.task(place, path)),
            };
            patients.push(Patient::work(&server.id, work).await?);
        }
        Ok(Self { patients, ward })
    }

    /// Where they are.
    pub fn doors(&self) -> Vec<Doors> {
        let doors = |patient: &Patient| Doors { traffic: patient.addr(), probes: patient.probed_at() };
        self.patients.iter().map(doors).collect()
    }

    /// Lets the faults of a script that begins at `began` come and go; ends with the script.
    pub async fn suffer(&self, began: Instant) {
        let began = *self.ward.began.get_or_init(|| began);
        for edge in self.ward.edges() {
            tokio::time::sleep_until(began + edge.at.since(Timestamp::ZERO)).await;
            for place in self.ward.turn(edge) {
                let (traffic, health) = self.ward.behaviour(place);
                if let Some(patient) = self.patients.get(place) {
                    patient.set_health(health);
                    patient.set(traffic);
                }
            }
        }
    }

    /// When requests came to each.
    pub fn arrivals(&self) -> Vec<Vec<Timestamp>> {
        self.ward.state().arrivals.clone()
    }

    /// When those of them came whose answer the share of a fault has spoilt.
    pub fn spoilt(&self) -> Vec<Vec<Timestamp>> {
        self.ward.state().spoilt.clone()
    }
}

impl Ward {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request has come: when, and what it takes. The draws are those of the lab for this request, destination and try.
    fn task(&self, place: usize, path: &str) -> Task {
        let number: u64 = path.trim_start_matches('/').parse().unwrap_or(0);
        let now = Timestamp::ZERO
            + self.began.get().map_or(Duration::ZERO, |began| Instant::now().saturating_duration_since(*began));
        let mut state = self.state();
        if let Some(arrivals) = state.arrivals.get_mut(place) {
            arrivals.push(now);
        }
        let tries = state.tries.entry(number).or_default();
        *tries += 1;
        let stream = *tries << 32 | place as u64;
        let luck = self.chance.unit(Draw::Fault, number, stream);
        let draw = self.chance.unit(Draw::Service, number, stream);
        let takes = self.scenario.destinations.get(place).map_or(Duration::ZERO, |server| server.service.at(draw));
        let (mut slowness, mut upper, mut end) = (1.0, 0.0, End::Answer(200));
        for (fault, (from, until)) in state.active.get(place).into_iter().flatten() {
            let Some(fault) = self.scenario.faults.get(*fault) else { continue };
            let whole = until.since(*from).as_secs_f64();
            slowness *= fault.kind.slowness(now.since(*from).as_secs_f64() / whole);
            let Some((share, reply)) = fault.kind.reply() else { continue };
            if end == End::Answer(200) && luck < upper + share {
                end = match reply {
                    Reply::Response { status, .. } => End::Answer(status),
                    Reply::Reset => End::Reset,
                    Reply::Cut => End::Cut,
                };
            }
            upper += share;
        }
        if let Some(status) = bad_request(&self.scenario, self.chance, number, now) {
            end = End::Answer(status);
        }
        if end != End::Answer(200)
            && let Some(spoilt) = state.spoilt.get_mut(place)
        {
            spoilt.push(now);
        }
        Task { takes: takes.mul_f64(slowness), end }
    }

    fn edges(&self) -> Vec<Edge> {
        let mut edges = Vec::new();
        for (fault, config) in self.scenario.faults.iter().enumerate() {
            for (from, until) in config.windows.iter().copied() {
                edges.push(Edge { at: from, begins: true, fault, until });
                if until < Timestamp::ZERO + self.scenario.duration {
                    edges.push(Edge { at: until, begins: false, fault, until });
                }
            }
        }
        edges.sort();
        edges
    }

    /// Takes over a change; answers whom it concerns.
    fn turn(&self, edge: Edge) -> Vec<usize> {
        let on = self.scenario.faults.get(edge.fault).map(|fault| fault.on.clone()).unwrap_or_default();
        let mut state = self.state();
        for place in &on {
            let Some(active) = state.active.get_mut(*place) else { continue };
            if edge.begins {
                active.insert(edge.fault, (edge.at, edge.until));
            } else {
                active.remove(&edge.fault);
            }
        }
        on
    }

    /// What a patient is told: the worst of what is on, and what its probes see apart from that.
    fn behaviour(&self, place: usize) -> (Behaviour, Option<Behaviour>) {
        let state = self.state();
        let faults = state.active.get(place).into_iter().flatten();
        let faults: Vec<_> = faults.filter_map(|(fault, _)| self.scenario.faults.get(*fault)).collect();
        let order = [
            (FaultKind::Crash, Behaviour::Die),
            (FaultKind::Refuse, Behaviour::Refuse),
            (FaultKind::Hang, Behaviour::Hang),
            (FaultKind::Pause, Behaviour::Pause),
        ];
        let traffic = order.iter().find(|(kind, _)| faults.iter().any(|fault| fault.kind == *kind));
        let traffic = traffic.map_or_else(Behaviour::default, |(_, behaviour)| *behaviour);
        let sees = |what| faults.iter().any(|fault| fault.probes == what);
        let health = match (sees(ProbesSee::Fail), sees(ProbesSee::Pass)) {
            (true, _) => Some(Behaviour::Fail(503)),
            (false, true) => Some(Behaviour::default()),
            (false, false) => None,
        };
        (traffic, health)
    }
}

/// Whether a request that is sent at this time is one that fails everywhere: the lab's own draw.
pub fn bad_request(scenario: &Scenario, chance: Chance, number: u64, at: Timestamp) -> Option<u16> {
    let mut upper = 0.0;
    let mut found = None;
    for fault in &scenario.faults {
        let FaultKind::ClientErrors { share, status } = fault.kind else { continue };
        if !fault.windows.iter().any(|(from, until)| at >= *from && at < *until) {
            continue;
        }
        upper += share;
        if found.is_none() && chance.unit(Draw::BadRequest, number, 0) < upper {
            found = Some(status);
        }
    }
    found
}
