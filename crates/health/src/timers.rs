//! Every deadline of the core, in one table.

use std::collections::{BTreeMap, BTreeSet};

use model::id::Slot;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::cluster::ClusterNumber;

/// What a deadline is for. At most one deadline per key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum TimerKey {
    /// An ejection ends.
    Reactivation(Slot),
    /// Passive policies, a way back or a shadow want to be asked.
    Passive(Slot),
    /// An ejection that was held back may be looked at again.
    Guard(ClusterNumber),
    /// A destination has waited long enough for its first passed probe.
    HoldEnd(Slot),
    /// A probe was not answered by the driver although its timeout is long over.
    ProbeOverdue(Slot),
    /// The next probe of a destination starts.
    Probe(Slot),
    /// The next round of a cluster starts.
    Round(ClusterNumber),
    /// An address that left its name is forgotten.
    AwayEnd(Slot),
    /// A freed slot has rested long enough.
    SlotRested(Slot),
    /// Facts that nobody was told of yet are published.
    Facts,
}

/// The table: deadlines in order, equal ones in the order of their keys.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<(TimerKey, Timestamp)>", into = "Vec<(TimerKey, Timestamp)>")]
pub(crate) struct Timers {
    order: BTreeSet<(Timestamp, TimerKey)>,
    at: BTreeMap<TimerKey, Timestamp>,
}

impl Timers {
    /// Sets the key's deadline, in place of an earlier one.
    pub(crate) fn set(&mut self, key: TimerKey, at: Timestamp) {
        self.cancel(key);
        self.at.insert(key, at);
        self.order.insert((at, key));
    }

    /// Forgets the key's deadline.
    pub(crate) fn cancel(&mut self, key: TimerKey) {
        if let Some(at) = self.at.remove(&key) {
            self.order.remove(&(at, key));
        }
    }

    /// The key's deadline.
    pub(crate) fn at(&self, key: TimerKey) -> Option<Timestamp> {
        self.at.get(&key).copied()
    }

    /// Whether any destination waits for its first passed probe: mostly none does, and nobody has to be asked one by one.
    pub(crate) fn has_holds(&self) -> bool {
        self.at.range(TimerKey::HoldEnd(Slot(0))..=TimerKey::HoldEnd(Slot(u32::MAX))).next().is_some()
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.order.first().map(|(at, _)| *at).filter(|at| *at < Timestamp::MAX)
    }

    /// Takes out the earliest deadline that has come.
    pub(crate) fn pop_due(&mut self, now: Timestamp) -> Option<TimerKey> {
        let (at, key) = *self.order.first()?;
        if at > now || at == Timestamp::MAX {
            return None;
        }
        self.cancel(key);
        Some(key)
    }

    /// All keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = TimerKey> {
        self.at.keys().copied()
    }
}

impl From<Vec<(TimerKey, Timestamp)>> for Timers {
    fn from(set: Vec<(TimerKey, Timestamp)>) -> Self {
        let mut timers = Self::default();
        set.into_iter().for_each(|(key, at)| timers.set(key, at));
        timers
    }
}

impl From<Timers> for Vec<(TimerKey, Timestamp)> {
    fn from(timers: Timers) -> Self {
        timers.at.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_deadline_and_due_ones_leave_in_order() {
        let mut timers = Timers::default();
        let (a, b) = (TimerKey::Probe(Slot(1)), TimerKey::Probe(Slot(0)));
        timers.set(a, Timestamp::from_secs(5));
        timers.set(b, Timestamp::from_secs(3));
        timers.set(a, Timestamp::from_secs(3));
        assert_eq!(timers.next(), Some(Timestamp::from_secs(3)));
        assert_eq!(timers.pop_due(Timestamp::from_secs(2)), None);
        assert_eq!(timers.pop_due(Timestamp::from_secs(9)), Some(b));
        assert_eq!(timers.pop_due(Timestamp::from_secs(9)), Some(a));
        assert_eq!(timers.pop_due(Timestamp::from_secs(9)), None);
        assert!(!timers.has_holds());
        timers.set(TimerKey::HoldEnd(Slot(7)), Timestamp::MAX);
        assert!(timers.has_holds());
        timers.cancel(TimerKey::HoldEnd(Slot(7)));
        timers.set(a, Timestamp::MAX);
        assert_eq!((timers.next(), timers.pop_due(Timestamp::MAX)), (None, None));
        timers.cancel(a);
        assert_eq!(timers.keys().count(), 0);
    }
}
