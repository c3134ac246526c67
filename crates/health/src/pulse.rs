//! Pulses: what requests in flight say before they have come to anything.

use std::sync::Arc;
use std::time::Duration;

use model::balancing::LoadBalancing;
use model::guards::AnsweringDestination;
use model::health::Switch;
use model::id::Slot;
use model::passive::{PassiveCheck, PassivePolicy};
use model::time::Timestamp;

use crate::cluster::ClusterState;
use crate::core::Core;
use crate::doubt;
use crate::input::Pulse;
use crate::lookout::IsDoubted;
use crate::passive::Around;
use crate::slots::Place;

impl Core {
    /// Whose pulses some policy wants to see, in order. Another list after each configuration, the same one else.
    pub fn pulse_slots(&self) -> &Arc<[Slot]> {
        &self.pulse_slots
    }

    /// Whether a doubt stands that must be looked at in the next tick, whatever traffic does.
    pub fn is_doubting(&self) -> bool {
        self.clusters.iter().any(|cluster| !cluster.lookout.doubted.is_empty() && wants_pulses(cluster))
    }

    /// A configuration is in force.
    pub(crate) fn pulses_configured(&mut self) {
        self.note_pulse_slots();
        for cluster in &mut self.clusters {
            let doubted = cluster.destinations.iter().filter(|one| doubt::is_doubted(one) == IsDoubted::Yes);
            let doubted = doubted.map(|one| one.slot).collect();
            cluster.lookout.configured(doubted);
        }
    }

    pub(crate) fn note_pulse_slots(&mut self) {
        let wanting = self.clusters.iter().filter(|cluster| wants_pulses(cluster));
        let mut slots: Vec<Slot> = wanting.flat_map(|cluster| &cluster.destinations).map(|one| one.slot).collect();
        slots.sort();
        self.pulse_slots = slots.into();
    }

    /// One drain's pulses, all clusters. Of a destination that has none nothing has changed since its last one.
    pub(crate) fn pulses_taken(&mut self, pulses: Vec<Pulse>) {
        let placed = |pulse: Pulse| Some((self.slots.place(pulse.slot)?, pulse));
        let mut pulses: Vec<(Place, Pulse)> = pulses.into_iter().filter_map(placed).collect();
        pulses.sort_by_key(|(place, _)| (place.cluster, place.destination));
        for of_one in pulses.chunk_by(|(one, _), (other, _)| one.cluster == other.cluster) {
            let place = of_one.first().map(|(place, _)| place.cluster);
            let cluster = place.and_then(|place| self.clusters.get_mut(place));
            if let Some(cluster) = cluster.filter(|cluster| cluster.passive() == Switch::On) {
                show_pulses(cluster, of_one, self.effects.now);
            }
        }
        for (index, cluster) in self.clusters.iter_mut().enumerate() {
            if cluster.lookout.doubted.is_empty() || cluster.passive() == Switch::Off || !wants_pulses(cluster) {
                continue;
            }
            let places = cluster.lookout.doubted.iter().filter_map(|slot| self.slots.place(*slot));
            let mut places: Vec<usize> =
                places.filter(|place| place.cluster == index).map(|place| place.destination).collect();
            places.sort_unstable();
            for place in places {
                let before = cluster.destinations.get(place).map(|one| one.share);
                doubt::settle(cluster, place, &mut self.effects);
                if cluster.destinations.get(place).map(|one| one.share) != before {
                    cluster.is_picture_stale = true;
                }
            }
        }
    }
}

/// Shows the policies of one cluster its pulses, in the order of its destinations.
fn show_pulses(cluster: &mut ClusterState, pulses: &[(Place, Pulse)], now: Timestamp) {
    // One without a pulse has no mean: its last one said so.
    let mut means: Vec<Duration> = pulses.iter().filter_map(|(_, pulse)| pulse.mean).collect();
    means.sort_unstable();
    let median = (means.len() >= 3).then(|| means.get(means.len() / 2).copied()).flatten();
    let (slowest, probes) = (pulses.iter().filter_map(|(_, pulse)| pulse.slowest).max(), cluster.active());
    pulses.iter().for_each(|(_, pulse)| cluster.lookout.moved(pulse.slot, pulse.moved_at));
    for (place, pulse) in pulses {
        let around = Around { probes, moved_at: cluster.lookout.others_moved_at(pulse.slot), slowest, median };
        let Some(one) = cluster.destinations.get_mut(place.destination) else { continue };
        one.traffic.mean = pulse.mean;
        one.traffic.judges().for_each(|policy| policy.on_pulse(now, pulse, &around));
        if doubt::is_doubted(one) == IsDoubted::Yes {
            cluster.lookout.doubt(pulse.slot, IsDoubted::Yes);
        }
    }
}

fn wants_pulses(cluster: &ClusterState) -> bool {
    cluster.config.load_balancing == LoadBalancing::PeakEwma
        || cluster.config.health_check.guards.answering == AnsweringDestination::Stays
        || cluster.config.health_check.passive.as_ref().is_some_and(has_watcher)
}

fn has_watcher(check: &PassiveCheck) -> bool {
    check.policies.iter().chain(&check.shadow).any(|policy| match policy {
        PassivePolicy::Stall(_) | PassivePolicy::Latency(_) | PassivePolicy::Custom(_) => true,
        PassivePolicy::TransportFailureRate(_)
        | PassivePolicy::MaxFails(_)
        | PassivePolicy::ConsecutiveErrors(_)
        | PassivePolicy::FailureRate(_)
        | PassivePolicy::Outlier(_)
        | PassivePolicy::Burst(_)
        | PassivePolicy::ConnectFailures(_)
        | PassivePolicy::Overload(_) => false,
    })
}
