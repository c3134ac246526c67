//! A simulated destination: so many servers behind one queue, and what the faults make of them.
//!
//! ```text
//!                 refused, nothing, full            waiting (backlog)      served (concurrency)
//!   arrive ──> faults ──────────────> reply at once ──> [ . . . . ] ──────> ( . . ) ──> Completed ──> reply
//! ```
//!
//! A pause shifts everything that is being served by its length; a crash empties both and resets what was there; a hang
//! empties both and nobody ever hears of it.

use std::collections::VecDeque;
use std::time::Duration;

use model::time::Timestamp;

use crate::scenario::{Fault, FaultKind, OnFull, ProbesSee, Reply, Scenario, Server, Truth};

/// One destination.
#[derive(Debug)]
pub struct Destination {
    server: Server,
    active: Vec<Active>,
    /// Counted up by what ends all connections to it.
    pub connections: u32,
    life: u32,
    serving: Vec<Option<Job>>,
    free: Vec<u32>,
    busy: u32,
    waiting: VecDeque<Job>,
    concurrency: u32,
    backlog: u32,
    paused_until: Timestamp,
    /// All pauses so far, together.
    paused: Duration,
}

/// A fault that is on.
#[derive(Clone, Copy, Debug)]
struct Active {
    fault: usize,
    from: Timestamp,
    until: Timestamp,
}

/// Something to be served.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// For whom.
    pub who: Who,
    /// The draw of its service time.
    pub service: f64,
    /// The draw of the faults' shares.
    pub luck: f64,
    /// It fails everywhere, with this status.
    pub bad: Option<u16>,
    reply: Reply,
    /// [`Destination::paused`] when it was last planned.
    mark: Duration,
}

/// Who waits for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// An attempt of a request.
    Attempt {
        /// The flight's place.
        flight: u32,
        /// The attempt's number among all of the run.
        serial: u32,
    },
    /// A probe.
    Probe {
        /// Whose.
        proxy: u32,
        /// Its number there.
        probe: u32,
    },
}

/// The connection that a request comes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It is made for it.
    New,
    /// It was there.
    Kept,
}

/// What becomes of something that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The connection is refused.
    Refused,
    /// No connection comes about, nothing comes back.
    NoWay,
    /// It is taken, and never answered.
    Swallowed,
    /// The backlog is full.
    Full(OnFull),
    /// It waits.
    Waits,
    /// It is served.
    Served(Planned),
}

/// A job with the time of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// When it is done.
    pub at: Timestamp,
    /// Its place.
    pub job: u32,
    /// Of which life.
    pub life: u32,
}

/// What an event of completion comes to.
#[derive(Clone, Copy, Debug)]
pub enum Completion {
    /// The job was lost before.
    Gone,
    /// A pause came in between.
    Later(Planned),
    /// Done; the next one begins.
    Done {
        /// Who waits for it.
        who: Who,
        /// What it came to.
        reply: Reply,
        /// The next one from the queue.
        next: Option<Planned>,
    },
}

impl Job {
    /// A request or a probe with its luck.
    pub fn new(who: Who, service: f64, luck: f64, bad: Option<u16>) -> Self {
        Self { who, service, luck, bad, reply: WELL, mark: Duration::ZERO }
    }
}

impl Destination {
    /// Idle and well.
    pub fn new(server: &Server) -> Self {
        Self {
            server: server.clone(),
            active: Vec::new(),
            connections: 0,
            life: 0,
            serving: Vec::new(),
            free: Vec::new(),
            busy: 0,
            waiting: VecDeque::new(),
            concurrency: server.concurrency,
            backlog: server.backlog,
            paused_until: Timestamp::ZERO,
            paused: Duration::ZERO,
        }
    }

