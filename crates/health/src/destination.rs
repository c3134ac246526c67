//! One destination's state: two values, what its probes and its traffic came to, and how it stands with traffic.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use model::address::Located;
use model::available::Because;
use model::destination::Destination;
use model::event::{Seen, ShareCause, Transition};
use model::health::{Health, HealthPair, Switch};
use model::id::{DestinationKey, PolicyName, Slot};
use model::outcome::FailureKind;
use model::random::Random;
use model::ratio::Ratio;
use model::time::Timestamp;
use model::view::{Counter, DestinationHealth, NodeStatus};
use serde::{Deserialize, Serialize};

use crate::active::DestinationProbes;
use crate::doubt::Shadow;
use crate::guards::Departure;
use crate::output::Ticket;
use crate::passive::{PassivePolicy, PassiveSettings};
use crate::readmission::Comeback;
use crate::status::{Facts, Process, node_status};
use crate::timers::{TimerKey, Timers};
use crate::window::Window;

/// The state. It lives as long as cluster id, destination id and address stay the same; of a name, as long as the
/// address is one of its own, whether the id carries the address or not.
#[derive(Debug)]
pub(crate) struct DestinationState {
    pub(crate) key: DestinationKey,
    pub(crate) slot: Slot,
    pub(crate) config: Destination,
    /// Jitter of its probes.
    pub(crate) random: Random,
    pub(crate) health: HealthPair,
    pub(crate) probes: Probes,
    pub(crate) traffic: Traffic,
    pub(crate) counter: Counter,
    pub(crate) status: NodeStatus,
    pub(crate) is_available: bool,
    pub(crate) because: Because,
    /// What the last selection saw of it: both values, and whether it is held out.
    pub(crate) selected: Option<(HealthPair, bool)>,
    /// The part of its weight that it gets, and why.
    pub(crate) share: Ratio,
    pub(crate) share_because: ShareCause,
    pub(crate) changed_at: Option<Timestamp>,
    pub(crate) last_transition: Option<Arc<Transition>>,
}

/// What its probes came to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Probes {
    pub(crate) in_flight: Option<InFlight>,
    pub(crate) last_started_at: Option<Timestamp>,
    /// When the last early probe started: there is at most one a second.
    pub(crate) early_at: Option<Timestamp>,
    /// The probe that the timer will start comes before its regular time.
    pub(crate) is_next_early: bool,
    pub(crate) last: Option<Judged>,
    pub(crate) failures_in_row: u32,
    pub(crate) passes_in_row: u32,
    /// Its requests speak for it against its failed probes, and that has been told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_kept: bool,
    /// The last failed ones, oldest first.
    pub(crate) failed: Recent,
}

/// A probe on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InFlight {
    pub(crate) ticket: Ticket,
    pub(crate) started_at: Timestamp,
}

/// The last probe that said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Judged {
    pub(crate) at: Timestamp,
    pub(crate) failure: Option<FailureKind>,
    pub(crate) status: Option<u16>,
}

/// What its traffic came to.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) policies: Vec<(PassiveSettings, Box<dyn PassivePolicy>)>,
    pub(crate) shadow: Vec<Shadow>,
    pub(crate) window: Window,
    pub(crate) comeback: Comeback,
    pub(crate) departure: Departure,
    /// A doubt that needs a comparison with the rest has found it, and when it last looked.
    pub(crate) is_worse: bool,
    pub(crate) compared_at: Option<Timestamp>,
    /// Ejected on a policy's word that a passed probe takes back.
    pub(crate) is_unconfirmed: bool,
    pub(crate) ejected_at: Option<Timestamp>,
    /// A failed attempt since the last good one.
    pub(crate) has_failed: bool,
    /// Reactivated, and no good attempt since.
    pub(crate) is_unproven: bool,
    /// When a good attempt was last heard of.
    pub(crate) good_at: Option<Timestamp>,
    /// The last failed attempts since it was last reactivated, oldest first.
    pub(crate) failed: Recent,
    /// Failed attempts since the last good one, over all its ejections and ways back.
    pub(crate) failures_in_row: u32,
    /// The mean of its times to first byte of late; `None`: too few.
    pub(crate) mean: Option<Duration>,
}

impl Traffic {
    /// A good attempt was heard of.
    pub(crate) fn good(&mut self, now: Timestamp) {
        self.good_at = Some(now);
        self.failures_in_row = 0;
    }

