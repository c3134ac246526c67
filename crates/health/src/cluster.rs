//! One cluster's state: its policies, its destinations, and who of them is available.

use std::cell::LazyCell;
use std::collections::VecDeque;
use std::sync::Arc;

use model::active::{ActiveCheck, ProbeRound};
use model::address::Located;
use model::available::Because;
use model::cluster::{Cluster, UpstreamTls};
use model::destination::Tier;
use model::health::{Health, HealthPair, Switch};
use model::id::Slot;
use model::random::Random;
use model::time::Timestamp;
use model::upstream::Outbound;
use model::view::ClusterHealth;
use serde::{Deserialize, Serialize};

use crate::active::{ActivePolicy, ClusterProbes, ProbeResult};
use crate::available::{AvailablePolicy, Candidate, Candidates, Selection, is_unhealthy};
use crate::away::Away;
use crate::destination::DestinationState;
use crate::lookout::Lookout;
use crate::passive::Needs;
use crate::rest::Rest;
use crate::timers::{TimerKey, Timers};

/// Names a cluster in the timers table while its id stays configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ClusterNumber(pub(crate) u64);

/// The state. It lives as long as the cluster's id stays.
#[derive(Debug)]
pub(crate) struct ClusterState {
    pub(crate) number: ClusterNumber,
    pub(crate) config: Arc<Cluster>,
    pub(crate) request: Option<Arc<model::active::ProbeRequest>>,
    pub(crate) tls: Arc<UpstreamTls>,
    pub(crate) outbound: Arc<Outbound>,
    pub(crate) active_policy: Option<Box<dyn ActivePolicy>>,
    pub(crate) available_policy: Option<Box<dyn AvailablePolicy>>,
    pub(crate) destinations: Vec<DestinationState>,
    /// Addresses that left their names of late, the longest gone first.
    pub(crate) away: VecDeque<Away>,
    pub(crate) round: Round,
    pub(crate) needs: Needs,
    pub(crate) is_panic: bool,
    /// When an ejection last took a destination out, and which.
    pub(crate) left_at: Option<(Timestamp, Slot)>,
    /// What of its destinations must be known from one tick to the next.
    pub(crate) lookout: Lookout,
    /// What its destinations came to together, kept from the first comparison on.
    pub(crate) rest: Option<Rest>,
    /// The last picture, and whether it still holds.
    pub(crate) picture: Arc<ClusterHealth>,
    pub(crate) is_picture_stale: bool,
}

/// Probes of a cluster that are judged together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Round {
    /// Jitter of its start.
    pub(crate) random: Random,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) results: Vec<ProbeResult>,
    /// Another one is wanted as soon as this one is over.
    pub(crate) is_wanted_again: bool,
    pub(crate) early_at: Option<Timestamp>,
    pub(crate) is_next_early: bool,
}

impl Round {
    /// No round yet.
    pub(crate) fn new(random: Random) -> Self {
        Self {
            random,
            started_at: None,
            results: Vec::new(),
            is_wanted_again: false,
            early_at: None,
            is_next_early: false,
        }
    }
}

/// How a destination's standing with traffic changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) is_available: bool,
    pub(crate) because: Because,
}

/// Which tiers serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tiers {
    One(Tier),
    All,
}

impl Tiers {
    fn serves(self, tier: Tier) -> bool {
        match self {
            Self::One(one) => one == tier,
            Self::All => true,
        }
    }
}

impl ClusterState {
    pub(crate) fn active(&self) -> Switch {
        if self.config.health_check.active.is_some() { Switch::On } else { Switch::Off }
    }

    pub(crate) fn passive(&self) -> Switch {
        if self.config.health_check.passive.is_some() { Switch::On } else { Switch::Off }
    }

    pub(crate) fn active_check(&self) -> Option<&ActiveCheck> {
        self.config.health_check.active.as_ref()
    }

    /// Whether one destination gets its requests one at a time, on its way back.
    pub(crate) fn is_gated(&self, index: usize) -> bool {
        self.destinations.get(index).is_some_and(|one| one.traffic.comeback.is_gated())
    }

    /// Whether its probes are judged by rounds.
    pub(crate) fn has_rounds(&self) -> bool {
        self.active_check().is_some_and(|check| check.round == ProbeRound::Cluster)
    }

    /// Asks the active policy. No policy, no verdict.
    pub(crate) fn judge(&mut self, now: Timestamp, results: &[ProbeResult]) -> Vec<crate::active::ActiveVerdict> {
        let cluster = ClusterProbes { id: &self.config.id, states: &self.destinations };
        self.active_policy.as_mut().map(|policy| policy.on_probes(now, &cluster, results)).unwrap_or_default()
    }

