//! Who is connected to a worker, so that an end can be announced to those who wait.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

use tokio::sync::Notify;

/// The connections of one worker.
#[derive(Default)]
pub(crate) struct Presence {
    is_draining: Cell<bool>,
    has_dismissed_idle: Cell<bool>,
    /// Accepted while their listener was being closed; they may have no place yet.
    late: Cell<usize>,
    places: RefCell<Places>,
    empty: Notify,
}

/// Sixteen bytes for each connection; a place that was left is taken by the next one.
#[derive(Default)]
struct Places {
    all: Vec<Place>,
    /// The first of the free ones.
    free: Option<u32>,
    taken: usize,
}

enum Place {
    Taken(Waker),
    /// With the next free one.
    Free(Option<u32>),
}

/// A connection's entry; it is gone with this value.
pub(crate) struct Present<'a> {
    presence: &'a Presence,
    place: u32,
}

impl Presence {
    /// The connection of the running task begins.
    pub(crate) async fn enter(&self) -> Present<'_> {
        poll_fn(|context| {
            let place = self.places.borrow_mut().take(context.waker().clone());
            Poll::Ready(Present { presence: self, place })
        })
        .await
    }

    /// Whether connections end after their current exchange.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.get()
    }

    /// From now on every answer ends its connection.
    pub(crate) fn drain(&self) {
        self.is_draining.set(true);
        self.wake_all();
    }

    /// Whether connections without a request in hand end at once.
    pub(crate) fn has_dismissed_idle(&self) -> bool {
        self.has_dismissed_idle.get()
    }

    /// From now on no connection waits for another request.
    pub(crate) fn dismiss_idle(&self) {
        self.has_dismissed_idle.set(true);
        self.wake_all();
    }

    /// A connection's task is spawned and has not run yet: it counts already.
    pub(crate) fn begin_late(&self) {
        self.late.set(self.late.get() + 1);
    }

    /// That task has ended.
    pub(crate) fn end_late(&self) {
        self.late.set(self.late.get().saturating_sub(1));
        if self.is_empty() {
            self.empty.notify_waiters();
        }
    }

    fn is_empty(&self) -> bool {
        self.late.get() == 0 && self.places.borrow().taken == 0
    }

    /// Lets every connection look around: a listener may be gone.
    pub(crate) fn wake_all(&self) {
        let wakers: Vec<_> = self.places.borrow().wakers().cloned().collect();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends when no connection is left.
    pub(crate) async fn emptied(&self) {
        loop {
            let emptied = self.empty.notified();
            if self.is_empty() {
                return;
            }
            emptied.await;
        }
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        let mut places = self.presence.places.borrow_mut();
        // Dropping a waker may drop a task, which comes back here: only when the borrow is over.
        let _waker = places.leave(self.place);
        let is_empty = places.taken == 0;
        drop(places);
        if is_empty {
            self.presence.empty.notify_waiters();
        }
    }
}

impl Places {
    fn take(&mut self, waker: Waker) -> u32 {
        self.taken += 1;
        if let Some(number) = self.free
            && let Some(place) = self.all.get_mut(number as usize)
        {
            if let Place::Free(next) = *place {
                self.free = next;
            }
            *place = Place::Taken(waker);
            return number;
        }
        self.all.push(Place::Taken(waker));
        // There are fewer descriptors than u32::MAX.
        (self.all.len() - 1) as u32
    }

    fn leave(&mut self, number: u32) -> Option<Place> {
        self.taken -= 1;
        if self.taken == 0 {
            // What a burst has grown is not kept for ever.
            self.free = None;
            return std::mem::take(&mut self.all).into_iter().nth(number as usize);
        }
        let place = self.all.get_mut(number as usize)?;
        let left = std::mem::replace(place, Place::Free(self.free));
        self.free = Some(number);
        Some(left)
    }

    fn wakers(&self) -> impl Iterator<Item = &Waker> {
        self.all.iter().filter_map(|place| match place {
            Place::Taken(waker) => Some(waker),
            Place::Free(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn places_are_used_again_and_only_taken_ones_are_woken() {
        let presence = Presence::default();
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let enter = || {
            let place = presence.places.borrow_mut().take(waker.clone());
            Present { presence: &presence, place }
        };
        let (first, second, third) = (enter(), enter(), enter());
        drop(second);
        drop(first);
        let both = [enter(), enter()];
        assert_eq!(both.each_ref().map(|present| present.place), [0, 1]);
        presence.wake_all();
        assert_eq!(count.0.load(Ordering::Relaxed), 3);
        drop((both, third));
        presence.wake_all();
        assert_eq!(count.0.load(Ordering::Relaxed), 3);
        assert_eq!(presence.places.borrow().all.len(), 0);
        assert_eq!(enter().place, 0);
    }
}
