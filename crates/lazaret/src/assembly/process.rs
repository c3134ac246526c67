//! What the control API sees of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::io::Io;
use ::io::real::Real;
use board::Board;
use control::{FailedUpgrades, Process, Published, Trouble, Vitals};
use exchange::snapshot::Snapshot;
use model::id::{Slot, WorkerId};
use model::time::Timestamp;

use crate::running::Failed;

/// A worker that has not ticked for so long is stuck.
const STUCK_AFTER: Duration = Duration::from_secs(2);

/// The running process.
pub(super) struct ThisProcess {
    pub(super) io: Real,
    pub(super) board: Arc<Board<Snapshot>>,
    pub(super) monitor: monitor::Handle,
    pub(super) faults: proxy::Faults,
    pub(super) is_draining: Arc<AtomicBool>,
    pub(super) failed_upgrades: Failed,
}

impl Process for ThisProcess {
    fn published(&self) -> Published {
        Published::from(&*self.board.load())
    }

    fn now(&self) -> Timestamp {
        self.io.now()
    }

    fn core_ran_at(&self) -> Option<Timestamp> {
        Some(self.monitor.turned_at())
    }

    fn in_flight(&self, slot: Slot) -> u32 {
        self.board.in_flight(slot)
    }

    fn failed_upgrades(&self) -> FailedUpgrades {
        self.failed_upgrades.upgrades()
    }

    fn vitals(&self) -> Vitals {
        let now = self.io.now();
        let workers = (0u32..).take(self.board.workers()).map(WorkerId);
        let stuck = workers.filter_map(|worker| {
            let age = now.since(self.board.ticked_at(worker)?);
            (age >= STUCK_AFTER).then_some(Trouble::WorkerStuck(worker, age))
        });
        let down = self.faults.listeners().into_iter().map(Trouble::ListenerDown);
        Vitals { is_draining: self.is_draining.load(Ordering::Relaxed), troubles: down.chain(stuck).collect() }
    }
}
