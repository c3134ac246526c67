//! One proxy: the health core over its board, turned as the monitor turns it, and its traffic threads.
//!
//! ```text
//!   attempts ──report──> board ──wake (+ publish delay), tick──> bridge::feed ──> health::Core ──┬─ Publish ─> board
//!                          ^                                                     ^               ├─ Probe ───> world
//!                          └── snapshot ─────────────────────────────────────────┼───────────────┘
//!   a model or an oracle ── HealthSet ───────────────────────────────────────────┘
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use board::{Board, Reader};
use bridge::{Budgets, Gates, Publisher, Pulses, Reach, feed};
use exchange::snapshot::Snapshot;
use health::{Core, HealthSet, Input, Output, ProbeOrder, Probed};
use model::config::Config;
use model::health::{CheckKind, Health};
use model::id::{ClusterId, DestinationKey, WorkerId};
use model::random::Random;
use model::time::Timestamp;
use model::view::NodeStatus;
use retry::Trends;

use crate::models::Model;
use crate::policy::{Mind, Policy};
use crate::scenario::{Scenario, Truth};

/// One proxy.
pub struct Proxy {
    core: Core,
    publisher: Publisher,
    budgets: Budgets,
    gates: Gates,
    pulses: Pulses,
    trends: Trends,
    board: Arc<Board<Snapshot>>,
    reader: Reader,
    drained_at: Timestamp,
    has_failed: Arc<AtomicBool>,
    /// Its traffic threads.
    pub workers: Vec<Worker>,
    /// A wake is planned.
    pub is_waking: bool,
    /// When the next planned look at the core's timers comes.
    pub timer_at: Option<Timestamp>,
    /// When the next planned look at the model's timers comes.
    pub model_at: Option<Timestamp>,
    /// What decides in place of the core's policies.
    pub model: Option<Box<dyn Model>>,
    is_oracle: bool,
    /// [`Policy::tells_stale`].
    pub tells_stale: bool,
    /// [`Policy::tries_again`].
    pub tries_again: bool,
    /// What was last said from outside, per destination.
    said: Vec<Health>,
    keys: Vec<DestinationKey>,
    /// Probes in flight, by their numbers here.
    probes: Vec<(u32, Probing)>,
    /// Probes so far.
    probed: u32,
    /// Probes that are to be sent.
    pub due: Vec<ProbeOrder>,
}

/// A probe in flight.
#[derive(Clone, Debug)]
pub enum Probing {
    /// Of the health core.
    Core(health::Ticket),
    /// Of a model, at this destination.
    Model(usize),
}

/// One traffic thread.
pub struct Worker {
    /// Its side of the board.
    pub board: board::Worker<Snapshot>,
    /// What it keeps between exchanges.
    pub exchange: exchange::Worker,
    /// Per destination.
    pub pools: Vec<Pool>,
}

/// Connections that wait for a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pool {
    /// How many.
    pub idle: u32,
    /// To which life of the destination's listener.
    pub connections: u32,
    /// When the last one was put back.
    pub used_at: Timestamp,
}

impl Pool {
    /// Takes a connection, where one waits.
    pub fn take(&mut self, now: Timestamp, connections: u32) -> bool {
        if self.connections != connections || now.since(self.used_at) > POOL_IDLE {
            self.idle = 0;
        }
        let is_there = self.idle > 0;
        self.idle = self.idle.saturating_sub(1);
        is_there
    }

    /// Puts one back.
    pub fn put(&mut self, now: Timestamp, connections: u32) {
        if self.connections != connections {
            (self.connections, self.idle) = (connections, 0);
        }
        self.idle = (self.idle + 1).min(POOL_SIZE);
        self.used_at = now;
    }
}

/// How a proxy sees a destination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Share of its weight that it gets, beside the one that gets most: 1 in full, 0 out or behind a gate.
    pub share: f64,
    /// It is judged bad, in use or not.
    pub is_judged: bool,
}

