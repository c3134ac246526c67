//! When the slot of a destination that is gone may be given to another one.
//!
//! A request keeps the snapshot that it began with, so a slot is quiet when the last snapshot that names it is gone and
//! nothing is in flight there. What its last requests left on the board is taken out by the drain that follows
//! [`QuietSlots::take`], before the core hears that the slot is quiet.

use std::sync::{Arc, Weak};

use exchange::snapshot::Snapshot;
use model::id::{Revision, Slot};

/// Slots that wait to become quiet.
#[derive(Default)]
pub(crate) struct QuietSlots {
    /// Published and maybe still in use, oldest first; the last one is in force.
    published: Vec<(Revision, Weak<Snapshot>)>,
    /// With the last snapshot that may name them.
    waiting: Vec<(Slot, Revision)>,
}

impl QuietSlots {
    /// `snapshot` is published from here on.
    pub(crate) fn published(&mut self, snapshot: &Arc<Snapshot>) {
        self.published.push((snapshot.revision, Arc::downgrade(snapshot)));
    }

    /// The slot's destination is gone. Whatever is published next does not name it.
    pub(crate) fn free(&mut self, slot: Slot) {
        let last = self.published.last().map_or(Revision::default(), |(revision, _)| *revision);
        self.waiting.push((slot, last));
    }

    /// The slots that are quiet now; each is told once.
    pub(crate) fn take(&mut self, in_flight: impl Fn(Slot) -> u32) -> Vec<Slot> {
        self.published.retain(|(_, snapshot)| snapshot.strong_count() > 0);
        let oldest = self.published.first().map(|(revision, _)| *revision);
        let is_quiet =
            |(slot, last): &(Slot, Revision)| oldest.is_none_or(|oldest| oldest > *last) && in_flight(*slot) == 0;
        let (quiet, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting).into_iter().partition(is_quiet);
        self.waiting = waiting;
        quiet.into_iter().map(|(slot, _)| slot).collect()
    }
}
