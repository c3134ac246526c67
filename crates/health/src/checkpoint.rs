//! A whole core as a value: with a recording's inputs it goes on exactly as the one that it was taken of.
//!
//! More than [`crate::saved`], which hands over what is worth keeping: here stands everything that a later transition may
//! depend on, down to the generators of jitter and the tickets of probes in flight. What policies written by others keep
//! is not in it; they begin anew, and [`Checkpoint::strangers`] names them.
//!
//! ```text
//!   Core::checkpoint ──> Checkpoint ──serde──> Checkpoint ──Core::resume, with the clusters' configuration──> Core
//! ```
//! The configuration stands apart: it changes seldom and a recording keeps it once.

mod traffic;

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use model::address::Url;
use model::available::Because;
use model::cluster::Cluster;
use model::destination::Destination;
use model::event::{ShareCause, Transition};
use model::health::{HealthPair, Switch};
use model::id::{DestinationKey, PolicyName, Slot};
use model::random::Random;
use model::ratio::Ratio;
use model::time::Timestamp;
use model::view::{ClusterHealth, Counter, HealthView, NodeStatus};
use serde::{Deserialize, Serialize};

use self::traffic::{PolicyPoint, TrafficPoint};
use crate::away::Away;
use crate::cluster::{ClusterNumber, ClusterState, Round};
use crate::core::{Core, Ignored};
use crate::destination::{DestinationState, Probes};
use crate::effects::Effects;
use crate::lookout::Lookout;
use crate::passive::Needs;
use crate::registry::Registry;
use crate::slots::Slots;
use crate::{active, available};

/// Everything that a core is made of, apart from the configuration of its clusters.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checkpoint {
    effects: Effects,
    slots: Slots,
    ran_at: Timestamp,
    is_started: bool,
    is_draining: bool,
    next_number: u64,
    clusters: Vec<ClusterPoint>,
}

/// Why no core can go on from a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumeError {
    /// It was taken under other clusters than those given.
    Misfit,
    /// A policy is not known here: it was written by others, and is not registered.
    Unknown(PolicyName),
}

impl fmt::Display for ResumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misfit => f.write_str("the state does not fit the clusters"),
            Self::Unknown(name) => write!(f, "the policy {name} is not built in and not registered here"),
        }
    }
}

impl std::error::Error for ResumeError {}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ClusterPoint {
    number: ClusterNumber,
    destinations: Vec<DestinationPoint>,
    away: Vec<AwayPoint>,
    round: Round,
    needs: Needs,
    is_panic: bool,
    left_at: Option<(Timestamp, Slot)>,
    lookout: Lookout,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct AwayPoint {
    config: Destination,
    state: DestinationPoint,
    reactivation_at: Option<Timestamp>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct DestinationPoint {
    key: DestinationKey,
    slot: Slot,
    random: Random,
    health: HealthPair,
    probes: Probes,
    traffic: TrafficPoint,
    counter: Counter,
    status: NodeStatus,
    is_available: bool,
    because: Because,
    selected: Option<(HealthPair, bool)>,
    share: Ratio,
    share_because: ShareCause,
    changed_at: Option<Timestamp>,
    last_transition: Option<Transition>,
}

impl Checkpoint {
    /// The time of the last input before it.
    pub fn at(&self) -> Timestamp {
        self.effects.now
    }

    /// Addresses that stand in the state itself: of those that left their names and may come back.
    pub fn addresses_mut(&mut self) -> impl Iterator<Item = &mut Url> {
        let away = self.clusters.iter_mut().flat_map(|cluster| &mut cluster.away);
        away.flat_map(|away| std::iter::once(&mut away.config.address).chain(&mut away.config.health))
    }

    /// Policies that are not built in: what they have seen is not part of it.
    pub fn strangers(&self) -> BTreeSet<PolicyName> {
        let away = |cluster: &'_ ClusterPoint| cluster.away.iter().map(|away| away.state.clone()).collect::<Vec<_>>();
        let all = self.clusters.iter().flat_map(|cluster| {
            cluster.destinations.iter().cloned().chain(away(cluster)).flat_map(|one| {
                let shadow = one.traffic.shadow.into_iter().map(|(policy, _)| policy);
                one.traffic.policies.into_iter().chain(shadow).collect::<Vec<_>>()
            })
        });
        all.filter_map(|policy| match policy {
            PolicyPoint::Stranger(name) => Some(name),
            PolicyPoint::BuiltIn(_) => None,
        })
        .collect()
    }
}

impl Core {
    /// The core as it is now; `None` while outputs wait to be polled.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        (self.unselected.is_empty() && self.effects.is_drained()).then(|| Checkpoint {
            effects: self.effects.clone(),
            slots: self.slots.clone(),
            ran_at: self.ran_at,
            is_started: self.is_started,
            is_draining: self.is_draining,
            next_number: self.next_number,
            clusters: self.clusters.iter().map(ClusterPoint::of).collect(),
        })
    }

    /// Goes on from a checkpoint, under the clusters that were configured then.
    pub fn resume(checkpoint: Checkpoint, clusters: &[Arc<Cluster>], registry: Registry) -> Result<Self, ResumeError> {
        let Checkpoint { effects, slots, ran_at, is_started, is_draining, next_number, clusters: points } = checkpoint;
        if points.len() != clusters.len() {
            return Err(ResumeError::Misfit);
        }
        let states: Result<Vec<ClusterState>, ResumeError> =
            points.into_iter().zip(clusters).map(|(point, config)| point.into_state(config, &registry)).collect();
        let mut core = Self {
            registry,
            clusters: states?,
            slots,
            effects,
            view: Arc::<HealthView>::default(),
            ran_at,
            is_started,
            is_draining,
            next_number,
            ignored: Ignored::default(),
            unselected: BTreeSet::new(),
            pulse_slots: Arc::default(),
        };
        core.note_pulse_slots();
        Ok(core)
    }
}

