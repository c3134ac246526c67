//! Addresses that left their names, and may come back.
//!
//! ```text
//!   serving ──its name answers without it──> away ──10 min──> forgotten
//!      ^──────────its name answers with it─────┘
//! ```
//!
//! An address comes and goes with the answers of its name, whatever the server behind it does. One that was ejected
//! must not come back as a clean one because a name server left it out for a minute: so its values, counts and the end
//! of its ejection wait here, with its slot. What its last requests come to is not looked at any more.

use std::time::Duration;

use model::address::Located;
use model::cluster::Cluster;
use model::destination::Destination;
use model::health::Health;
use model::id::{DestinationKey, Slot};
use model::time::Timestamp;

use crate::cluster::ClusterState;
use crate::destination::DestinationState;
use crate::effects::Effects;
use crate::output::Output;
use crate::slots::{REST, Slots};
use crate::timers::TimerKey;

/// One that is away.
#[derive(Debug)]
pub(crate) struct Away {
    pub(crate) state: DestinationState,
    /// When its ejection ends.
    pub(crate) reactivation_at: Option<Timestamp>,
}

/// Whether a destination that is no longer configured was an address of a name that still is.
pub(crate) fn may_return(destination: &DestinationState, config: &Cluster) -> bool {
    let gone = &destination.config;
    matches!(gone.address.located, Located::At(_)) && config.destinations.iter().any(|one| is_same_name(gone, one))
}

fn is_same_name(one: &Destination, other: &Destination) -> bool {
    let (a, b) = (&one.address, &other.address);
    (one.stem(), &a.scheme, &a.host, a.port, &a.path) == (other.stem(), &b.scheme, &b.host, b.port, &b.path)
        && !b.located.is_as_written()
}

/// A destination goes away. Its probe in flight is given up already.
pub(crate) fn leave(cluster: &mut ClusterState, state: DestinationState, slots: &mut Slots, effects: &mut Effects) {
    let slot = state.slot;
    let reactivation_at = effects.timers.at(TimerKey::Reactivation(slot));
    for key in [
        TimerKey::Reactivation(slot),
        TimerKey::Passive(slot),
        TimerKey::HoldEnd(slot),
        TimerKey::ProbeOverdue(slot),
        TimerKey::Probe(slot),
    ] {
        effects.timers.cancel(key);
    }
    slots.leave(slot);
    effects.timers.set(TimerKey::AwayEnd(slot), effects.now + KEPT);
    cluster.away.push_back(Away { state, reactivation_at });
    while cluster.away.len() > MOST {
        if let Some(oldest) = cluster.away.pop_front() {
            forget(cluster, oldest, slots, effects);
        }
    }
}

/// The state of a destination that is back.
pub(crate) fn back(
    cluster: &mut ClusterState,
    destination: &Destination,
    slots: &mut Slots,
    effects: &mut Effects,
) -> Option<DestinationState> {
    let place = cluster.away.iter().position(|away| {
        away.state.config.address == destination.address && away.state.config.stem() == destination.stem()
    })?;
    let Away { mut state, reactivation_at } = cluster.away.remove(place)?;
    state.key = DestinationKey::new(cluster.config.id.clone(), destination.id.clone());
    // What the last selection saw of it is long ago.
    state.selected = None;
    slots.come_back(state.slot);
    effects.timers.cancel(TimerKey::AwayEnd(state.slot));
    if let Some(at) = reactivation_at.filter(|_| state.health.passive == Health::Unhealthy) {
        effects.timers.set(TimerKey::Reactivation(state.slot), at);
    }
    Some(state)
}

/// Forgets those whose names are no longer configured.
pub(crate) fn forget_strangers(cluster: &mut ClusterState, slots: &mut Slots, effects: &mut Effects) {
    let config = cluster.config.clone();
    for away in std::mem::take(&mut cluster.away) {
        if may_return(&away.state, &config) {
            cluster.away.push_back(away);
        } else {
            forget(cluster, away, slots, effects);
        }
    }
}

/// Forgets all of a cluster.
pub(crate) fn forget_all(cluster: &mut ClusterState, slots: &mut Slots, effects: &mut Effects) {
    for away in std::mem::take(&mut cluster.away) {
        forget(cluster, away, slots, effects);
    }
}

/// Forgets the one with this slot: its time is over.
pub(crate) fn forget_one(clusters: &mut [ClusterState], slot: Slot, slots: &mut Slots, effects: &mut Effects) {
    for cluster in clusters {
        if let Some(place) = cluster.away.iter().position(|away| away.state.slot == slot) {
            if let Some(away) = cluster.away.remove(place) {
                forget(cluster, away, slots, effects);
            }
            return;
        }
    }
}

fn forget(cluster: &mut ClusterState, away: Away, slots: &mut Slots, effects: &mut Effects) {
    let slot = away.state.slot;
    if let Some(policy) = &mut cluster.active_policy {
        policy.on_forgotten(slot);
    }
    effects.timers.cancel(TimerKey::AwayEnd(slot));
    slots.retire(slot);
    effects.timers.set(TimerKey::SlotRested(slot), effects.now + REST);
    effects.push(Output::FreeSlot(slot));
}

/// How long an address that left its name is remembered.
const KEPT: Duration = Duration::from_secs(600);
/// So many of one cluster at once; of more, those that left first are forgotten.
const MOST: usize = 256;
