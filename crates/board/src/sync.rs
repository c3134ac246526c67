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

    use std::sync::Arc;

    use loom::sync::Mutex;

    pub(crate) struct Swap<S>(Mutex<Arc<S>>);

    impl<S> Swap<S> {
        pub(crate) fn new(value: Arc<S>) -> Self {
            Self(Mutex::new(value))
        }

        #[expect(clippy::expect_used, reason = "no code panics while it holds the lock")]
        pub(crate) fn store(&self, value: Arc<S>) {
            *self.0.lock().expect("not poisoned") = value;
        }

        #[expect(clippy::expect_used, reason = "no code panics while it holds the lock")]
        pub(crate) fn load(&self) -> Arc<S> {
            self.0.lock().expect("not poisoned").clone()
        }
    }
}
