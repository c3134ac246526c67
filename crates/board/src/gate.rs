//! Gates: what may happen once per process, such as the single trial request to a destination that was ejected.
//!
//! ```text
//!            claim: compare-exchange 0 (or a lease that is over) -> now + lease
//!   open ─────────────────────────────────────────────────────────────────────> held
//!    ^  <────────────── guard dropped, reopen, or the lease is over ─────────────┘
//!    │                                                                            │ keep
//!    └───────────────── reopen, or the lease is over ────────────────── kept <────┘
//! ```
//!
//! A gate is one word: 0 is open, anything else the end of the lease in nanoseconds. A holder that vanishes (a lost
//! worker) can so never wedge it. The holder gives back its own lease only: a guard dropped after its lease ran out does
//! not open the gate of the next holder. The same end twice is impossible, for a claim starts when the former lease is
//! over and lasts for some time.

use std::sync::Arc;
use std::time::Duration;

use model::id::Slot;
use model::time::Timestamp;

use crate::shared::Shared;
use crate::sync::{AtomicU64, Ordering};

/// One destination's gate.
#[derive(Default)]
pub(crate) struct Gate(AtomicU64);

impl Gate {
    fn claim(&self, now: Timestamp, lease: Duration) -> Option<u64> {
        let state = self.0.load(Ordering::Relaxed);
        if is_held(state, now) {
            return None;
        }
        let until = (now + lease.max(Duration::from_nanos(1))).as_nanos();
        self.0.compare_exchange(state, until, Ordering::AcqRel, Ordering::Relaxed).is_ok().then_some(until)
    }

    fn is_held(&self, now: Timestamp) -> bool {
        is_held(self.0.load(Ordering::Relaxed), now)
    }

    fn release(&self, until: u64) {
        // Failure means that the lease ran out and somebody else holds the gate, or that it was reopened.
        let _ = self.0.compare_exchange(until, OPEN, Ordering::AcqRel, Ordering::Relaxed);
    }

    pub(crate) fn reopen(&self) {
        self.0.store(OPEN, Ordering::Release);
    }
}

/// A claimed gate. Dropping it opens the gate again, unless it was kept.
#[must_use = "dropping the guard opens the gate"]
pub struct GateGuard {
    shared: Arc<Shared>,
    slot: Slot,
    until: u64,
}

impl GateGuard {
    /// Leaves the gate closed until the lease is over or the core reopens it: the attempt came to something, and the
    /// core decides who may go next. Without this a second request could slip in before the core has heard of the first.
    pub fn keep(mut self) {
        self.until = OPEN;
    }
}

impl Drop for GateGuard {
    fn drop(&mut self) {
        if self.until != OPEN
            && let Some(gate) = self.shared.gates.get(self.slot.0)
        {
            gate.release(self.until);
        }
    }
}

pub(crate) fn claim(shared: &Arc<Shared>, slot: Slot, now: Timestamp, lease: Duration) -> Option<GateGuard> {
    let until = shared.gates.grow(slot.0)?.claim(now, lease)?;
    Some(GateGuard { shared: Arc::clone(shared), slot, until })
}

pub(crate) fn is_gate_held(shared: &Shared, slot: Slot, now: Timestamp) -> bool {
    shared.gates.get(slot.0).is_some_and(|gate| gate.is_held(now))
}

fn is_held(state: u64, now: Timestamp) -> bool {
    state != OPEN && Timestamp::from_nanos(state) > now
}

const OPEN: u64 = 0;

#[cfg(all(test, not(loom)))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const LEASE: Duration = Duration::from_secs(5);

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_secs(seconds)
    }

    #[test]
    fn one_holds_a_gate_until_it_lets_go() {
        let shared = Arc::new(Shared::new(0, 1));
        let guard = claim(&shared, Slot(3), at(1), LEASE).unwrap();
        assert!(claim(&shared, Slot(3), at(1), LEASE).is_none());
        assert!(claim(&shared, Slot(4), at(1), LEASE).is_some());
        drop(guard);
        assert!(claim(&shared, Slot(3), at(1), LEASE).is_some());
    }

    #[test]
    fn a_lease_ends_by_itself_and_a_late_holder_opens_nothing() {
        let shared = Arc::new(Shared::new(0, 1));
        let late = claim(&shared, Slot(0), at(1), LEASE).unwrap();
        assert!(claim(&shared, Slot(0), at(5), LEASE).is_none());
        let is_held = |seconds| is_gate_held(&shared, Slot(0), at(seconds));
        assert!(is_held(5) && !is_held(6) && !is_gate_held(&shared, Slot(1), at(5)));
        let next = claim(&shared, Slot(0), at(6), LEASE).unwrap();
        drop(late);
        assert!(claim(&shared, Slot(0), at(7), LEASE).is_none());
        drop(next);
        assert!(claim(&shared, Slot(0), at(7), LEASE).is_some());
    }

    #[test]
    fn a_kept_gate_stays_closed_until_the_core_reopens_it() {
        let shared = Arc::new(Shared::new(0, 1));
        claim(&shared, Slot(0), at(1), LEASE).unwrap().keep();
        assert!(claim(&shared, Slot(0), at(2), LEASE).is_none());
        shared.reopen(Slot(0));
        claim(&shared, Slot(0), at(2), LEASE).unwrap().keep();
        assert!(claim(&shared, Slot(0), at(7), LEASE).is_some());
    }

    #[test]
    fn there_is_no_gate_beyond_the_last_slot() {
        let shared = Arc::new(Shared::new(0, 1));
        assert!(claim(&shared, Slot(u32::MAX), at(1), LEASE).is_none());
    }
}
