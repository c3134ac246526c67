//! What a core knows, as a value: for the process that takes over from this one.
//!
//! Saved are both values of each destination, its counts, what its policies have seen, and when what is due. Not saved:
//! probes in flight (the next one comes at its regular time), the journal, what custom active policies keep. Times are
//! those of the core's clock: the process that restores them goes on with the same clock.
//!
//! ```text
//!   Core::save ──> SavedHealth { version, clusters } ──> Input::HealthRestored ──> matched by cluster, destination, address
//! ```
//! A version that is not [`VERSION`] is not restored at all: then everything begins Unknown, which is true of what nobody
//! can read.

use std::collections::BTreeMap;
use std::time::Duration;

use model::address::Url;
use model::event::{Seen, Transition};
use model::health::{HealthPair, Switch};
use model::id::{ClusterId, DestinationId, PolicyName};
use model::outcome::FailureKind;
use model::time::Timestamp;
use model::view::Counter;
use serde::{Deserialize, Serialize};

use crate::cluster::ClusterState;
use crate::core::Core;
use crate::destination::{DestinationState, Judged, Recent};
use crate::doubt;
use crate::passive::History;
use crate::readmission::Comeback;
use crate::timers::{TimerKey, Timers};

/// Everything that is carried over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedHealth {
    /// [`VERSION`] of the program that saved it.
    pub version: u32,
    /// One per cluster.
    pub clusters: Vec<SavedCluster>,
}

/// The form that is written and understood.
pub const VERSION: u32 = 1;

/// One cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedCluster {
    /// Which.
    pub id: ClusterId,
    /// Its next round of probes, where probes go by rounds.
    pub next_round_at: Option<Timestamp>,
    /// One per destination.
    pub destinations: Vec<SavedDestination>,
}

/// One destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedDestination {
    /// Which.
    pub id: DestinationId,
    /// Where it stood: the state belongs to the server, not to its name.
    pub address: Url,
    /// Both values.
    pub health: HealthPair,
    /// The counts that people see.
    pub counter: Counter,
    /// When either value last changed.
    pub changed_at: Option<Timestamp>,
    /// How.
    pub last_transition: Option<Transition>,
    /// What its probes came to.
    pub probes: SavedProbes,
    /// What its traffic came to.
    pub traffic: SavedTraffic,
}

/// Probes of one destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SavedProbes {
    /// When the last one started.
    pub last_started_at: Option<Timestamp>,
    /// The last one that said something.
    pub last: Option<SavedProbe>,
    /// Failed ones in a row.
    pub failures_in_row: u32,
    /// Passed ones in a row.
    pub passes_in_row: u32,
    /// Its requests speak for it against its failed probes, and that has been told.
    #[serde(default)]
    pub is_kept: bool,
    /// The last failed ones, oldest first.
    pub failed: Vec<Seen>,
    /// When the next one is due; `None`: one was in flight, or there is no schedule of its own.
    pub next_at: Option<Timestamp>,
    /// Until when it waits for its first passed one, out of traffic.
    pub held_until: Option<Timestamp>,
}

/// A judged probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedProbe {
    /// When it ended.
    pub at: Timestamp,
    /// How it failed; `None`: it passed.
    pub failure: Option<FailureKind>,
    /// The answer's status.
    pub status: Option<u16>,
}

/// Traffic of one destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SavedTraffic {
    /// The last ejection.
    pub ejected_at: Option<Timestamp>,
    /// When the ejection ends.
    pub reactivation_at: Option<Timestamp>,
    /// A failed attempt since the last good one.
    pub has_failed: bool,
    /// Reactivated, and no good attempt since.
    pub is_unproven: bool,
    /// When a good attempt was last heard of.
    #[serde(default)]
    pub good_at: Option<Timestamp>,
    /// The last failed attempts, oldest first.
    pub failed: Vec<Seen>,
    /// Failed attempts since the last good one, over all its ejections and ways back.
    #[serde(default)]
    pub failures_in_row: u32,
    /// The mean of its times to first byte of late.
    #[serde(default)]
    pub mean: Option<Duration>,
    /// How far it is on its way back.
    #[serde(default)]
    pub comeback: Comeback,
    /// What its policies have seen, by their names. One that says nothing begins anew.
    pub policies: BTreeMap<PolicyName, History>,
}

impl Core {
    /// What it knows now.
    pub fn save(&self) -> SavedHealth {
        let timers = &self.effects.timers;
        SavedHealth { version: VERSION, clusters: self.clusters.iter().map(|cluster| cluster.save(timers)).collect() }
    }

    /// Takes over what another core has saved, as far as the configuration still names it.
    pub(crate) fn restore(&mut self, saved: SavedHealth) {
        if saved.version != VERSION {
            return;
        }
        let mut clusters: BTreeMap<_, _> = saved.clusters.into_iter().map(|one| (one.id.clone(), one)).collect();
        for index in 0..self.clusters.len() {
            let Some(cluster) = self.clusters.get_mut(index) else { continue };
            if let Some(saved) = clusters.remove(&cluster.config.id) {
                cluster.restore(saved, &mut self.effects.timers);
                for destination in 0..cluster.destinations.len() {
                    doubt::settle(cluster, destination, &mut self.effects);
                }
                self.touch_cluster(index);
            }
        }
    }
}