    /// All that judge it: those that are enforced, then the others.
    pub(crate) fn judges(&mut self) -> impl Iterator<Item = &mut Box<dyn PassivePolicy>> {
        let shadow = self.shadow.iter_mut().map(|shadow| &mut shadow.policy);
        self.policies.iter_mut().map(|(_, policy)| policy).chain(shadow)
    }
}

/// The last few observations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Recent(VecDeque<Seen>);

impl Recent {
    const N: usize = 5;

    pub(crate) fn push(&mut self, seen: Seen) {
        if self.0.len() == Self::N {
            self.0.pop_front();
        }
        self.0.push_back(seen);
    }

    /// The newest of these, oldest first.
    pub(crate) fn of(seen: Vec<Seen>) -> Self {
        let mut recent = Self::default();
        seen.into_iter().for_each(|one| recent.push(one));
        recent
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn to_vec(&self) -> Vec<Seen> {
        self.0.iter().copied().collect()
    }
}

fn name_of(shadow: &Shadow) -> PolicyName {
    PolicyName::from(shadow.policy.name())
}

impl DestinationState {
    /// New: both values Unknown, taking traffic.
    pub(crate) fn new(key: DestinationKey, slot: Slot, config: Destination, random: Random) -> Self {
        Self {
            key,
            slot,
            config,
            random,
            health: HealthPair::default(),
            probes: Probes::default(),
            traffic: Traffic::default(),
            counter: Counter::default(),
            status: NodeStatus::Unknown,
            is_available: true,
            because: Because::Health,
            selected: None,
            share: Ratio::ONE,
            share_because: ShareCause::Whole,
            changed_at: None,
            last_transition: None,
        }
    }

    /// Whether a probe's result leaves the active verdict open: it failed and the threshold is not reached, or it passed
    /// and that was not enough yet.
    pub(crate) fn is_verdict_pending(&self) -> bool {
        let probes = &self.probes;
        (probes.failures_in_row > 0 && self.health.active != Health::Unhealthy)
            || (probes.passes_in_row > 0 && self.health.active == Health::Unhealthy)
    }

    /// Whether requests to it go one at a time.
    pub(crate) fn is_gated(&self) -> bool {
        self.traffic.comeback.is_gated() || self.traffic.policies.iter().any(|(_, policy)| policy.is_gated())
    }

    /// Whether its name has no address.
    pub(crate) fn is_nowhere(&self) -> bool {
        self.config.address.located == Located::Nowhere
    }

    /// The node status as of now.
    pub(crate) fn node_status(&self, active: Switch, passive: Switch, process: Process) -> NodeStatus {
        node_status(&Facts {
            is_out_of_service: process == Process::Drains || self.config.weight == 0 || self.is_nowhere(),
            active,
            passive,
            health: self.health,
            is_returning: self.probes.passes_in_row > 0,
            is_doubtful: self.probes.failures_in_row > 0 || self.traffic.has_failed || self.traffic.is_unproven,
        })
    }

    /// What an active policy may know of it.
    pub(crate) fn probe_facts(&self) -> DestinationProbes {
        DestinationProbes {
            id: self.key.destination.clone(),
            slot: self.slot,
            health: self.health,
            failures_in_row: self.probes.failures_in_row,
            passes_in_row: self.probes.passes_in_row,
        }
    }

    /// Its part of the view. `round_at`: when the cluster's next round starts, if it has rounds.
    pub(crate) fn picture(&self, timers: &Timers, round_at: Option<Timestamp>) -> DestinationHealth {
        DestinationHealth {
            id: self.key.destination.clone(),
            slot: self.slot,
            health: self.health,
            because: self.because,
            is_available: self.is_available,
            status: self.status,
            counter: self.counter,
            probed_at: self.probes.last.map(|last| last.at),
            probe_failure: self.probes.last.and_then(|last| last.failure),
            probe_status: self.probes.last.and_then(|last| last.status),
            next_probe_at: timers.at(TimerKey::Probe(self.slot)).or(round_at),
            reactivation_at: timers
                .at(TimerKey::Reactivation(self.slot))
                .filter(|_| self.health.passive == Health::Unhealthy),
            changed_at: self.changed_at,
            is_gated: self.is_gated(),
            share: self.share,
            would_eject: self.traffic.shadow.iter().filter(|one| one.out_until.is_some()).map(name_of).collect(),
            last_transition: self.last_transition.clone(),
        }
    }
}
