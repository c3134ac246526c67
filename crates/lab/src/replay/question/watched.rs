//! A core that is looked at from outside: who is there, who takes traffic, and for how long each did not.

use std::collections::BTreeMap;
use std::time::Duration;

use health::Core;
use model::event::{Event, EventKind};
use model::health::{CheckKind, Health};
use model::id::{ClusterId, DestinationKey, Slot};
use model::ratio::Ratio;
use model::time::Timestamp;

use super::Side;
use super::film::{Lane, Serving};

/// A core, and what has become of its destinations.
pub(super) struct Watched {
    pub(super) core: Core,
    slots: BTreeMap<Slot, DestinationKey>,
    pub(super) destinations: BTreeMap<DestinationKey, Seen>,
}

pub(super) struct Seen {
    slot: Option<Slot>,
    pub(super) is_in: bool,
    /// The part of its weight that it gets while it is in.
    share: Ratio,
    pub(super) lane: Lane,
    pub(super) side: Side,
}

impl Seen {
    fn serving(&self) -> Serving {
        if !self.is_in {
            Serving::Out
        } else if self.share < Ratio::ONE {
            Serving::Part
        } else {
            Serving::In
        }
    }
}

impl Default for Seen {
    fn default() -> Self {
        Self { slot: None, is_in: true, share: Ratio::ONE, lane: Lane::default(), side: Side::default() }
    }
}

impl Watched {
    pub(super) fn new(core: Core) -> Self {
        Self { core, slots: BTreeMap::new(), destinations: BTreeMap::new() }
    }

    /// Who is there, under which slots. One that is gone is neither in nor out.
    pub(super) fn learn(&mut self, now: Timestamp) {
        self.slots.clear();
        self.destinations.values_mut().for_each(|one| (one.slot, one.is_in, one.share) = (None, true, Ratio::ONE));
        for cluster in &self.core.view().clusters {
            for one in &cluster.destinations {
                let key = DestinationKey::new(ClusterId::clone(&cluster.id), one.id.clone());
                self.slots.insert(one.slot, key.clone());
                let seen = self.destinations.entry(key).or_default();
                (seen.slot, seen.is_in, seen.share) = (Some(one.slot), one.is_available, one.share);
            }
        }
        for seen in self.destinations.values_mut() {
            seen.lane.turn(now, if seen.slot.is_some() { seen.serving() } else { Serving::Gone });
        }
    }

    pub(super) fn heard(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Availability { destination, available, .. } => {
                if let Some(seen) = self.destinations.get_mut(destination) {
                    seen.is_in = *available;
                    seen.lane.turn(event.at, seen.serving());
                }
            }
            EventKind::Transition(one) if one.check == CheckKind::Passive && one.to == Health::Unhealthy => {
                if let Some(seen) = self.destinations.get_mut(&one.destination) {
                    seen.side.ejections += 1;
                }
            }
            EventKind::Share { destination, share, .. } => {
                if let Some(seen) = self.destinations.get_mut(destination) {
                    seen.share = *share;
                    seen.lane.turn(event.at, seen.serving());
                }
            }
            EventKind::Transition(_)
            | EventKind::Shadow { .. }
            | EventKind::Kept { .. }
            | EventKind::Config { .. }
            | EventKind::Draining => {}
        }
    }

    pub(super) fn pass(&mut self, span: Duration) {
        self.destinations.values_mut().filter(|one| !one.is_in).for_each(|one| one.side.out += span);
    }

    pub(super) fn key(&self, slot: Slot) -> Option<&DestinationKey> {
        self.slots.get(&slot)
    }

    pub(super) fn slot(&self, key: &DestinationKey) -> Option<Slot> {
        self.destinations.get(key)?.slot
    }

    pub(super) fn is_in(&self, key: &DestinationKey) -> bool {
        self.destinations.get(key).is_some_and(|one| one.is_in)
    }
}
