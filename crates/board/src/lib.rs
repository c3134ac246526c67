//! What workers and the health core share: the only memory that more than one thread of Lazaret touches.
//!
//! ```text
//!   control thread                     Board<S>                          worker threads
//!                    publish   ┌───────────────────────┐  snapshot
//!   monitor ──────────────────>│ cell: Arc<S>, version │──────────────> Worker::snapshot
//!                              ├───────────────────────┤
//!                      sums    │ records, per worker   │  start, succeeded, progressed, tick
//!   Reader  <──────────────────│  {in flight, counts}  │<────────────── Worker (owner-only writes)
//!                      drain   ├───────────────────────┤
//!   Reader  <──────────────────│ ring, per worker      │<────────────── Worker::report
//!        ^                     └───────────────────────┘                   │
//!        └────────── waker, on the first event since the last drain ───────┘
//!                    gates, budgets, places: one compare-exchange, from any thread
//! ```
//!
//! A request that succeeds costs plain stores into memory of its own worker, nothing else: no lock, no
//! read-modify-write, no line that another worker writes. A failure is an event in the worker's bounded ring; when the
//! ring is full, events are merged into counts per destination and class, and counted. So a storm costs what a busy
//! minute costs, and no failure is ever lost, only its details.
//!
//! The crate is generic over the snapshot `S` and knows nothing of requests. `tests/loom.rs` checks the protocols under
//! every interleaving: `RUSTFLAGS="--cfg loom" cargo test -p board --test loom --target-dir target/loom`.
#![forbid(unsafe_code)]

mod budget;
mod cell;
mod event;
pub mod first_byte;
mod gate;
mod place;
mod reader;
mod record;
mod ring;
mod shared;
mod sync;
mod table;
mod worker;

use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use model::id::{Slot, WorkerId};
use model::outcome::OutcomeClass;
use model::time::Timestamp;

pub use crate::cell::Current;
pub use crate::event::Ended;
pub use crate::gate::GateGuard;
pub use crate::place::PlaceGuard;
pub use crate::reader::{Drained, Reader, Successes};
pub use crate::worker::{InFlight, Worker};
pub use model::outcome::Trend;

use crate::cell::SnapshotCell;
use crate::shared::Shared;

