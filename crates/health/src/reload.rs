//! Taking over a configuration: what stays, what begins anew, and which probes come at once.
//!
//! | what changed | values, counts, pending reactivation, next probe |
//! |---|---|
//! | nothing of this destination, its cluster's policies or interval | all stay, to the nanosecond |
//! | options of the same policy | stay; the counts are judged by the new options at the next result |
//! | interval | the next probe comes within the shorter one of old and new |
//! | the destination's `health` URL | stay; the probe in flight is cancelled, one with the new URL starts at once |
//! | the destination's address | another server: Unknown, everything forgotten, new slot, a probe at once |
//! | `id` became `id[address]` or the other way round, by its name's answers | all stay |
//! | an address left its name | away for 10 min; back within them its values go on, with a probe at once (`away`) |
//! | a check turned off | its value Unknown, its counts and pending reactivation forgotten, the probe in flight cancelled |
//! | a check turned on | Unknown; a probe at once |
//! | destination or cluster gone | everything forgotten; back again it is a new one |
//!
//! "At once" is spread over min(interval, N / 500 s) when N destinations want a first probe.

mod matching;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use model::active::{ActivePolicy as ActiveOptions, ProbeStart};
use model::cluster::Cluster;
use model::event::Cause;
use model::health::{CheckKind, Switch};
use model::id::ClusterId;
use model::passive::PassiveCheck;
use model::view::Counter;

use crate::cluster::{ClusterNumber, ClusterState, Round};
use crate::destination::{DestinationState, Probes, Traffic};
use crate::doubt::{self, Shadow};
use crate::effects::Effects;
use crate::judge::forget;
use crate::lookout::Lookout;
use crate::passive::{Needs, PassivePolicy, PassiveSettings};
use crate::readmission::Comeback;
use crate::registry::Registry;
use crate::schedule;
use crate::slots::{Place, Slots};
use crate::timers::TimerKey;
use crate::{active, available, away, passive};
use matching::Matched;

/// Takes over one configuration after the other.
pub(crate) struct Reload<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) slots: &'a mut Slots,
    pub(crate) effects: &'a mut Effects,
    pub(crate) next_number: &'a mut u64,
    /// The first configuration: nothing is held out.
    pub(crate) is_start: bool,
}