impl ClusterState {
    fn save(&self, timers: &Timers) -> SavedCluster {
        SavedCluster {
            id: self.config.id.clone(),
            next_round_at: timers.at(TimerKey::Round(self.number)),
            destinations: self.destinations.iter().map(|one| one.save(timers)).collect(),
        }
    }

    fn restore(&mut self, saved: SavedCluster, timers: &mut Timers) {
        let mut saved_ones: BTreeMap<_, _> =
            saved.destinations.into_iter().map(|one| ((one.id.clone(), one.address.clone()), one)).collect();
        let (has_active, has_passive) = (self.active() == Switch::On, self.passive() == Switch::On);
        let mut n_known = 0;
        for destination in &mut self.destinations {
            let key = (destination.key.destination.clone(), destination.config.address.clone());
            let Some(saved) = saved_ones.remove(&key) else { continue };
            n_known += 1;
            destination.counter = saved.counter;
            destination.changed_at = saved.changed_at;
            destination.last_transition = saved.last_transition.map(Into::into);
            if has_active {
                destination.health.active = saved.health.active;
                destination.restore_probes(saved.probes, timers);
            }
            if has_passive {
                destination.health.passive = saved.health.passive;
                destination.restore_traffic(saved.traffic, timers);
            }
        }
        // A destination that is new wants its round at once.
        if let Some(at) = saved.next_round_at.filter(|_| self.has_rounds() && n_known == self.destinations.len()) {
            timers.set(TimerKey::Round(self.number), at);
        }
    }
}

impl DestinationState {
    fn save(&self, timers: &Timers) -> SavedDestination {
        let (probes, traffic) = (&self.probes, &self.traffic);
        let last = probes.last.map(|Judged { at, failure, status }| SavedProbe { at, failure, status });
        let histories = traffic.policies.iter().filter_map(|(_, one)| Some((one.name().into(), one.history()?)));
        SavedDestination {
            id: self.key.destination.clone(),
            address: self.config.address.clone(),
            health: self.health,
            counter: self.counter,
            changed_at: self.changed_at,
            last_transition: self.last_transition.as_deref().cloned(),
            probes: SavedProbes {
                last_started_at: probes.last_started_at,
                last,
                failures_in_row: probes.failures_in_row,
                passes_in_row: probes.passes_in_row,
                is_kept: probes.is_kept,
                failed: probes.failed.to_vec(),
                next_at: timers.at(TimerKey::Probe(self.slot)),
                held_until: timers.at(TimerKey::HoldEnd(self.slot)),
            },
            traffic: SavedTraffic {
                ejected_at: traffic.ejected_at,
                reactivation_at: timers.at(TimerKey::Reactivation(self.slot)),
                has_failed: traffic.has_failed,
                is_unproven: traffic.is_unproven,
                good_at: traffic.good_at,
                failed: traffic.failed.to_vec(),
                failures_in_row: traffic.failures_in_row,
                mean: traffic.mean,
                comeback: traffic.comeback,
                policies: histories.collect(),
            },
        }
    }

    fn restore_probes(&mut self, saved: SavedProbes, timers: &mut Timers) {
        let judged = |SavedProbe { at, failure, status }| Judged { at, failure, status };
        self.probes.last_started_at = saved.last_started_at;
        self.probes.last = saved.last.map(judged);
        self.probes.failures_in_row = saved.failures_in_row;
        self.probes.passes_in_row = saved.passes_in_row;
        self.probes.is_kept = saved.is_kept;
        self.probes.failed = Recent::of(saved.failed);
        // Without a schedule (rounds) none is made. One whose probe was cut off keeps the early one it was given.
        if let Some(at) = saved.next_at.filter(|_| timers.at(TimerKey::Probe(self.slot)).is_some()) {
            timers.set(TimerKey::Probe(self.slot), at);
        }
        if let Some(until) = saved.held_until {
            timers.set(TimerKey::HoldEnd(self.slot), until);
        }
    }

    fn restore_traffic(&mut self, mut saved: SavedTraffic, timers: &mut Timers) {
        self.traffic.ejected_at = saved.ejected_at;
        self.traffic.has_failed = saved.has_failed;
        self.traffic.is_unproven = saved.is_unproven;
        self.traffic.good_at = saved.good_at;
        self.traffic.comeback = saved.comeback;
        self.traffic.failed = Recent::of(saved.failed);
        self.traffic.failures_in_row = saved.failures_in_row;
        self.traffic.mean = saved.mean;
        for (_, policy) in &mut self.traffic.policies {
            if let Some(history) = saved.policies.remove(&PolicyName::from(policy.name())) {
                policy.restore(history);
            }
        }
        if let Some(at) = saved.reactivation_at {
            timers.set(TimerKey::Reactivation(self.slot), at);
        }
    }
}