    /// A fault begins. Answers who is reset by it.
    pub fn begin(&mut self, scenario: &Scenario, fault: usize, now: Timestamp, until: Timestamp) -> Vec<Who> {
        self.active.push(Active { fault, from: now, until });
        let Some(kind) = scenario.faults.get(fault).map(|fault| fault.kind) else { return Vec::new() };
        let lost = match kind {
            FaultKind::Crash => {
                self.connections = self.connections.wrapping_add(1);
                self.empty()
            }
            FaultKind::Refuse => {
                self.connections = self.connections.wrapping_add(1);
                Vec::new()
            }
            FaultKind::Hang => {
                self.empty();
                Vec::new()
            }
            FaultKind::Pause => {
                self.paused_until = self.paused_until.max(until);
                self.paused += until.since(now);
                Vec::new()
            }
            FaultKind::Blackhole
            | FaultKind::Slow(_)
            | FaultKind::Cold(_)
            | FaultKind::Capacity(_)
            | FaultKind::Errors { .. }
            | FaultKind::Resets(_)
            | FaultKind::Cuts(_)
            | FaultKind::ClientErrors { .. } => Vec::new(),
        };
        self.fit(scenario);
        lost
    }

    /// A fault is over.
    pub fn end(&mut self, scenario: &Scenario, fault: usize) {
        self.active.retain(|active| active.fault != fault);
        self.fit(scenario);
    }

    /// Whether it should be out, as a proxy sees it.
    pub fn truth(&self, scenario: &Scenario, proxy: u32) -> Truth {
        let faults = self.active.iter().filter_map(|active| scenario.faults.get(active.fault));
        faults.filter(|fault| concerns(fault, proxy)).map(|fault| fault.truth).max().unwrap_or(Truth::Healthy)
    }

    /// Whether nothing comes through to a proxy.
    pub fn is_cut_off(&self, scenario: &Scenario, proxy: u32) -> bool {
        self.has(scenario, proxy, |kind| matches!(kind, FaultKind::Blackhole))
    }

    /// A request comes.
    pub fn arrive(&mut self, scenario: &Scenario, now: Timestamp, proxy: u32, way: Way, job: Job) -> Arrival {
        if !self.active.is_empty() {
            if self.is_cut_off(scenario, proxy) {
                return match way {
                    Way::New => Arrival::NoWay,
                    Way::Kept => Arrival::Swallowed,
                };
            }
            if self.has(scenario, proxy, |kind| matches!(kind, FaultKind::Crash | FaultKind::Refuse)) {
                return Arrival::Refused;
            }
            if self.has(scenario, proxy, |kind| matches!(kind, FaultKind::Hang)) {
                return Arrival::Swallowed;
            }
        }
        self.enqueue(scenario, now, proxy, job)
    }

    /// Whether the share of a fault spoils what a request gets here.
    pub fn is_spoiling(&self, scenario: &Scenario, proxy: u32, job: &Job) -> bool {
        self.reply(scenario, proxy, job) != WELL
    }

    /// A probe comes: what it meets by the faults that say so, else what a request would.
    pub fn probed(&mut self, scenario: &Scenario, now: Timestamp, proxy: u32, job: Job) -> Option<Arrival> {
        let mut is_spared = false;
        for active in &self.active {
            let Some(fault) = scenario.faults.get(active.fault).filter(|fault| concerns(fault, proxy)) else {
                continue;
            };
            match fault.probes {
                ProbesSee::Fail => return None,
                ProbesSee::Pass => is_spared |= fault.kind.reply().is_none(),
                ProbesSee::Same => {}
            }
        }
        if is_spared {
            return Some(self.enqueue(scenario, now, proxy, job));
        }
        Some(self.arrive(scenario, now, proxy, Way::New, job))
    }

    /// The time of a job's end has come.
    pub fn completed(&mut self, scenario: &Scenario, now: Timestamp, job: u32, life: u32) -> Completion {
        if life != self.life {
            return Completion::Gone;
        }
        let Some(place) = self.serving.get_mut(job as usize) else { return Completion::Gone };
        let Some(done) = place else { return Completion::Gone };
        let owed = self.paused - done.mark;
        if !owed.is_zero() {
            done.mark = self.paused;
            return Completion::Later(Planned { at: now + owed, job, life });
        }
        let (who, reply) = (done.who, done.reply);
        *place = None;
        self.free.push(job);
        self.busy -= 1;
        let next = if self.busy < self.concurrency { self.waiting.pop_front() } else { None };
        let next = next.map(|job| self.serve(scenario, now, job));
        Completion::Done { who, reply, next }
    }