impl Reload<'_> {
    /// The clusters of the new configuration, with the state that stays.
    pub(crate) fn run(mut self, old: Vec<ClusterState>, configs: Vec<Arc<Cluster>>) -> Vec<ClusterState> {
        let before = old;
        let mut old: BTreeMap<ClusterId, ClusterState> = BTreeMap::new();
        let mut gone = Vec::new();
        for cluster in before {
            gone.extend(old.insert(cluster.config.id.clone(), cluster));
        }
        let mut first = Vec::new();
        let mut clusters = Vec::with_capacity(configs.len());
        for config in configs {
            let place = clusters.len();
            let mut cluster = match old.remove(&config.id) {
                Some(cluster) => cluster,
                None => self.create(&config),
            };
            for index in self.take_over(&mut cluster, config) {
                first.push(Place { cluster: place, destination: index });
            }
            clusters.push(cluster);
        }
        for mut gone in gone.into_iter().chain(old.into_values()) {
            self.effects.timers.cancel(TimerKey::Round(gone.number));
            self.effects.timers.cancel(TimerKey::Guard(gone.number));
            for index in 0..gone.destinations.len() {
                schedule::cancel(&mut gone, index, self.effects);
            }
            away::forget_all(&mut gone, self.slots, self.effects);
            for destination in gone.destinations {
                self.retire(&destination);
            }
        }
        self.settle_slots(&clusters);
        self.first_probes(&mut clusters, &first);
        clusters
    }

    fn create(&mut self, config: &Arc<Cluster>) -> ClusterState {
        *self.next_number += 1;
        ClusterState {
            number: ClusterNumber(*self.next_number),
            // Without checks and destinations: taking over the real one then is a change like any other.
            config: Arc::new(Cluster {
                health_check: model::cluster::HealthCheck {
                    active: None,
                    passive: None,
                    available_destinations_policy: config.health_check.available_destinations_policy.clone(),
                    guards: config.health_check.guards,
                },
                destinations: Vec::new(),
                ..Cluster::clone(config)
            }),
            request: None,
            tls: Arc::new(config.tls.clone()),
            outbound: Arc::new(config.outbound.clone()),
            active_policy: None,
            available_policy: available::build(&config.health_check.available_destinations_policy, self.registry),
            destinations: Vec::new(),
            away: VecDeque::new(),
            round: Round::new(self.effects.random(config.id.as_str())),
            needs: Needs::Nothing,
            is_panic: false,
            left_at: None,
            lookout: Lookout::default(),
            rest: None,
            picture: Arc::new(model::view::ClusterHealth {
                id: config.id.clone(),
                active: Switch::Off,
                passive: Switch::Off,
                destinations: Vec::new(),
                available: Vec::new(),
                is_panic: false,
            }),
            is_picture_stale: true,
        }
    }

    /// Brings a cluster to its new configuration. Returns the destinations that want a first probe.
    fn take_over(&mut self, cluster: &mut ClusterState, config: Arc<Cluster>) -> Vec<usize> {
        if cluster.config == config {
            return Vec::new();
        }
        cluster.is_picture_stale = true;
        let before = std::mem::replace(&mut cluster.config, config.clone());
        let (was, is) = (&before.health_check, &config.health_check);
        if was != is {
            // What was found by other checks does not go on under these.
            away::forget_all(cluster, self.slots, self.effects);
        }
        if was.available_destinations_policy != is.available_destinations_policy {
            cluster.available_policy = available::build(&is.available_destinations_policy, self.registry);
        }
        cluster.tls = Arc::new(config.tls.clone());
        cluster.outbound = Arc::new(config.outbound.clone());
        self.rebuild_active_policy(cluster, &before);
        let is_rescheduled = self.reschedule(cluster, &before);
        if is.active.is_none() {
            self.effects.timers.cancel(TimerKey::Round(cluster.number));
            cluster.round = Round::new(cluster.round.random.clone());
        }
        let Matched { new, returned } = self.match_destinations(cluster);
        let mut first = Vec::new();
        for index in 0..cluster.destinations.len() {
            let is_new = new.contains(&index);
            let is_moved = self.update_destination(cluster, index);
            let was_on = was.active.is_some() && !is_new;
            match (was_on, &is.active) {
                (_, None) => self.turn_active_off(cluster, index),
                (false, Some(_)) => first.push(index),
                (true, Some(_)) if is_rescheduled || is_moved || returned.contains(&index) => first.push(index),
                (true, Some(check)) => {
                    let intervals = was.active.as_ref().map(|old| (old.interval, old.unhealthy_interval));
                    if intervals != Some((check.interval, check.unhealthy_interval)) {
                        schedule::interval_changed(cluster, index, self.effects);
                    }
                }
            }
            let is_held = is_new && !self.is_start && self.waits_for_probe(cluster, index);
            if let (true, Some(destination)) = (is_held, cluster.destinations.get(index)) {
                let until = self.effects.now + HOLD;
                self.effects.timers.set(TimerKey::HoldEnd(destination.slot), until);
            }
        }
        let passive = is.passive.as_ref();
        for (index, destination) in cluster.destinations.iter_mut().enumerate() {
            match passive {
                Some(check) => self.rebuild_passive_policies(destination, &config, check),
                None => self.turn_passive_off(destination),
            }
            if new.contains(&index) && !self.is_start && config.destinations.len() > new.len() {
                destination.traffic.comeback = Comeback::newcomer(self.effects.now);
            }
        }
        // It was of other members, under other checks.
        cluster.rest = None;
        for index in 0..cluster.destinations.len() {
            doubt::settle(cluster, index, self.effects);
        }
        let policies = cluster.destinations.iter().flat_map(|destination| &destination.traffic.policies);
        let shadows = cluster.destinations.iter().flat_map(|destination| &destination.traffic.shadow);
        let shadows = shadows.map(|shadow| shadow.policy.needs());
        // Failures of live traffic also bring a probe forward.
        let least = if is.active.is_some() { Needs::Failures } else { Needs::Nothing };
        cluster.needs =
            policies.map(|(_, policy)| policy.needs()).chain(shadows).max().unwrap_or(Needs::Nothing).max(least);
        self.check_round(cluster);
        first
    }

    fn waits_for_probe(&self, cluster: &ClusterState, index: usize) -> bool {
        cluster.active_check().is_some_and(|check| check.start == ProbeStart::ProbeFirst)
            && cluster.has_healthy_peer(index, &self.effects.timers)
    }

    fn rebuild_active_policy(&self, cluster: &mut ClusterState, before: &Cluster) {
        let (was, is) = (before.health_check.active.as_ref(), cluster.config.health_check.active.as_ref());
        cluster.request = is.map(|check| Arc::new(check.request.clone()));
        let is_same_custom = match (was.map(|check| &check.policy), is.map(|check| &check.policy)) {
            (Some(ActiveOptions::Custom(old)), Some(ActiveOptions::Custom(new))) => old == new,
            _ => false,
        };
        if !is_same_custom {
            // The built-in policies keep no state of their own.
            cluster.active_policy = is.and_then(|check| active::build(check, self.registry));
        }
    }

    /// Starts the schedule anew when probes are no longer (or only now) judged by rounds. Returns whether it did.
    fn reschedule(&mut self, cluster: &mut ClusterState, before: &Cluster) -> bool {
        let was = before.health_check.active.as_ref().map(|check| check.round);
        let is = cluster.active_check().map(|check| check.round);
        if was == is || was.is_none() {
            return false;
        }
        for index in 0..cluster.destinations.len() {
            schedule::cancel(cluster, index, self.effects);
            if let Some(destination) = cluster.destinations.get(index) {
                self.effects.timers.cancel(TimerKey::Probe(destination.slot));
            }
        }
        self.effects.timers.cancel(TimerKey::Round(cluster.number));
        cluster.round = Round::new(cluster.round.random.clone());
        true
    }

    /// Takes over the destination's own options. Returns whether its probes go elsewhere now.
    fn update_destination(&mut self, cluster: &mut ClusterState, index: usize) -> bool {
        let config = cluster.config.clone();
        let Some(new) = config.destinations.get(index) else { return false };
        let Some(destination) = cluster.destinations.get_mut(index) else { return false };
        let old = std::mem::replace(&mut destination.config, new.clone());
        let is_moved = old.health != new.health;
        if is_moved {
            schedule::cancel(cluster, index, self.effects);
        }
        is_moved
    }

    fn turn_active_off(&mut self, cluster: &mut ClusterState, index: usize) {
        schedule::cancel(cluster, index, self.effects);
        let Some(destination) = cluster.destinations.get_mut(index) else { return };
        if let Some(policy) = &mut cluster.active_policy {
            policy.on_forgotten(destination.slot);
        }
        self.effects.timers.cancel(TimerKey::Probe(destination.slot));
        self.effects.timers.cancel(TimerKey::HoldEnd(destination.slot));
        if destination.probes.last_started_at.is_some() {
            destination.counter = Counter::default();
        }
        destination.probes = Probes::default();
        forget(destination, CheckKind::Active, Cause::CheckOff, self.effects);
    }

    fn turn_passive_off(&mut self, destination: &mut DestinationState) {
        if !destination.traffic.policies.is_empty() {
            destination.counter = Counter::default();
        }
        destination.traffic = Traffic::default();
        self.effects.timers.cancel(TimerKey::Reactivation(destination.slot));
        self.effects.timers.cancel(TimerKey::Passive(destination.slot));
        forget(destination, CheckKind::Passive, Cause::CheckOff, self.effects);
    }

    fn rebuild_passive_policies(&self, destination: &mut DestinationState, cluster: &Cluster, check: &PassiveCheck) {
        let mut old = std::mem::take(&mut destination.traffic.policies);
        for settings in PassiveSettings::of(&destination.config, cluster, check) {
            let kept =
                old.iter().position(|(before, _)| before.is_same_policy(&settings)).map(|place| old.remove(place));
            let policy = match kept {
                Some((before, mut policy)) => {
                    if before != settings {
                        policy.on_configured(&settings);
                    }
                    Some(policy)
                }
                None => passive::build(&settings, self.registry),
            };
            let policy: Option<Box<dyn PassivePolicy>> = policy;
            destination.traffic.policies.extend(policy.map(|policy| (settings, policy)));
        }
        let mut old = std::mem::take(&mut destination.traffic.shadow);
        for settings in PassiveSettings::of_shadow(&destination.config, cluster, check) {
            let kept = old.iter().position(|before| before.settings.is_same_policy(&settings));
            let shadow = match kept.map(|place| old.remove(place)) {
                Some(mut kept) => {
                    kept.policy.on_configured(&settings);
                    Some(Shadow { settings, ..kept })
                }
                None => {
                    passive::build(&settings, self.registry).map(|policy| Shadow { settings, policy, out_until: None })
                }
            };
            destination.traffic.shadow.extend(shadow);
        }
    }

    /// A round whose last probes were cancelled is over; one that should run and does not is wanted.
    fn check_round(&mut self, cluster: &mut ClusterState) {
        let is_idle = cluster.destinations.iter().all(|one| one.probes.in_flight.is_none());
        if cluster.has_rounds() && is_idle && cluster.round.started_at.is_some() {
            schedule::end_round(cluster, self.effects);
        }
        if cluster.has_rounds()
            && cluster.round.started_at.is_none()
            && self.effects.timers.at(TimerKey::Round(cluster.number)).is_none()
        {
            self.effects.timers.set(TimerKey::Round(cluster.number), self.effects.now);
        }
    }

    fn settle_slots(&mut self, clusters: &[ClusterState]) {
        let mut places = BTreeMap::new();
        for (cluster, state) in clusters.iter().enumerate() {
            for (destination, one) in state.destinations.iter().enumerate() {
                places.insert(one.slot, Place { cluster, destination });
            }
        }
        self.slots.settle(&places);
    }

    fn first_probes(&mut self, clusters: &mut [ClusterState], first: &[Place]) {
        let n = u32::try_from(first.len()).unwrap_or(u32::MAX).max(1);
        for (number, place) in (0_u32..).zip(first) {
            let Some(cluster) = clusters.get_mut(place.cluster) else { continue };
            let interval = cluster.active_check().map_or(Duration::ZERO, |check| check.interval);
            let spread = interval.min(FIRST_SPACING.saturating_mul(n));
            let at = self.effects.now + spread.mul_f64(f64::from(number) / f64::from(n));
            schedule::probe_by(cluster, place.destination, at, self.effects);
        }
    }
}

/// A destination waits at most so long for its first passed probe.
const HOLD: Duration = Duration::from_secs(5);
/// First probes start this far apart, unless the interval is shorter than all of them need.
const FIRST_SPACING: Duration = Duration::from_millis(2);
