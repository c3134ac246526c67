//! Places at a destination: for one that may have so many requests in flight and no more, all workers together.
//!
//! A count that every worker writes, so only destinations with a limit have it. A place is taken by a compare-exchange and
//! given back when its guard is dropped, so none is ever lost.
//!
//! Who finds all places taken joins a queue, fence, and looks once more; who gives back does that, fence, and looks at the
//! queue. The two fences are ordered one way or the other, so either the place is found or the one that waits is.

use std::num::NonZeroU32;
use std::sync::Arc;

use model::id::Slot;

use crate::shared::Shared;
use crate::sync::{AtomicU32, Ordering, fence};

/// One destination's places.
#[derive(Default)]
pub(crate) struct Places(AtomicU32);

impl Places {
    fn take(&self, most: NonZeroU32) -> bool {
        fence(Ordering::SeqCst);
        let mut taken = self.0.load(Ordering::Relaxed);
        // Each round that fails means that another one came through; nobody waits for long where few places are.
        while taken < most.get() {
            match self.0.compare_exchange(taken, taken + 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => taken = other,
            }
        }
        false
    }

    fn are_taken(&self, most: NonZeroU32) -> bool {
        self.0.load(Ordering::SeqCst) >= most.get()
    }

    fn give_back(&self) {
        // Each guard took one: there is one to give back.
        self.0.fetch_sub(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }
}

/// A place that is taken, until dropped.
#[must_use = "dropping the guard gives the place back"]
pub struct PlaceGuard {
    shared: Arc<Shared>,
    slot: Slot,
}

impl Drop for PlaceGuard {
    fn drop(&mut self) {
        if let Some(places) = self.shared.places.get(self.slot.0) {
            places.give_back();
        }
    }
}

pub(crate) fn take(shared: &Arc<Shared>, slot: Slot, most: NonZeroU32) -> Option<PlaceGuard> {
    shared.places.grow(slot.0)?.take(most).then(|| PlaceGuard { shared: Arc::clone(shared), slot })
}

pub(crate) fn is_full(shared: &Shared, slot: Slot, most: NonZeroU32) -> bool {
    shared.places.get(slot.0).is_some_and(|places| places.are_taken(most))
}

#[cfg(all(test, not(loom)))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn so_many_places_are_taken_and_each_is_free_again_when_its_guard_goes() {
        let shared = Arc::new(Shared::new(0, 1));
        let two = NonZeroU32::new(2).unwrap();
        let first = take(&shared, Slot(3), two).unwrap();
        let _second = take(&shared, Slot(3), two).unwrap();
        assert!(take(&shared, Slot(3), two).is_none() && is_full(&shared, Slot(3), two));
        assert!(!is_full(&shared, Slot(3), NonZeroU32::MAX) && !is_full(&shared, Slot(4), two));
        assert!(take(&shared, Slot(4), two).is_some(), "another destination");
        assert!(take(&shared, Slot(3), NonZeroU32::MAX).is_some(), "a reload may allow more");
        drop(first);
        assert!(take(&shared, Slot(3), two).is_some());
        assert!(take(&shared, Slot(3), NonZeroU32::MIN).is_none(), "or fewer");
    }

    #[test]
    fn threads_never_take_more_than_there_are() {
        let shared = Arc::new(Shared::new(0, 1));
        let three = NonZeroU32::new(3).unwrap();
        let most = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let guard = take(&shared, Slot(0), three);
                        let taken = shared.places.get(0).map_or(0, |places| places.0.load(Ordering::SeqCst));
                        most.fetch_max(taken, Ordering::Relaxed);
                        drop(guard);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 3);
        assert_eq!(shared.places.get(0).unwrap().0.load(Ordering::SeqCst), 0);
    }
}
