//! What must hold after every input. Checked in builds with debug assertions.

use model::active::ProbeRound;
use model::health::{Health, Switch};

use crate::cluster::ClusterState;
use crate::core::Core;
use crate::slots::Place;
use crate::timers::TimerKey;

impl Core {
    /// Panics, in builds with debug assertions, when the state contradicts itself. Never in others.
    pub fn check_invariants(&self) {
        let mut n_in_flight = 0;
        for (place, cluster) in self.clusters.iter().enumerate() {
            self.check_cluster(cluster);
            for (index, destination) in cluster.destinations.iter().enumerate() {
                let here = Place { cluster: place, destination: index };
                debug_assert_eq!(self.slots.place(destination.slot), Some(here), "slot of {}", destination.key);
                n_in_flight += usize::from(destination.probes.in_flight.is_some());
            }
            debug_assert_eq!(cluster.config.destinations.len(), cluster.destinations.len());
            for away in &cluster.away {
                debug_assert!(self.slots.place(away.state.slot).is_none() && away.state.probes.in_flight.is_none());
                debug_assert!(self.effects.timers.at(TimerKey::AwayEnd(away.state.slot)).is_some());
            }
        }
        debug_assert_eq!(n_in_flight, self.effects.tickets.len(), "a ticket for each probe in flight and no other");
        debug_assert_eq!(self.slots.n_living(), self.clusters.iter().map(|c| c.destinations.len()).sum::<usize>());
        for key in self.effects.timers.keys() {
            let is_known = match key {
                TimerKey::Reactivation(slot)
                | TimerKey::Passive(slot)
                | TimerKey::HoldEnd(slot)
                | TimerKey::ProbeOverdue(slot)
                | TimerKey::Probe(slot) => self.slots.place(slot).is_some(),
                TimerKey::Round(number) | TimerKey::Guard(number) => {
                    self.clusters.iter().any(|cluster| cluster.number == number)
                }
                TimerKey::AwayEnd(slot) => {
                    self.clusters.iter().flat_map(|cluster| &cluster.away).any(|away| away.state.slot == slot)
                }
                TimerKey::SlotRested(_) | TimerKey::Facts => true,
            };
            debug_assert!(is_known, "{key:?} belongs to nobody");
        }
    }

    /// Panics, in builds with debug assertions, when a value that the view shows differs from one made from scratch.
    pub fn check_view(&mut self) {
        let view = self.view();
        for (cluster, shown) in self.clusters.iter().zip(&view.clusters) {
            let (standings, is_panic) = cluster.select(&self.effects.timers);
            let have: Vec<_> = shown.destinations.iter().map(|one| (one.is_available, one.because)).collect();
            let want: Vec<_> = standings.iter().map(|one| (one.is_available, one.because)).collect();
            debug_assert_eq!((have, shown.is_panic), (want, is_panic), "availability of {}", shown.id);
            for destination in &cluster.destinations {
                let status = destination.node_status(cluster.active(), cluster.passive(), self.process());
                debug_assert_eq!(destination.status, status, "status of {}", destination.key);
            }
            debug_assert_eq!(cluster.picture(&self.effects.timers), **shown);
        }
        debug_assert_eq!(view.clusters.len(), self.clusters.len());
    }

    fn check_cluster(&self, cluster: &ClusterState) {
        let timers = &self.effects.timers;
        let is_set = |key| timers.at(key).is_some();
        for destination in &cluster.destinations {
            let (slot, key) = (destination.slot, &destination.key);
            let in_flight = destination.probes.in_flight;
            debug_assert_eq!(in_flight.is_some(), is_set(TimerKey::ProbeOverdue(slot)), "{key}: overdue timer");
            debug_assert!(in_flight.is_none_or(|probe| self.effects.tickets.get(&probe.ticket) == Some(&slot)));
            match cluster.active_check().map(|check| check.round) {
                None => {
                    debug_assert_eq!(destination.health.active, Health::Unknown, "{key}: active check is off");
                    debug_assert!(in_flight.is_none() && !is_set(TimerKey::Probe(slot)), "{key}: probes are off");
                    debug_assert!(!is_set(TimerKey::HoldEnd(slot)), "{key}: held out although probes are off");
                }
                Some(ProbeRound::Destination) => {
                    let waits = is_set(TimerKey::Probe(slot));
                    debug_assert!(in_flight.is_some() != waits, "{key}: either a probe in flight or a timer");
                }
                Some(ProbeRound::Cluster) => debug_assert!(!is_set(TimerKey::Probe(slot)), "{key}: probed by rounds"),
            }
            if cluster.passive() == Switch::Off {
                debug_assert_eq!(destination.health.passive, Health::Unknown, "{key}: passive check is off");
                debug_assert!(!is_set(TimerKey::Reactivation(slot)), "{key}: passive check is off");
            }
            if destination.health.passive == Health::Unhealthy {
                debug_assert!(is_set(TimerKey::Reactivation(slot)), "{key}: an ejection without an end");
            }
        }
        if cluster.has_rounds() {
            let is_running = cluster.round.started_at.is_some();
            debug_assert!(is_running != is_set(TimerKey::Round(cluster.number)), "either a round or its timer");
            let n_in_flight = cluster.destinations.iter().filter(|one| one.probes.in_flight.is_some()).count();
            debug_assert_eq!(is_running, n_in_flight > 0, "a round runs while one of its probes does");
        } else {
            debug_assert!(!is_set(TimerKey::Round(cluster.number)));
        }
    }
}
