//! A worker's side of the board: the handle that its thread alone has.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use model::id::{Slot, WorkerId};
use model::outcome::{OutcomeClass, Try};
use model::time::Timestamp;

use crate::Board;
use crate::cell::{Cached, Current};
use crate::event::{Ended, Entry};
use crate::first_byte;
use crate::gate::{self, GateGuard};
use crate::shared::{Shared, WorkerState};
use crate::sync::Ordering;

/// One worker's handle. Clones are for the tasks of the same thread; it cannot leave it, which is what makes plain stores
/// enough.
pub struct Worker<S> {
    board: Arc<Board<S>>,
    owner: Rc<Owner>,
    cached: Rc<Cached<S>>,
}

impl<S> Worker<S> {
    pub(crate) fn claim(board: &Arc<Board<S>>, id: WorkerId) -> Option<Self> {
        let owner = Rc::new(Owner::claim(&board.shared, id)?);
        Some(Self { board: Arc::clone(board), owner, cached: Rc::new(Cached::new(&board.cell)) })
    }

    /// Its number.
    pub fn id(&self) -> WorkerId {
        self.owner.id
    }

    /// The board behind it.
    pub fn board(&self) -> &Arc<Board<S>> {
        &self.board
    }

    /// The published snapshot: one load of a number that rarely changes. A request takes it once and keeps it.
    pub fn snapshot(&self) -> Current<S> {
        self.cached.refresh(&self.board.cell)
    }

    /// An attempt begins: the destination was picked. In flight until the guard is dropped.
    pub fn start(&self, slot: Slot) -> InFlight {
        if let (Some(state), Some(record)) = (self.owner.state(), self.owner.record(slot)) {
            record.enter();
            state.stir(slot);
        }
        InFlight {
            owner: Rc::clone(&self.owner),
            slot,
            waits: Cell::new(Waits::ForDestination),
            for_client: Cell::new(Duration::ZERO),
        }
    }

    /// A first try ended well: a count, no event.
    pub fn succeeded(&self, slot: Slot) {
        self.count(slot, OutcomeClass::Ok, Try::First);
    }

    /// An attempt ended with `class`: a count, no event. For outcomes that no policy asks for.
    pub fn count(&self, slot: Slot, class: OutcomeClass, which: Try) {
        if let (Some(state), Some(record)) = (self.owner.state(), self.owner.record(slot)) {
            record.add(class, which);
            state.stir(slot);
        }
    }

    /// An attempt ended: a count, and an event for the core. For failures, for trials that passed, and for every outcome
    /// where a policy of the cluster wants each of them. A success that is told so stands in no sum.
    pub fn report(&self, slot: Slot, ended: Ended) {
        self.owner.report(slot, ended);
    }

    /// Bytes of a response came from the destination. Of a request in flight: else nobody may look.
    pub fn progressed(&self, slot: Slot, now: Timestamp) {
        if let Some(record) = self.owner.record(slot) {
            record.progress(now);
        }
    }

    /// The worker's event loop turns. Also lets go of a snapshot that was replaced, so that an idle worker keeps none.
    pub fn tick(&self, now: Timestamp) {
        if let Some(state) = self.owner.state() {
            state.tick(now);
        }
        self.snapshot();
    }

    /// Requests in flight at a destination, all workers together.
    pub fn in_flight(&self, slot: Slot) -> u32 {
        self.board.in_flight(slot)
    }

    /// Claims the destination's gate until `now + lease`; `None` while somebody holds it.
    pub fn claim_gate(&self, slot: Slot, now: Timestamp, lease: Duration) -> Option<GateGuard> {
        gate::claim(&self.owner.shared, slot, now, lease)
    }
}

impl<S> Clone for Worker<S> {
    fn clone(&self) -> Self {
        Self { board: Arc::clone(&self.board), owner: Rc::clone(&self.owner), cached: Rc::clone(&self.cached) }
    }
}

/// An attempt in flight; over when dropped. It says nothing of how the attempt ended.
#[must_use = "the attempt is over when this is dropped"]
pub struct InFlight {
    owner: Rc<Owner>,
    slot: Slot,
    waits: Cell<Waits>,
    /// How long it has waited for its client.
    for_client: Cell<Duration>,
}

/// For whom an attempt waits until its response's head has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    ForDestination,
    /// For the rest of the request, since then.
    ForClient(Timestamp),
    Over,
}

impl InFlight {
    /// The response's head came at `now`, `time` after the destination was picked.
    pub fn answered(&self, now: Timestamp, time: Duration) {
        let Some(record) = self.owner.record(self.slot) else { return };
        record.progress(now);
        let for_client = self.for_client.get();
        let for_client = match self.waits.replace(Waits::Over) {
            Waits::ForDestination => {
                record.wait_over();
                for_client
            }
            Waits::ForClient(since) => for_client + now.since(since),
            Waits::Over => return,
        };
        record.first_byte(first_byte::bucket(time.saturating_sub(for_client)));
    }

    /// It is for the client to go on with its request: what time passes is not the destination's.
    pub fn wait_for_client(&self, now: Timestamp) {
        let Some(record) = self.owner.record(self.slot) else { return };
        if self.waits.get() == Waits::ForDestination {
            self.waits.set(Waits::ForClient(now));
            record.wait_over();
        }
    }

    /// It is for the destination to go on again.
    pub fn wait_for_destination(&self, now: Timestamp) {
        let Some(record) = self.owner.record(self.slot) else { return };
        if let Waits::ForClient(since) = self.waits.get() {
            self.waits.set(Waits::ForDestination);
            self.for_client.set(self.for_client.get() + now.since(since));
            record.wait_begun();
        }
    }

    /// The same where nobody knows how long the destination took: this side has not looked all the time.
    pub fn answered_some_time(&self, now: Timestamp) {
        let Some(record) = self.owner.record(self.slot) else { return };
        record.progress(now);
        if self.waits.replace(Waits::Over) == Waits::ForDestination {
            record.wait_over();
        }
    }

    /// The destination's slot.
    pub fn slot(&self) -> Slot {
        self.slot
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(record) = self.owner.state().and_then(|state| state.records.get(self.slot.0)) {
            if self.waits.get() == Waits::ForDestination {
                record.wait_over();
            }
            record.leave();
        }
    }
}

/// The right to write one worker's state. `Rc` around it keeps it on one thread; the claim keeps it the only one.
struct Owner {
    shared: Arc<Shared>,
    id: WorkerId,
}

impl Owner {
    fn claim(shared: &Arc<Shared>, id: WorkerId) -> Option<Self> {
        let state = shared.workers.get(id.index())?;
        // Acquire: a later owner goes on where the former one left its counts.
        let was_claimed = state.claimed.swap(true, Ordering::Acquire);
        (!was_claimed).then(|| Self { shared: Arc::clone(shared), id })
    }

    fn state(&self) -> Option<&WorkerState> {
        self.shared.workers.get(self.id.index()).map(|state| &**state)
    }

    fn record(&self, slot: Slot) -> Option<&crate::record::Record> {
        self.state()?.record(slot)
    }

    fn report(&self, slot: Slot, ended: Ended) {
        let Some(state) = self.state() else { return };
        let Some(record) = state.record(slot) else { return };
        let (class, which) = (ended.outcome.class, ended.which);
        record.add_told(class, which);
        state.stir(slot);
        if state.ring.push(Entry { slot, ended, ok: record.silent_ok() }).is_err() {
            record.merge(class, which);
            state.overflow();
        }
        self.shared.wake.notify();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(state) = self.state() {
            state.claimed.store(false, Ordering::Release);
        }
    }
}
