//! Which destination of the new configuration goes on with which state of the old one.
//!
//! ```text
//!   same id, same address ───────────────> goes on
//!   of a name: same address, other id ───> goes on under the new id
//!   same id, other address ──────────────> a new one; the old state is away (of a name) or forgotten
//!   left ────────────────────────────────> away (of a name) or forgotten
//!   came ────────────────────────────────> back from being away, or new
//! ```

use std::collections::{BTreeMap, BTreeSet};

use model::address::Url;
use model::cluster::Cluster;
use model::destination::Destination;
use model::event::Cause;
use model::health::CheckKind;
use model::id::{ClusterId, DestinationId, DestinationKey};

use super::Reload;
use crate::away;
use crate::cluster::ClusterState;
use crate::destination::DestinationState;
use crate::judge::forget;
use crate::output::Output;
use crate::slots::REST;
use crate::timers::TimerKey;

/// Indexes of destinations whose state is not simply the one from before.
#[derive(Default)]
pub(super) struct Matched {
    /// Unknown, nothing seen yet.
    pub(super) new: BTreeSet<usize>,
    /// Back from being away.
    pub(super) returned: BTreeSet<usize>,
}

impl Reload<'_> {
    /// Puts the destinations into the new order, with the state of those that stay.
    pub(super) fn match_destinations(&mut self, cluster: &mut ClusterState) -> Matched {
        let config = cluster.config.clone();
        let mut old: BTreeMap<DestinationId, DestinationState> = BTreeMap::new();
        let mut gone = Vec::new();
        for destination in std::mem::take(&mut cluster.destinations) {
            gone.extend(old.insert(destination.key.destination.clone(), destination));
        }
        let mut states = self.kept(&mut old, &config);
        let mut matched = Matched::default();
        for (index, destination) in config.destinations.iter().enumerate() {
            let state = match states.remove(&index) {
                Some(kept) => kept,
                None => {
                    let moved = old.remove(&destination.id).and_then(|moved| self.send_away(cluster, moved));
                    if let (Some(policy), Some(moved)) = (&mut cluster.active_policy, &moved) {
                        policy.on_forgotten(moved.slot);
                    }
                    match away::back(cluster, destination, self.slots, self.effects) {
                        Some(state) => {
                            gone.extend(moved);
                            matched.returned.insert(index);
                            state
                        }
                        None => {
                            matched.new.insert(index);
                            self.succeed(&config.id, destination, moved)
                        }
                    }
                }
            };
            cluster.destinations.push(state);
        }
        for destination in gone.into_iter().chain(old.into_values()) {
            if let Some(destination) = self.send_away(cluster, destination) {
                self.remove(cluster, destination);
            }
        }
        away::forget_strangers(cluster, self.slots, self.effects);
        matched
    }

    /// Takes out of `old` those that stay, by their new index: first by id, then, of names, by address.
    fn kept(
        &self,
        old: &mut BTreeMap<DestinationId, DestinationState>,
        config: &Cluster,
    ) -> BTreeMap<usize, DestinationState> {
        let mut kept = BTreeMap::new();
        for (index, destination) in config.destinations.iter().enumerate() {
            if old.get(&destination.id).is_some_and(|same| same.config.address == destination.address) {
                kept.extend(old.remove(&destination.id).map(|same| (index, same)));
            }
        }
        let located = old.iter().filter(|(_, state)| !state.config.address.located.is_as_written());
        let mut by_address: BTreeMap<(String, Url), DestinationId> = located
            .map(|(id, state)| ((state.config.stem().to_owned(), state.config.address.clone()), id.clone()))
            .collect();
        for (index, destination) in config.destinations.iter().enumerate() {
            if by_address.is_empty() || kept.contains_key(&index) {
                continue;
            }
            let place = (destination.stem().to_owned(), destination.address.clone());
            if let Some(mut same) = by_address.remove(&place).and_then(|id| old.remove(&id)) {
                same.key = DestinationKey::new(config.id.clone(), destination.id.clone());
                kept.insert(index, same);
            }
        }
        kept
    }

    /// Puts a destination that left its name among those away; gives back one that did not.
    fn send_away(&mut self, cluster: &mut ClusterState, mut destination: DestinationState) -> Option<DestinationState> {
        let is_away = away::may_return(&destination, &cluster.config);
        if !is_away {
            return Some(destination);
        }
        self.drop_probe(&mut destination);
        away::leave(cluster, destination, self.slots, self.effects);
        None
    }

    /// A new destination; `before` stood under its id with another address.
    fn succeed(
        &mut self,
        cluster: &ClusterId,
        config: &Destination,
        before: Option<DestinationState>,
    ) -> DestinationState {
        let key = DestinationKey::new(cluster.clone(), config.id.clone());
        let random = self.effects.random(&key.to_string());
        let mut state = DestinationState::new(key, self.slots.take(), config.clone(), random);
        if let Some(mut before) = before {
            forget(&mut before, CheckKind::Active, Cause::AddressChanged, self.effects);
            forget(&mut before, CheckKind::Passive, Cause::AddressChanged, self.effects);
            state.changed_at = before.changed_at;
            state.last_transition = before.last_transition.clone();
            state.is_available = before.is_available;
            state.because = before.because;
            self.drop_probe(&mut before);
            self.retire(&before);
        }
        state
    }

    fn remove(&mut self, cluster: &mut ClusterState, mut destination: DestinationState) {
        if let Some(policy) = &mut cluster.active_policy {
            policy.on_forgotten(destination.slot);
        }
        self.drop_probe(&mut destination);
        self.retire(&destination);
    }

    fn drop_probe(&mut self, destination: &mut DestinationState) {
        if let Some(probe) = destination.probes.in_flight.take() {
            self.effects.tickets.remove(&probe.ticket);
            self.effects.push(Output::CancelProbe(probe.ticket));
        }
    }

    pub(super) fn retire(&mut self, destination: &DestinationState) {
        let slot = destination.slot;
        for key in [
            TimerKey::Reactivation(slot),
            TimerKey::Passive(slot),
            TimerKey::HoldEnd(slot),
            TimerKey::ProbeOverdue(slot),
            TimerKey::Probe(slot),
        ] {
            self.effects.timers.cancel(key);
        }
        self.slots.retire(slot);
        self.effects.timers.set(TimerKey::SlotRested(slot), self.effects.now + REST);
        self.effects.push(Output::FreeSlot(slot));
    }
}
