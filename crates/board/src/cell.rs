//! The snapshot cell: one writer publishes, every worker reads without touching a shared count.
//!
//! Cloning an `Arc` writes to a count that all workers share, on each request. So a worker keeps the `Arc` in an `Rc` of
//! its own and clones that; a version number, read but never written by workers, tells when to fetch anew.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use crate::sync::{AtomicU64, Ordering, Swap};

/// The published snapshot and its version.
pub(crate) struct SnapshotCell<S> {
    current: Swap<S>,
    version: AtomicU64,
}

impl<S> SnapshotCell<S> {
    pub(crate) fn new(snapshot: Arc<S>) -> Self {
        Self { current: Swap::new(snapshot), version: AtomicU64::new(0) }
    }

    /// The snapshot goes first: who sees the new version must find it.
    pub(crate) fn publish(&self, snapshot: Arc<S>) {
        self.current.store(snapshot);
        self.version.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn load(&self) -> Arc<S> {
        self.current.load()
    }
}

/// A worker's own copy of the pointer.
pub(crate) struct Cached<S> {
    version: Cell<u64>,
    current: RefCell<Current<S>>,
}

impl<S> Cached<S> {
    pub(crate) fn new(cell: &SnapshotCell<S>) -> Self {
        let version = cell.version.load(Ordering::Acquire);
        Self { version: Cell::new(version), current: RefCell::new(Current(Rc::new(cell.load()))) }
    }

    /// The version is read before the snapshot: when both change in between, the newer snapshot is kept under the older
    /// number and fetched once more the next time.
    pub(crate) fn refresh(&self, cell: &SnapshotCell<S>) -> Current<S> {
        let version = cell.version.load(Ordering::Acquire);
        if version != self.version.get() {
            self.current.replace(Current(Rc::new(cell.load())));
            self.version.set(version);
        }
        self.current.borrow().clone()
    }
}

/// The snapshot that a request walks over. Clones stay on the worker's thread and cost no atomic operation.
#[expect(clippy::redundant_allocation, reason = "the outer count is the thread's own, the inner one is shared")]
pub struct Current<S>(Rc<Arc<S>>);

impl<S> Current<S> {
    /// The snapshot for other threads.
    pub fn to_arc(&self) -> Arc<S> {
        Arc::clone(&self.0)
    }
}

impl<S> Clone for Current<S> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<S> Deref for Current<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}