impl Proxy {
    /// A proxy that has seen nothing. `None` when the configuration is none that a board can be made for.
    pub fn new(config: &Arc<Config>, scenario: &Scenario, policy: &Policy, seed: u64) -> Option<Self> {
        let mind = policy.mind;
        let mut core = Core::with_registry(seed, policy.registry());
        let mut publisher = Publisher::new(policy.balancing(), Arc::clone(config));
        let summary = String::from("start");
        core.handle(Timestamp::ZERO, Input::Configured { clusters: publisher.clusters(), summary });
        let mut budgets = Budgets::default();
        let snapshot = Arc::new(publisher.snapshot(&mut core, &mut budgets));
        let n_workers = scenario.proxies.workers as usize;
        let board = Board::new(n_workers, Arc::clone(&snapshot));
        budgets.open(&board, Timestamp::ZERO);
        let reader = board.reader()?;
        let has_failed = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&has_failed);
        board.set_waker(Box::new(move || flag.store(true, Ordering::Relaxed)));
        let mut gates = Gates::default();
        let _ = gates.published(&snapshot.health);
        let n = scenario.destinations.len();
        let workers: Option<Vec<Worker>> = (0..scenario.proxies.workers)
            .map(|id| {
                Some(Worker {
                    board: board.worker(WorkerId(id))?,
                    exchange: exchange::Worker::new(seed ^ u64::from(id) << 32),
                    pools: vec![Pool::default(); n],
                })
            })
            .collect();
        let cluster = ClusterId::from(crate::policy::CLUSTER);
        let keys = scenario
            .destinations
            .iter()
            .map(|server| DestinationKey { cluster: cluster.clone(), destination: server.id.as_str().into() });
        let keys = keys.collect();
        Some(Self {
            core,
            publisher,
            budgets,
            gates,
            pulses: Pulses::default(),
            trends: Trends::default(),
            board,
            reader,
            drained_at: Timestamp::ZERO,
            has_failed,
            workers: workers?,
            is_waking: false,
            timer_at: None,
            model_at: None,
            model: mind.model(scenario, Random::new(seed).unit()),
            is_oracle: mind == Mind::Eject,
            tells_stale: policy.tells_stale(),
            tries_again: policy.tries_again(),
            said: vec![Health::Unknown; n],
            keys,
            probes: Vec::new(),
            probed: 0,
            due: Vec::new(),
        })
    }

    /// Whether something failed since the last time this was asked.
    pub fn take_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed) && self.has_failed.swap(false, Ordering::Relaxed)
    }

    /// Sums are due.
    pub fn tick(&mut self, now: Timestamp) -> bool {
        self.drain(now, Reach::All);
        if let Some(pulses) = self.pulses.take(&self.board, &self.core, now) {
            self.core.handle(now, pulses);
        }
        self.budgets.advance(&self.board, now);
        for (slot, trend) in self.trends.changes(now) {
            self.board.set_trend(slot, trend);
        }
        self.carry_out(now)
    }

    /// What failed is looked at.
    pub fn wake(&mut self, now: Timestamp) -> bool {
        self.drain(now, Reach::Failed);
        self.carry_out(now)
    }

    /// The core's timers, if one of them is due.
    pub fn timers(&mut self, now: Timestamp) -> bool {
        if self.core.poll_timeout().is_some_and(|due| due <= now) {
            self.core.handle(now, Input::TimerDue);
        }
        self.carry_out(now)
    }

    /// When the core's next timer is due.
    pub fn next_timer(&self) -> Option<Timestamp> {
        self.core.poll_timeout()
    }

    /// A probe of the core ended.
    pub fn probed(&mut self, now: Timestamp, probed: Probed) -> bool {
        self.core.handle(now, Input::Probed(probed));
        self.carry_out(now)
    }

    /// The truth of a destination has changed: only the oracle that ejects hears of it.
    pub fn told(&mut self, now: Timestamp, destination: usize, truth: Truth) -> bool {
        if !self.is_oracle {
            return false;
        }
        self.say(now, destination, if truth == Truth::Sick { Health::Unhealthy } else { Health::Healthy });
        self.carry_out(now)
    }

    /// Takes over what the model thinks.
    pub fn follow_model(&mut self, now: Timestamp) -> bool {
        let Some(model) = &self.model else { return false };
        let out: Vec<bool> = (0..self.said.len()).map(|destination| model.is_out(destination)).collect();
        for (destination, is_out) in out.into_iter().enumerate() {
            self.say(now, destination, if is_out { Health::Unhealthy } else { Health::Healthy });
        }
        self.carry_out(now)
    }

    /// How each destination stands.
    pub fn standings(&mut self) -> Vec<Standing> {
        let view = self.core.view();
        let Some(cluster) = view.clusters.first() else { return Vec::new() };
        let standings = cluster.destinations.iter().map(|destination| {
            let share = match (destination.is_available, destination.is_gated) {
                (true, false) => destination.share.get(),
                // One request at a time is next to nothing.
                (true, true) | (false, _) => 0.0,
            };
            let is_judged = matches!(destination.status, NodeStatus::Unhealthy | NodeStatus::MostlyUnhealthy);
            Standing { share, is_judged }
        });
        let mut standings: Vec<Standing> = standings.collect();
        // Weights are relative: where all have a tenth, each has what it had before.
        let most = standings.iter().map(|standing| standing.share).fold(0.0, f64::max);
        if most > 0.0 {
            standings.iter_mut().for_each(|standing| standing.share /= most);
        }
        standings
    }

    /// A number for a probe that begins.
    pub fn open_probe(&mut self, probing: Probing) -> u32 {
        self.probed = self.probed.wrapping_add(1);
        self.probes.push((self.probed, probing));
        self.probed
    }

    /// A probe is over; `None`: it was before.
    pub fn close_probe(&mut self, probe: u32) -> Option<Probing> {
        let place = self.probes.iter().position(|(one, _)| *one == probe)?;
        Some(self.probes.swap_remove(place).1)
    }

    fn say(&mut self, now: Timestamp, destination: usize, health: Health) {
        let Some(said) = self.said.get_mut(destination) else { return };
        if *said == health || (*said == Health::Unknown && health == Health::Healthy) {
            return;
        }
        *said = health;
        if let Some(key) = self.keys.get(destination) {
            let set = HealthSet {
                destination: key.clone(),
                check: CheckKind::Passive,
                health,
                reactivation: Some(UNTIL_TOLD),
            };
            self.core.handle(now, Input::HealthSet(set));
        }
    }

    fn drain(&mut self, now: Timestamp, reach: Reach) {
        let owners = self.publisher.owners();
        let taken = feed::take(&mut self.reader, |slot| owners.contains_key(&slot), reach, self.drained_at, now);
        self.drained_at = now;
        self.pulses.stir(&taken.stirred);
        self.budgets.earn(taken.successes(), owners, now);
        taken.count(&mut self.trends, now);
        for input in taken.into_inputs() {
            self.gates.heard(&input);
            self.core.handle(now, input);
        }
    }

    /// Does what the core wants done. Whether something was published.
    fn carry_out(&mut self, now: Timestamp) -> bool {
        let mut is_published = false;
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Probe(order) => self.due.push(order),
                // Probes end by themselves; a late end is ignored.
                Output::CancelProbe(_) | Output::Event(_) | Output::FreeSlot(_) => {}
                Output::Publish => {
                    self.publish(now);
                    is_published = true;
                }
            }
        }
        for slot in self.gates.settled() {
            self.board.reopen(slot);
        }
        is_published
    }

    fn publish(&mut self, now: Timestamp) {
        let snapshot = Arc::new(self.publisher.snapshot(&mut self.core, &mut self.budgets));
        self.budgets.open(&self.board, now);
        for slot in self.gates.published(&snapshot.health) {
            self.board.reopen(slot);
        }
        self.board.publish(snapshot);
    }
}

/// Longer than any scenario.
const UNTIL_TOLD: Duration = Duration::from_secs(10 * 365 * 86_400);
/// The proxy's own defaults.
const POOL_IDLE: Duration = Duration::from_secs(30);
const POOL_SIZE: u32 = 64;