/// The shared memory. Made once, before the workers start.
pub struct Board<S> {
    cell: SnapshotCell<S>,
    shared: Arc<Shared>,
    watcher: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl<S> Board<S> {
    /// Slots below this number have records, gates and budgets; anything said of others is ignored and counted.
    pub const SLOTS: u32 = table::ENTRIES;

    /// A board for `workers` threads, with `snapshot` published.
    pub fn new(workers: usize, snapshot: Arc<S>) -> Arc<Self> {
        Self::with_ring(workers, snapshot, RING_EVENTS)
    }

    /// The same with room for `events` in each worker's ring, rounded up to a power of two.
    pub fn with_ring(workers: usize, snapshot: Arc<S>, events: usize) -> Arc<Self> {
        Arc::new(Self {
            cell: SnapshotCell::new(snapshot),
            shared: Arc::new(Shared::new(workers, events)),
            watcher: OnceLock::new(),
        })
    }

    /// The handle of one worker, for the thread that calls. `None` when there is no such worker, or while its handle
    /// (or an [`InFlight`] of it) is alive elsewhere.
    pub fn worker(self: &Arc<Self>, id: WorkerId) -> Option<Worker<S>> {
        Worker::claim(self, id)
    }

    /// The one handle that takes events out; `None` from the second call on.
    pub fn reader(self: &Arc<Self>) -> Option<Reader> {
        Reader::claim(&self.shared)
    }

    /// Makes `snapshot` the one that the next request of every worker sees.
    pub fn publish(&self, snapshot: Arc<S>) {
        self.cell.publish(snapshot);
        if let Some(told) = self.watcher.get() {
            told();
        }
    }

    /// Called after each snapshot that is published, on the publisher's thread: it must be quick and must not block. The
    /// first watcher stays.
    pub fn watch(&self, watcher: Box<dyn Fn() + Send + Sync>) {
        let _ = self.watcher.set(watcher);
    }

    /// The published snapshot. For threads that carry no traffic; workers use [`Worker::snapshot`], which touches no
    /// shared count.
    pub fn load(&self) -> Arc<S> {
        self.cell.load()
    }

    /// Called on the first event since the last drain, on the worker's thread: it must be quick and must not block. The
    /// first waker stays.
    pub fn set_waker(&self, waker: Box<dyn Fn() + Send + Sync>) {
        self.shared.wake.set(waker);
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.shared.workers.len()
    }

    /// Requests in flight at a destination, all workers together. Exact when nothing moves, else between the values
    /// before and after.
    pub fn in_flight(&self, slot: Slot) -> u32 {
        self.shared.in_flight(slot)
    }

    /// Those of them that wait for their response head.
    pub fn waiting(&self, slot: Slot) -> u32 {
        self.shared.waiting(slot)
    }

    /// Response heads since the start by their time to first byte, all workers together; see [`first_byte`]. Wraps around:
    /// compare by difference.
    pub fn first_bytes(&self, slot: Slot) -> [u32; first_byte::BUCKETS] {
        self.shared.first_bytes(slot)
    }

    /// Attempts that ended at a destination with this class since the start, all workers together.
    pub fn count(&self, slot: Slot, class: OutcomeClass) -> u64 {
        self.shared.count(slot, class)
    }

    /// When a byte last came from the destination; [`Timestamp::ZERO`] when none did.
    pub fn last_progress(&self, slot: Slot) -> Timestamp {
        self.shared.last_progress(slot)
    }

    /// When a worker last ticked; `None` when there is no such worker.
    pub fn ticked_at(&self, worker: WorkerId) -> Option<Timestamp> {
        self.shared.workers.get(worker.index()).map(|state| state.ticked_at())
    }

    /// The age of the stalest worker's tick: above 2 s some worker hangs. Zero for a board without workers.
    pub fn tick_age(&self, now: Timestamp) -> Duration {
        self.shared.workers.iter().map(|state| now.since(state.ticked_at())).max().unwrap_or_default()
    }

    /// Events that found their ring full and were merged into counts, since the start.
    pub fn merged(&self) -> u64 {
        self.shared.workers.iter().map(|state| state.overflowed()).sum()
    }

    /// Calls about slots from [`Self::SLOTS`] up, since the start. Not zero means that a slot was made up.
    pub fn strays(&self) -> u64 {
        self.shared.workers.iter().map(|state| state.strays()).sum()
    }

    /// Takes `price` thousandths of a token from a budget; false, and nothing taken, when it holds less (or is so
    /// contended that the claim did not get through).
    pub fn withdraw(&self, budget: u32, price: u32) -> bool {
        self.shared.withdraw(budget, price)
    }

    /// Adds thousandths of a token to a budget, up to `cap` in all. For the core's tick: it derives the deposits of a
    /// tick from the sums, so that a request that succeeds pays nothing.
    pub fn deposit(&self, budget: u32, amount: u32, cap: u32) {
        self.shared.deposit(budget, amount, cap);
    }

    /// Replaces the balance of a budget by what `rest_of` makes of it: expiry and income of the time since the last tick.
    /// `rest_of` may be called more than once.
    pub fn settle(&self, budget: u32, rest_of: impl Fn(u32) -> u32) {
        self.shared.settle(budget, rest_of);
    }

    /// How a destination's recent attempts went, as the core last said.
    pub fn trend(&self, slot: Slot) -> Trend {
        self.shared.trend(slot)
    }

    /// The peak-sensitive mean of a destination's time to first byte, as the core last said; `None` when nothing is known.
    pub fn latency(&self, slot: Slot) -> Option<Duration> {
        self.shared.latency(slot)
    }

    /// For the core's tick: says how long a destination's response heads take of late.
    pub fn set_latency(&self, slot: Slot, latency: Option<Duration>) {
        self.shared.set_latency(slot, latency);
    }

    /// For the core's tick: says how a destination's recent attempts went.
    pub fn set_trend(&self, slot: Slot, trend: Trend) {
        self.shared.set_trend(slot, trend);
    }

    /// Thousandths of a token in a budget; 0 before the first deposit.
    pub fn balance(&self, budget: u32) -> u32 {
        self.shared.balance(budget)
    }

    /// Claims the destination's gate until `now + lease`; `None` while somebody holds it.
    pub fn claim(&self, slot: Slot, now: Timestamp, lease: Duration) -> Option<GateGuard> {
        gate::claim(&self.shared, slot, now, lease)
    }

    /// Whether somebody holds the destination's gate at `now`.
    pub fn is_gate_held(&self, slot: Slot, now: Timestamp) -> bool {
        gate::is_gate_held(&self.shared, slot, now)
    }

    /// Takes one of a destination's `most` places; `None` when all are taken.
    pub fn take_place(&self, slot: Slot, most: NonZeroU32) -> Option<PlaceGuard> {
        place::take(&self.shared, slot, most)
    }

    /// Whether a destination's `most` places are all taken at this moment.
    pub fn is_full(&self, slot: Slot, most: NonZeroU32) -> bool {
        place::is_full(&self.shared, slot, most)
    }

    /// Opens a gate for one more claim, whoever holds it: the core has decided on what came of the last one.
    pub fn reopen(&self, slot: Slot) {
        self.shared.reopen(slot);
    }
}

/// Room in a worker's ring: two seconds of 2 000 failures a second before details are merged, 128 KiB.
const RING_EVENTS: usize = 4096;

#[cfg(all(test, not(loom)))]
mod tests;
