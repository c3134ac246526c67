//! The core: inputs in, outputs out. This file dispatches; what an input means stands in `reload`, `schedule`,
//! `traffic`, `pulse` and `judge`.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::cluster::Cluster;
use model::event::{Cause, EventKind, Evidence};
use model::health::{CheckKind, Switch};
use model::id::{ClusterId, Slot};
use model::time::Timestamp;
use model::view::HealthView;

use crate::away;
use crate::cluster::ClusterState;
use crate::doubt;
use crate::effects::Effects;
use crate::guards;
use crate::input::{HealthSet, Input, Probed};
use crate::judge::{Changed, reactivate, set_active, set_passive};
use crate::output::Output;
use crate::passive::{Needs, Verdict};
use crate::registry::Registry;
use crate::reload::Reload;
use crate::schedule;
use crate::slots::{Place, Slots};
use crate::status::Process;
use crate::timers::TimerKey;

/// Decides who is healthy.
#[derive(Debug)]
pub struct Core {
    pub(crate) registry: Registry,
    pub(crate) clusters: Vec<ClusterState>,
    pub(crate) slots: Slots,
    pub(crate) effects: Effects,
    pub(crate) view: Arc<HealthView>,
    /// When the timers last ran.
    pub(crate) ran_at: Timestamp,
    pub(crate) is_started: bool,
    pub(crate) is_draining: bool,
    pub(crate) next_number: u64,
    pub(crate) ignored: Ignored,
    /// Clusters whose availability must be chosen anew.
    pub(crate) unselected: BTreeSet<usize>,
    /// Whose pulses some policy wants to see, in order.
    pub(crate) pulse_slots: Arc<[Slot]>,
}

/// Inputs that named what the core does not know (any more); harmless, but worth a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// Outcomes, sums and quiet slots for slots that are not in use.
    pub slots: u64,
    /// Probe results for tickets that are not in flight.
    pub tickets: u64,
    /// Values set for destinations that do not exist, or whose check is off.
    pub destinations: u64,
}

impl Core {
    /// With the built-in policies alone. `seed` drives the jitter of probes and of ejections' times, and nothing else.
    pub fn new(seed: u64) -> Self {
        Self::with_registry(seed, Registry::default())
    }

    /// With policies written by others as well.
    pub fn with_registry(seed: u64, registry: Registry) -> Self {
        Self {
            registry,
            clusters: Vec::new(),
            slots: Slots::default(),
            effects: Effects::new(seed),
            view: Arc::default(),
            ran_at: Timestamp::ZERO,
            is_started: false,
            is_draining: false,
            next_number: 0,
            ignored: Ignored::default(),
            unselected: BTreeSet::new(),
            pulse_slots: Arc::default(),
        }
    }

    /// Takes one input at `now`, or several one after the other. Then drain [`Self::poll_output`] and ask
    /// [`Self::poll_timeout`]. A `now` before an earlier one counts as that one.
    ///
    /// Who is available is chosen once for all inputs before the outputs are asked for: choosing is a pass over the whole
    /// cluster, and thousands of destinations may fall together.
    pub fn handle(&mut self, now: Timestamp, input: Input) {
        self.effects.now = self.effects.now.max(now);
        match input {
            Input::Configured { clusters, summary } => self.configured(clusters, summary),
            Input::ConfigRefused { summary } => self.effects.event(EventKind::Config { applied: false, summary }),
            Input::TimerDue => self.timer_due(),
            Input::Probed(end) => self.probed(end),
            Input::OutcomeSeen(event) => self.outcome_seen(&event),
            Input::SumsTaken { sums } => sums.into_iter().for_each(|sum| self.sum_taken(sum)),
            Input::PulsesTaken { pulses } => self.pulses_taken(pulses),
            Input::HealthSet(set) => self.health_set(&set),
            Input::HealthRestored(saved) => {
                self.restore(*saved);
                self.clusters.iter_mut().for_each(|cluster| cluster.rest = None);
            }
            Input::DrainStarted => self.drain_started(),
            Input::SlotQuiet { slot } => self.ignored.slots += u64::from(!self.slots.quiet(slot)),
        }
        if cfg!(debug_assertions) {
            self.check_invariants();
        }
    }

