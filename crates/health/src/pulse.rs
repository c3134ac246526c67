//! Pulses: what requests in flight say before they have come to anything.

use std::collections::BTreeMap;
use std::time::Duration;

use model::balancing::LoadBalancing;
use model::health::Switch;
use model::id::Slot;
use model::passive::{PassiveCheck, PassivePolicy};
use model::time::Timestamp;

use crate::cluster::ClusterState;
use crate::core::Core;
use crate::doubt;
use crate::input::Pulse;
use crate::passive::Around;

impl Core {
    /// Whose pulses some policy wants to see, in order.
    pub fn pulse_slots(&self) -> Vec<Slot> {
        let wants = |cluster: &&ClusterState| {
            cluster.config.load_balancing == LoadBalancing::PeakEwma
                || cluster.config.health_check.passive.as_ref().is_some_and(wants_pulses)
        };
        let wanting = self.clusters.iter().filter(wants);
        let mut slots: Vec<Slot> = wanting.flat_map(|cluster| &cluster.destinations).map(|one| one.slot).collect();
        slots.sort();
        slots
    }

    /// One drain's pulses, all clusters.
    pub(crate) fn pulses_taken(&mut self, pulses: Vec<Pulse>) {
        let pulses: BTreeMap<Slot, Pulse> = pulses.into_iter().map(|pulse| (pulse.slot, pulse)).collect();
        for cluster in &mut self.clusters {
            if cluster.passive() == Switch::Off {
                continue;
            }
            let known = cluster.destinations.iter().filter_map(|one| pulses.get(&one.slot));
            let mut latencies: Vec<Duration> = known.clone().filter_map(|pulse| pulse.mean).collect();
            latencies.sort();
            let median = (latencies.len() >= 3).then(|| latencies.get(latencies.len() / 2).copied()).flatten();
            let [first, second] = latest(known);
            let mut shares = Vec::new();
            for (index, one) in cluster.destinations.iter_mut().enumerate() {
                let Some(pulse) = pulses.get(&one.slot) else { continue };
                let moved_at = if pulse.slot == first.1 { second.0 } else { first.0 };
                let around = Around { moved_at, median };
                for (_, policy) in &mut one.traffic.policies {
                    policy.on_pulse(self.effects.now, pulse, &around);
                }
                let doubts = || one.traffic.policies.iter().filter_map(|(_, policy)| policy.suspicion());
                let has_doubt = doubts().next().is_some() || one.share != model::ratio::Ratio::ONE;
                if has_doubt {
                    shares.push(index);
                }
            }
            for index in shares {
                let before = cluster.destinations.get(index).map(|one| one.share);
                doubt::settle(cluster, index, &mut self.effects);
                if cluster.destinations.get(index).map(|one| one.share) != before {
                    cluster.is_picture_stale = true;
                }
            }
        }
    }
}

fn wants_pulses(check: &PassiveCheck) -> bool {
    check.policies.iter().any(|policy| match policy {
        PassivePolicy::Stall(_) | PassivePolicy::Latency(_) | PassivePolicy::Custom(_) => true,
        PassivePolicy::TransportFailureRate(_)
        | PassivePolicy::MaxFails(_)
        | PassivePolicy::ConsecutiveErrors(_)
        | PassivePolicy::FailureRate(_)
        | PassivePolicy::Outlier(_)
        | PassivePolicy::Burst(_)
        | PassivePolicy::ConnectFailures(_) => false,
    })
}

/// The two that moved last.
fn latest<'a>(pulses: impl Iterator<Item = &'a Pulse>) -> [(Timestamp, Slot); 2] {
    let nobody = (Timestamp::ZERO, Slot(u32::MAX));
    pulses.fold([nobody; 2], |[first, second], pulse| {
        let one = (pulse.moved_at, pulse.slot);
        if one.0 > first.0 {
            [one, first]
        } else if one.0 > second.0 {
            [first, one]
        } else {
            [first, second]
        }
    })
}
