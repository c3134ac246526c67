//! Slots: the dense numbers under which workers keep records of destinations.
//!
//! ```text
//!   free ──take──> living ──retire──> resting ──60 s and a word that it is quiet──> free
//!                   │   ^               ^
//!                 leave └─come_back─ away ──retire
//! ```
//!
//! Away is the slot of an address that left its name and may come back to it.
//!
//! A freed slot is not given away before 60 s are over AND the driver said that nobody uses it any more. Either alone
//! would be wrong: a worker may still hold an old snapshot or a long request, and a late report for a slot that was just
//! given away would be charged to somebody else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::id::Slot;
use serde::{Deserialize, Serialize};

/// How long a freed slot rests at least.
pub(crate) const REST: Duration = Duration::from_secs(60);

/// Where a living destination stands: indexes of its cluster and of itself in it. Rebuilt at each reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) cluster: usize,
    pub(crate) destination: usize,
}

/// All slots ever given.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Slots {
    uses: Vec<Use>,
    free: BTreeSet<usize>,
    n_living: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Use {
    Living(Place),
    Away,
    Resting { is_rested: bool, is_quiet: bool },
    Free,
}

impl Slots {
    /// The lowest free slot. Its place is not known until [`Self::settle`].
    pub(crate) fn take(&mut self) -> Slot {
        let index = self.free.pop_first().unwrap_or(self.uses.len());
        self.n_living += 1;
        match self.uses.get_mut(index) {
            Some(one) => *one = NOWHERE,
            None => self.uses.push(NOWHERE),
        }
        Slot(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// Its destination is gone.
    pub(crate) fn retire(&mut self, slot: Slot) {
        let Some(one) = self.uses.get_mut(slot.index()) else { return };
        match one {
            Use::Living(_) => self.n_living -= 1,
            Use::Away => {}
            Use::Resting { .. } | Use::Free => return,
        }
        *one = Use::Resting { is_rested: false, is_quiet: false };
    }

    /// Its destination is not among the living, and may come back.
    pub(crate) fn leave(&mut self, slot: Slot) {
        if let Some(one @ Use::Living(_)) = self.uses.get_mut(slot.index()) {
            *one = Use::Away;
            self.n_living -= 1;
        }
    }

    /// Its destination is back. Its place is not known until [`Self::settle`].
    pub(crate) fn come_back(&mut self, slot: Slot) {
        if let Some(one @ Use::Away) = self.uses.get_mut(slot.index()) {
            *one = NOWHERE;
            self.n_living += 1;
        }
    }

    /// Its time of rest is over.
    pub(crate) fn rested(&mut self, slot: Slot) {
        if let Some(Use::Resting { is_rested, .. }) = self.uses.get_mut(slot.index()) {
            *is_rested = true;
            self.free_if_ready(slot);
        }
    }

    /// Nobody uses it any more. False for a slot that does not rest.
    pub(crate) fn quiet(&mut self, slot: Slot) -> bool {
        let Some(Use::Resting { is_quiet, .. }) = self.uses.get_mut(slot.index()) else { return false };
        *is_quiet = true;
        self.free_if_ready(slot);
        true
    }

    fn free_if_ready(&mut self, slot: Slot) {
        let Some(one) = self.uses.get_mut(slot.index()) else { return };
        if *one == (Use::Resting { is_rested: true, is_quiet: true }) {
            *one = Use::Free;
            self.free.insert(slot.index());
        }
    }

    /// Says where the living ones stand now.
    pub(crate) fn settle(&mut self, places: &BTreeMap<Slot, Place>) {
        for (slot, place) in places {
            if let Some(one) = self.uses.get_mut(slot.index()) {
                *one = Use::Living(*place);
            }
        }
    }

    /// Where a living slot's destination stands.
    pub(crate) fn place(&self, slot: Slot) -> Option<Place> {
        match self.uses.get(slot.index())? {
            Use::Living(place) => Some(*place),
            Use::Away | Use::Resting { .. } | Use::Free => None,
        }
    }

    /// How many slots have a living destination.
    pub(crate) fn n_living(&self) -> usize {
        self.n_living
    }
}

/// Living, and not placed yet.
const NOWHERE: Use = Use::Living(Place { cluster: usize::MAX, destination: usize::MAX });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_is_away_belongs_to_nobody_else_until_it_is_retired() {
        let mut slots = Slots::default();
        let slot = slots.take();
        slots.leave(slot);
        assert_eq!((slots.place(slot), slots.n_living(), slots.take()), (None, 0, Slot(1)));
        slots.come_back(slot);
        assert_eq!(slots.n_living(), 2);
        slots.leave(slot);
        assert!(!slots.quiet(slot));
        slots.retire(slot);
        slots.come_back(slot);
        assert_eq!(slots.n_living(), 1);
        slots.rested(slot);
        assert!(slots.quiet(slot));
        assert_eq!(slots.take(), slot);
    }

    #[test]
    fn a_freed_slot_is_given_away_only_when_it_is_rested_and_quiet() {
        for quiet_first in [true, false] {
            let mut slots = Slots::default();
            assert_eq!([slots.take(), slots.take()], [Slot(0), Slot(1)]);
            slots.retire(Slot(0));
            assert_eq!(slots.take(), Slot(2));
            if quiet_first {
                assert!(slots.quiet(Slot(0)));
            } else {
                slots.rested(Slot(0));
            }
            assert_eq!(slots.take(), Slot(3));
            if quiet_first {
                slots.rested(Slot(0));
            } else {
                assert!(slots.quiet(Slot(0)));
            }
            assert_eq!(slots.take(), Slot(0));
            assert_eq!(slots.n_living(), 4);
        }
    }

    #[test]
    fn a_slot_that_lives_or_never_was_is_not_quiet() {
        let mut slots = Slots::default();
        let slot = slots.take();
        assert!(!slots.quiet(slot));
        assert!(!slots.quiet(Slot(9)));
        slots.rested(slot);
        assert_eq!(slots.n_living(), 1);
    }
}