    /// The next effect, in order.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.select();
        self.effects.poll()
    }

    /// When [`Input::TimerDue`] is wanted; `None`: not at all.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.effects.timers.next()
    }

    /// The picture at this moment. Clusters that did not change are shared with the one before.
    pub fn view(&mut self) -> Arc<HealthView> {
        self.select();
        let is_stale = self.clusters.iter().any(|cluster| cluster.is_picture_stale)
            || self.view.revision != self.effects.revision
            || self.view.at != self.ran_at
            || self.view.clusters.len() != self.clusters.len();
        if is_stale {
            for cluster in self.clusters.iter_mut().filter(|cluster| cluster.is_picture_stale) {
                let picture = cluster.picture(&self.effects.timers);
                if *cluster.picture != picture {
                    cluster.picture = Arc::new(picture);
                }
                cluster.is_picture_stale = false;
            }
            let clusters = self.clusters.iter().map(|cluster| cluster.picture.clone()).collect();
            self.view = Arc::new(HealthView { revision: self.effects.revision, at: self.ran_at, clusters });
        }
        self.view.clone()
    }

    /// What the cluster's passive policies want to hear of: decides what workers report for it.
    pub fn needs(&self, cluster: &ClusterId) -> Needs {
        self.clusters.iter().find(|one| one.config.id == *cluster).map_or(Needs::Nothing, |one| one.needs)
    }

    /// What was ignored so far.
    pub fn ignored(&self) -> Ignored {
        self.ignored
    }

    fn configured(&mut self, clusters: Vec<Arc<Cluster>>, summary: String) {
        // What came before belongs to the clusters before.
        self.select();
        let reload = Reload {
            registry: &self.registry,
            slots: &mut self.slots,
            effects: &mut self.effects,
            next_number: &mut self.next_number,
            is_start: !self.is_started,
        };
        self.clusters = reload.run(std::mem::take(&mut self.clusters), clusters);
        self.is_started = true;
        self.pulses_configured();
        self.clusters.iter_mut().for_each(|cluster| cluster.rest = None);
        self.effects.event(EventKind::Config { applied: true, summary });
        for cluster in 0..self.clusters.len() {
            self.touch_cluster(cluster);
        }
    }

    fn timer_due(&mut self) {
        self.ran_at = self.effects.now;
        while let Some(key) = self.effects.timers.pop_due(self.effects.now) {
            match key {
                TimerKey::Reactivation(slot) => self.with(slot, |cluster, index, effects| {
                    let rule = cluster.config.health_check.passive.as_ref().and_then(|check| check.readmission);
                    if let Some(destination) = cluster.destinations.get_mut(index) {
                        reactivate(destination, rule.as_ref(), Cause::Reactivation, effects);
                    }
                    doubt::settle(cluster, index, effects);
                }),
                TimerKey::Passive(slot) => self.with(slot, doubt::due),
                TimerKey::Guard(number) => {
                    let place = self.clusters.iter().position(|cluster| cluster.number == number);
                    self.unselected.extend(place);
                }
                TimerKey::HoldEnd(slot) => self.with(slot, |_, _, _| ()),
                TimerKey::ProbeOverdue(slot) => self.with(slot, schedule::overdue),
                TimerKey::Probe(slot) => self.with(slot, schedule::probe_due),
                TimerKey::Round(number) => {
                    if let Some(place) = self.clusters.iter().position(|cluster| cluster.number == number) {
                        if let Some(cluster) = self.clusters.get_mut(place) {
                            schedule::round_due(cluster, &mut self.effects);
                        }
                        self.touch_cluster(place);
                    }
                }
                TimerKey::AwayEnd(slot) => {
                    away::forget_one(&mut self.clusters, slot, &mut self.slots, &mut self.effects)
                }
                TimerKey::SlotRested(slot) => self.slots.rested(slot),
                TimerKey::Facts => self.effects.publish(),
            }
        }
    }

    fn probed(&mut self, end: Probed) {
        let slot = self.effects.tickets.get(&end.ticket).copied();
        let Some(place) = slot.and_then(|slot| self.slots.place(slot)) else {
            self.ignored.tickets += 1;
            return;
        };
        let Some(cluster) = self.clusters.get_mut(place.cluster) else { return };
        let started_at = cluster.destinations.get(place.destination).and_then(|one| one.probes.in_flight);
        let changed = schedule::probed(cluster, place.destination, end, &mut self.effects);
        let last = cluster.destinations.get(place.destination).and_then(|one| one.probes.last);
        match (started_at, last.filter(|last| last.at == self.effects.now)) {
            (Some(probe), Some(last)) if last.failure.is_none() => {
                doubt::probe_passed(cluster, place.destination, probe.started_at, &mut self.effects);
            }
            (Some(_), Some(_)) => {
                if let Some(destination) = cluster.destinations.get_mut(place.destination) {
                    destination.traffic.is_unconfirmed = false;
                }
            }
            _ => {}
        }
        self.touch(place);
        for slot in changed {
            self.with(slot, doubt::settle);
        }
    }

    fn health_set(&mut self, set: &HealthSet) {
        let place = self.clusters.iter().enumerate().find_map(|(cluster, state)| {
            let destination = state.destinations.iter().position(|one| one.key == set.destination)?;
            let switch = match set.check {
                CheckKind::Active => state.active(),
                CheckKind::Passive => state.passive(),
            };
            (switch == Switch::On).then_some(Place { cluster, destination })
        });
        let Some(place) = place else {
            self.ignored.destinations += 1;
            return;
        };
        let Some(cluster) = self.clusters.get_mut(place.cluster) else { return };
        let effects = &mut self.effects;
        let changed = match set.check {
            CheckKind::Active => match cluster.destinations.get_mut(place.destination) {
                Some(destination) => set_active(destination, set.health, Cause::External, Evidence::default(), effects),
                None => Changed::No,
            },
            CheckKind::Passive => {
                let evidence = Evidence::default();
                let verdict = Verdict { reactivation: set.reactivation, ..Verdict::of(set.health, evidence) };
                set_passive(cluster, place.destination, verdict, Cause::External, effects)
            }
        };
        if changed == Changed::Yes {
            self.touch(place);
        }
    }

    pub(crate) fn process(&self) -> Process {
        if self.is_draining { Process::Drains } else { Process::Serves }
    }

    fn drain_started(&mut self) {
        if !std::mem::replace(&mut self.is_draining, true) {
            self.effects.event(EventKind::Draining);
            for cluster in 0..self.clusters.len() {
                self.touch_cluster(cluster);
            }
        }
    }

    /// Does something with a slot's destination; what hangs on it is brought up to date.
    fn with<R>(&mut self, slot: Slot, act: impl FnOnce(&mut ClusterState, usize, &mut Effects) -> R) {
        let Some(place) = self.slots.place(slot) else { return };
        let Some(cluster) = self.clusters.get_mut(place.cluster) else { return };
        act(cluster, place.destination, &mut self.effects);
        self.touch(place);
    }

    pub(crate) fn touch_cluster(&mut self, cluster: usize) {
        let n = self.clusters.get(cluster).map_or(0, |state| state.destinations.len());
        for destination in 0..n {
            self.touch(Place { cluster, destination });
        }
        self.unselected.insert(cluster);
    }

    /// Something about this destination has changed: status, picture and availability follow.
    pub(crate) fn touch(&mut self, place: Place) {
        let process = self.process();
        let Some(cluster) = self.clusters.get_mut(place.cluster) else { return };
        let (active, passive) = (cluster.active(), cluster.passive());
        cluster.is_picture_stale = true;
        let Some(destination) = cluster.destinations.get_mut(place.destination) else { return };
        let is_held = self.effects.timers.at(TimerKey::HoldEnd(destination.slot)).is_some();
        let selected = Some((destination.health, is_held));
        if std::mem::replace(&mut destination.selected, selected) != selected {
            self.unselected.insert(place.cluster);
        }
        let status = destination.node_status(active, passive, process);
        if std::mem::replace(&mut destination.status, status) != status {
            self.effects.publish();
        }
        self.effects.note_fact();
    }

    /// Chooses anew who is available where something has changed.
    fn select(&mut self) {
        for place in std::mem::take(&mut self.unselected) {
            let Some(cluster) = self.clusters.get_mut(place) else { continue };
            guards::settle(cluster, &mut self.effects);
            let (standings, is_panic) = cluster.select(&self.effects.timers);
            if std::mem::replace(&mut cluster.is_panic, is_panic) != is_panic {
                self.effects.publish();
            }
            for (destination, standing) in cluster.destinations.iter_mut().zip(standings) {
                if (destination.is_available, destination.because) == (standing.is_available, standing.because) {
                    continue;
                }
                (destination.is_available, destination.because) = (standing.is_available, standing.because);
                cluster.is_picture_stale = true;
                self.effects.event(EventKind::Availability {
                    destination: destination.key.clone(),
                    available: standing.is_available,
                    because: standing.because,
                });
            }
        }
    }
}
