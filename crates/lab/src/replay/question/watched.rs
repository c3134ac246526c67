//! A core that is looked at from outside: who is there, who takes traffic, and for how long each did not.

use std::collections::BTreeMap;
use std::time::Duration;

use health::Core;
use model::event::{Event, EventKind};
use model::health::{CheckKind, Health};
use model::id::{ClusterId, DestinationKey, Slot};

use super::Side;

/// A core, and what has become of its destinations.
pub(super) struct Watched {
    pub(super) core: Core,
    slots: BTreeMap<Slot, DestinationKey>,
    pub(super) destinations: BTreeMap<DestinationKey, Seen>,
}

pub(super) struct Seen {
    slot: Option<Slot>,
    pub(super) is_in: bool,
    pub(super) side: Side,
}

impl Watched {
    pub(super) fn new(core: Core) -> Self {
        Self { core, slots: BTreeMap::new(), destinations: BTreeMap::new() }
    }

    /// Who is there, under which slots. One that is gone is neither in nor out.
    pub(super) fn learn(&mut self) {
        self.slots.clear();
        self.destinations.values_mut().for_each(|one| (one.slot, one.is_in) = (None, true));
        for cluster in &self.core.view().clusters {
            for one in &cluster.destinations {
                let key = DestinationKey::new(ClusterId::clone(&cluster.id), one.id.clone());
                self.slots.insert(one.slot, key.clone());
                let seen =
                    self.destinations.entry(key).or_insert(Seen { slot: None, is_in: true, side: Side::default() });
                (seen.slot, seen.is_in) = (Some(one.slot), one.is_available);
            }
        }
    }

    pub(super) fn heard(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Availability { destination, available, .. } => {
                if let Some(seen) = self.destinations.get_mut(destination) {
                    seen.is_in = *available;
                }
            }
            EventKind::Transition(one) if one.check == CheckKind::Passive && one.to == Health::Unhealthy => {
                if let Some(seen) = self.destinations.get_mut(&one.destination) {
                    seen.side.ejections += 1;
                }
            }
            EventKind::Transition(_)
            | EventKind::Share { .. }
            | EventKind::Shadow { .. }
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