    /// More may be served than before: those that wait begin.
    pub fn next_waiting(&mut self, scenario: &Scenario, now: Timestamp) -> Option<Planned> {
        if self.busy >= self.concurrency {
            return None;
        }
        let job = self.waiting.pop_front()?;
        Some(self.serve(scenario, now, job))
    }

    fn enqueue(&mut self, scenario: &Scenario, now: Timestamp, proxy: u32, mut job: Job) -> Arrival {
        job.reply = self.reply(scenario, proxy, &job);
        if self.busy < self.concurrency {
            return Arrival::Served(self.serve(scenario, now, job));
        }
        if self.waiting.len() >= self.backlog as usize {
            return Arrival::Full(self.server.on_full);
        }
        self.waiting.push_back(job);
        Arrival::Waits
    }

    fn serve(&mut self, scenario: &Scenario, now: Timestamp, mut job: Job) -> Planned {
        let start = now.max(self.paused_until);
        let mut service = match job.who {
            Who::Attempt { .. } => self.server.service.at(job.service),
            Who::Probe { .. } => PROBE_SERVICE,
        };
        if !self.active.is_empty() {
            service = service.mul_f64(self.slowness(scenario, now));
        }
        job.mark = self.paused;
        self.busy += 1;
        let place = match self.free.pop() {
            Some(place) => place,
            None => {
                self.serving.push(None);
                // There are no more places than `concurrency`, a u32.
                (self.serving.len() - 1) as u32
            }
        };
        if let Some(slot) = self.serving.get_mut(place as usize) {
            *slot = Some(job);
        }
        Planned { at: start + service, job: place, life: self.life }
    }

    fn reply(&self, scenario: &Scenario, proxy: u32, job: &Job) -> Reply {
        let is_probe = matches!(job.who, Who::Probe { .. });
        if let Some(status) = job.bad {
            return Reply::Response { status, retry_after: false };
        }
        let mut upper = 0.0;
        for active in &self.active {
            let Some(fault) = scenario.faults.get(active.fault).filter(|fault| concerns(fault, proxy)) else {
                continue;
            };
            if is_probe && fault.probes == ProbesSee::Pass {
                continue;
            }
            let Some((share, reply)) = fault.kind.reply() else { continue };
            upper += share;
            if job.luck < upper {
                return reply;
            }
        }
        WELL
    }

    fn slowness(&self, scenario: &Scenario, now: Timestamp) -> f64 {
        let factors = self.active.iter().map(|active| {
            let kind = scenario.faults.get(active.fault).map(|fault| fault.kind);
            let (gone, whole) = (now.since(active.from).as_secs_f64(), active.until.since(active.from).as_secs_f64());
            kind.map_or(1.0, |kind| kind.slowness(gone / whole))
        });
        factors.product()
    }

    fn has(&self, scenario: &Scenario, proxy: u32, is_kind: impl Fn(FaultKind) -> bool) -> bool {
        let faults = self.active.iter().filter_map(|active| scenario.faults.get(active.fault));
        faults.into_iter().any(|fault| is_kind(fault.kind) && concerns(fault, proxy))
    }

    /// Knee and backlog of this moment.
    fn fit(&mut self, scenario: &Scenario) {
        let kinds = self.active.iter().filter_map(|active| scenario.faults.get(active.fault));
        let factor: f64 = kinds.map(|fault| fault.kind.capacity()).product();
        let scaled = |number: u32| libm::ceil(f64::from(number) * factor) as u32;
        self.concurrency = scaled(self.server.concurrency).max(1);
        self.backlog = scaled(self.server.backlog);
    }

    fn empty(&mut self) -> Vec<Who> {
        self.life = self.life.wrapping_add(1);
        self.busy = 0;
        self.free.clear();
        let served = self.serving.drain(..).flatten().map(|job| job.who);
        served.chain(self.waiting.drain(..).map(|job| job.who)).collect()
    }
}

/// Whether a fault lies between a proxy and whom it befalls.
fn concerns(fault: &Fault, proxy: u32) -> bool {
    fault.proxies.as_ref().is_none_or(|proxies| proxies.contains(&proxy))
}

/// What is answered when nothing is wrong.
const WELL: Reply = Reply::Response { status: 200, retry_after: false };
/// A probe's own time at a destination that is well.
const PROBE_SERVICE: Duration = Duration::from_millis(1);