impl ClusterPoint {
    fn of(state: &ClusterState) -> Self {
        let away = state.away.iter().map(|Away { state, reactivation_at }| AwayPoint {
            config: state.config.clone(),
            state: DestinationPoint::of(state),
            reactivation_at: *reactivation_at,
        });
        Self {
            number: state.number,
            destinations: state.destinations.iter().map(DestinationPoint::of).collect(),
            away: away.collect(),
            round: state.round.clone(),
            needs: state.needs,
            is_panic: state.is_panic,
            left_at: state.left_at,
            lookout: state.lookout.clone(),
        }
    }

    fn into_state(self, config: &Arc<Cluster>, registry: &Registry) -> Result<ClusterState, ResumeError> {
        let is_fit = self.destinations.len() == config.destinations.len()
            && self.destinations.iter().zip(&config.destinations).all(|(one, config)| one.key.destination == config.id);
        if !is_fit {
            return Err(ResumeError::Misfit);
        }
        let destinations: Result<Vec<_>, ResumeError> = (self.destinations.into_iter().zip(&config.destinations))
            .map(|(one, destination)| one.into_state(destination.clone(), config, registry))
            .collect();
        let away: Result<VecDeque<_>, ResumeError> = (self.away.into_iter())
            .map(|AwayPoint { config: destination, state, reactivation_at }| {
                Ok(Away { state: state.into_state(destination, config, registry)?, reactivation_at })
            })
            .collect();
        let check = config.health_check.active.as_ref();
        Ok(ClusterState {
            number: self.number,
            config: Arc::clone(config),
            request: check.map(|check| Arc::new(check.request.clone())),
            tls: Arc::new(config.tls.clone()),
            outbound: Arc::new(config.outbound.clone()),
            active_policy: check.and_then(|check| active::build(check, registry)),
            available_policy: available::build(&config.health_check.available_destinations_policy, registry),
            destinations: destinations?,
            away: away?,
            round: self.round,
            needs: self.needs,
            is_panic: self.is_panic,
            left_at: self.left_at,
            lookout: self.lookout,
            rest: None,
            picture: Arc::new(ClusterHealth {
                id: config.id.clone(),
                active: Switch::Off,
                passive: Switch::Off,
                destinations: Vec::new(),
                available: Vec::new(),
                is_panic: false,
            }),
            is_picture_stale: true,
        })
    }
}

impl DestinationPoint {
    fn of(state: &DestinationState) -> Self {
        Self {
            key: state.key.clone(),
            slot: state.slot,
            random: state.random.clone(),
            health: state.health,
            probes: state.probes.clone(),
            traffic: TrafficPoint::of(&state.traffic),
            counter: state.counter,
            status: state.status,
            is_available: state.is_available,
            because: state.because,
            selected: state.selected,
            share: state.share,
            share_because: state.share_because.clone(),
            changed_at: state.changed_at,
            last_transition: state.last_transition.as_deref().cloned(),
        }
    }

    fn into_state(
        self,
        config: Destination,
        cluster: &Cluster,
        registry: &Registry,
    ) -> Result<DestinationState, ResumeError> {
        Ok(DestinationState {
            traffic: self.traffic.into_state(&config, cluster, registry)?,
            key: self.key,
            slot: self.slot,
            config,
            random: self.random,
            health: self.health,
            probes: self.probes,
            counter: self.counter,
            status: self.status,
            is_available: self.is_available,
            because: self.because,
            selected: self.selected,
            share: self.share,
            share_because: self.share_because,
            changed_at: self.changed_at,
            last_transition: self.last_transition.map(Arc::new),
        })
    }
}
