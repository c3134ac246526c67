//! Which listeners do not accept, for whoever reports on the process.
//!
//! ```text
//!   listening failed ────────────────────────────┐
//!   accepts fail ── 2 s ─────────────────────────┴─> faulty ── one accepted, nobody for 2 s, or closed ──> well
//! ```
//! Policies: the signal is an accept that fails; it trips after 2 s of nothing but failures, since shorter spells pass
//! by themselves; there is no statistic; a listener is well until shown otherwise. Each worker has a socket of its own,
//! and clients of one that does not accept wait in vain, so one worker's trouble is the listener's. What is well costs
//! nothing: only those in trouble touch the shared set.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::id::ListenerId;
use model::time::Timestamp;

/// The listeners that should accept and do not. Copies are the same set.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// How many workers cannot, by listener; never 0.
    listeners: Arc<Mutex<BTreeMap<ListenerId, usize>>>,
}

impl Faults {
    /// Those that do not accept now, in order.
    pub fn listeners(&self) -> Vec<ListenerId> {
        self.lock().keys().cloned().collect()
    }

    /// One worker's socket of this listener does not accept, until the returned value is dropped.
    pub(crate) fn enter(&self, listener: &ListenerId) -> Fault {
        *self.lock().entry(listener.clone()).or_default() += 1;
        Fault { faults: self.clone(), listener: listener.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ListenerId, usize>> {
        // A count is changed whole or not at all.
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A socket that does not accept. Dropped with the task that accepts, too, so a listener that was closed is no fault.
#[derive(Debug)]
pub(crate) struct Fault {
    faults: Faults,
    listener: ListenerId,
}

impl Drop for Fault {
    fn drop(&mut self) {
        let mut listeners = self.faults.lock();
        if let Some(count) = listeners.get_mut(&self.listener) {
            *count -= 1;
            if *count == 0 {
                listeners.remove(&self.listener);
            }
        }
    }
}

/// A spell of failed accepts on one socket.
#[derive(Debug)]
pub(crate) struct Spell {
    since: Timestamp,
    fault: Option<Fault>,
}

impl Spell {
    /// The first failure, at `since`.
    pub(crate) fn new(since: Timestamp) -> Self {
        Self { since, fault: None }
    }

    /// Another failure at `now`; the listener may have got another name meanwhile.
    pub(crate) fn goes_on(&mut self, now: Timestamp, faults: &Faults, listener: &ListenerId) {
        let is_known = self.fault.as_ref().is_some_and(|fault| fault.listener == *listener);
        if now.since(self.since) >= TOLERATED && !is_known {
            self.fault = Some(faults.enter(listener));
        }
    }
}

/// Spells shorter than this are nobody's concern.
pub(crate) const TOLERATED: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::ZERO + Duration::from_millis(millis)
    }

    fn web() -> ListenerId {
        ListenerId::from("web")
    }

    #[test]
    fn a_listener_is_faulty_after_two_seconds_of_failures_and_well_when_they_end() {
        let faults = Faults::default();
        let mut spell = Spell::new(at(1000));
        spell.goes_on(at(2999), &faults, &web());
        assert_eq!(faults.listeners(), []);
        spell.goes_on(at(3000), &faults, &web());
        spell.goes_on(at(3100), &faults, &web());
        assert_eq!(faults.listeners(), [web()]);
        drop(spell);
        assert_eq!(faults.listeners(), []);
    }

    #[test]
    fn a_listener_stays_faulty_until_all_its_workers_accept() {
        let faults = Faults::default();
        let (first, second) = (faults.enter(&web()), faults.enter(&web()));
        drop(first);
        assert_eq!(faults.listeners(), [web()]);
        drop(second);
        assert_eq!(faults.listeners(), []);
    }

    #[test]
    fn a_faulty_listener_goes_by_its_new_name() {
        let faults = Faults::default();
        let mut spell = Spell::new(at(0));
        spell.goes_on(at(2000), &faults, &web());
        spell.goes_on(at(2100), &faults, &ListenerId::from("shop"));
        assert_eq!(faults.listeners(), [ListenerId::from("shop")]);
    }
}