    /// Whether another destination than `index` is Healthy and takes traffic, so that `index` may wait.
    pub(crate) fn has_healthy_peer(&self, index: usize, timers: &Timers) -> bool {
        self.destinations.iter().enumerate().any(|(other, peer)| other != index && self.carries(peer, timers))
    }

    /// Whether a destination is Healthy and takes traffic.
    fn carries(&self, destination: &DestinationState, timers: &Timers) -> bool {
        destination.health.active == Health::Healthy
            && !is_unhealthy(destination.health, self.active(), self.passive())
            && destination.config.weight > 0
            && timers.at(TimerKey::HoldEnd(destination.slot)).is_none()
    }

    /// Runs the availability policy: one standing per destination, and whether this is panic.
    pub(crate) fn select(&self, timers: &Timers) -> (Vec<Standing>, bool) {
        let (active, passive) = (self.active(), self.passive());
        let mut standings = Vec::with_capacity(self.destinations.len());
        let (mut candidates, mut places) = (Vec::new(), Vec::new());
        let has_holds = timers.has_holds();
        // One that waits carries nothing itself, so all that wait have the same peers: looked at once for all.
        let has_carrier = LazyCell::new(|| self.destinations.iter().any(|one| self.carries(one, timers)));
        let tiers = self.serving_tiers();
        for (index, destination) in self.destinations.iter().enumerate() {
            let is_waiting = has_holds && *has_carrier && timers.at(TimerKey::HoldEnd(destination.slot)).is_some();
            let is_sick = self.is_sick(destination);
            let because = if destination.config.address.located == Located::Nowhere {
                Because::NoAddress
            } else if destination.config.weight == 0 {
                Because::Weight
            } else if is_waiting {
                // Judged before its wait is over: that is the reason that counts.
                if is_sick { Because::Unhealthy } else { Because::ProbeFirst }
            } else if !tiers.serves(destination.config.tier) {
                if is_sick { Because::Unhealthy } else { Because::Backup }
            } else {
                let id = destination.key.destination.clone();
                let (health, weight) = (counted(destination), destination.config.weight);
                candidates.push(Candidate { id, health, weight });
                places.push(index);
                match destination.kept() {
                    Some(because) if !is_sick => because,
                    _ if is_sick => Because::Unhealthy,
                    _ => Because::Policy,
                }
            };
            standings.push(Standing { is_available: false, because });
        }
        let shown = Candidates { id: &self.config.id, active, passive, destinations: &candidates };
        let selection = match &self.available_policy {
            Some(policy) => policy.select(&shown),
            // A custom policy that nobody registered: as if nothing were known.
            None => Selection { indexes: shown.all(), is_panic: false },
        };
        for chosen in selection.indexes {
            let Some(standing) = places.get(chosen).and_then(|index| standings.get_mut(*index)) else { continue };
            let because = match (standing.because, selection.is_panic) {
                (Because::Unhealthy, true) => Because::Panic,
                (Because::Unhealthy, false) => Because::Policy,
                (because @ (Because::Cap | Because::Guard), _) => because,
                _ if standing.is_available => standing.because,
                _ => Because::Health,
            };
            *standing = Standing { is_available: true, because };
        }
        (standings, selection.is_panic)
    }

    /// Whether a check that counts speaks against it.
    fn is_sick(&self, destination: &DestinationState) -> bool {
        is_unhealthy(counted(destination), self.active(), self.passive())
    }

    /// Primaries while one of them is good, else backups while one of them is, else everybody.
    fn serving_tiers(&self) -> Tiers {
        let is_good = |tier| {
            let mut of_tier = self.destinations.iter().filter(|one| one.config.tier == tier);
            of_tier.any(|one| one.config.weight > 0 && !one.is_nowhere() && !self.is_sick(one))
        };
        if is_good(Tier::Primary) {
            Tiers::One(Tier::Primary)
        } else if is_good(Tier::Backup) {
            Tiers::One(Tier::Backup)
        } else {
            Tiers::All
        }
    }

    /// Its part of the view, made anew.
    pub(crate) fn picture(&self, timers: &Timers) -> ClusterHealth {
        let round_at = timers.at(TimerKey::Round(self.number));
        let available = self.destinations.iter().enumerate().filter(|(_, destination)| destination.is_available);
        ClusterHealth {
            id: self.config.id.clone(),
            active: self.active(),
            passive: self.passive(),
            available: available.map(|(index, _)| u32::try_from(index).unwrap_or(u32::MAX)).collect(),
            destinations: self.destinations.iter().map(|one| one.picture(timers, round_at)).collect(),
            is_panic: self.is_panic,
        }
    }
}

/// Both values as availability counts them: an ejection that a guard holds back does not.
fn counted(destination: &DestinationState) -> HealthPair {
    let passive = if destination.kept().is_some() { Health::Unknown } else { destination.health.passive };
    HealthPair::new(destination.health.active, passive)
}
