//! What a cluster remembers between ticks, so that a destination where nothing happens need not be looked at: who moved
//! last, and whom somebody doubts.

use std::collections::BTreeSet;

use model::id::Slot;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lookout {
    /// The two that moved last, the later one first: whoever asks for the others is maybe the first.
    movers: [Option<Mover>; 2],
    /// Whose share is not whole, or whom some policy suspects: looked at in each tick.
    pub(crate) doubted: BTreeSet<Slot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mover {
    slot: Slot,
    at: Timestamp,
}

impl Lookout {
    /// A byte or an end last came from this destination then.
    pub(crate) fn moved(&mut self, slot: Slot, at: Timestamp) {
        let new = Mover { slot, at };
        let is_later = |one: Option<Mover>| one.is_none_or(|one| one.slot == slot || at > one.at);
        let [first, second] = self.movers;
        if is_later(first) {
            let is_same = first.is_some_and(|one| one.slot == slot);
            self.movers = [Some(new), if is_same { second } else { first }];
        } else if is_later(second) {
            self.movers = [first, Some(new)];
        }
    }

    /// When any other than this one last moved.
    pub(crate) fn others_moved_at(&self, slot: Slot) -> Timestamp {
        let other = self.movers.iter().flatten().find(|mover| mover.slot != slot);
        other.map_or(Timestamp::ZERO, |mover| mover.at)
    }

    /// A configuration came: all are told anew.
    pub(crate) fn configured(&mut self, doubted: BTreeSet<Slot>) {
        *self = Self { movers: [None; 2], doubted };
    }

    /// Whether this one must be looked at in each tick.
    pub(crate) fn doubt(&mut self, slot: Slot, is_doubted: IsDoubted) {
        match is_doubted {
            IsDoubted::Yes => _ = self.doubted.insert(slot),
            IsDoubted::No => _ = self.doubted.remove(&slot),
        }
    }
}

/// Whether there is something about a destination that time alone may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IsDoubted {
    Yes,
    No,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_that_moved_among_the_others_is_known_whoever_asks() {
        let at = Timestamp::from_secs;
        let mut lookout = Lookout::default();
        assert_eq!(lookout.others_moved_at(Slot(0)), Timestamp::ZERO);
        let mut moves = [Timestamp::ZERO; 4];
        for (step, slot) in [0, 1, 1, 2, 0, 3, 3, 2, 1, 0, 0, 3].into_iter().enumerate() {
            moves[slot as usize] = at(step as u64 + 1);
            lookout.moved(Slot(slot), moves[slot as usize]);
            for asking in 0..4 {
                let others = moves.iter().enumerate().filter(|(one, _)| *one != asking as usize).map(|(_, at)| *at);
                assert_eq!(lookout.others_moved_at(Slot(asking)), others.max().unwrap_or_default(), "step {step}");
            }
        }
    }
}
