//! The atomics and the swap cell, from `std` and arc-swap, or from loom when it checks the protocols.
//!
//! Nothing else in this crate names `std::sync::atomic`.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

#[cfg(not(loom))]
pub(crate) use swap::Swap;

#[cfg(loom)]
pub(crate) use modelled::Swap;

#[cfg(not(loom))]
mod swap {
    //! The real cell.

    use std::sync::Arc;

    use arc_swap::ArcSwap;

    /// One `Arc` that any thread may replace and any thread may read.
    pub(crate) struct Swap<S>(ArcSwap<S>);

    impl<S> Swap<S> {
        pub(crate) fn new(value: Arc<S>) -> Self {
            Self(ArcSwap::new(value))
        }

        pub(crate) fn store(&self, value: Arc<S>) {
            self.0.store(value);
        }

        pub(crate) fn load(&self) -> Arc<S> {
            self.0.load_full()
        }
    }
}

#[cfg(loom)]
mod modelled {
    //! Stands in for arc-swap, whose own atomics loom cannot see; what is checked is what this crate builds around it.
    //!
    //! Like arc-swap it orders memory by one Release store and one Acquire load and nothing more, so that a reader may
    //! find an old value. The lock is the standard library's: loom does not see it, hence it orders nothing.

    use std::sync::{Arc, Mutex, PoisonError};

    use super::{AtomicU64, Ordering};

    pub(crate) struct Swap<S> {
        values: Mutex<Vec<Arc<S>>>,
        latest: AtomicU64,
    }

    impl<S> Swap<S> {
        pub(crate) fn new(value: Arc<S>) -> Self {
            Self { values: Mutex::new(vec![value]), latest: AtomicU64::new(0) }
        }

        pub(crate) fn store(&self, value: Arc<S>) {
            let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
            let latest = values.len() as u64;
            values.push(value);
            drop(values);
            self.latest.store(latest, Ordering::Release);
        }

        pub(crate) fn load(&self) -> Arc<S> {
            let latest = self.latest.load(Ordering::Acquire) as usize;
            Arc::clone(&self.values.lock().unwrap_or_else(PoisonError::into_inner)[latest])
        }
    }
}
