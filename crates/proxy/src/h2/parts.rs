//! Which parts of a connection's task are to be polled: the connection itself, and each of its streams.
//!
//! ```text
//!   socket, destination, timer ──wake──> Part ── queued once ──> Parts ──wake──> the task, unless it runs just now
//! ```
//! A task for each stream would cost an allocation of its exchange's size, and a turn of the runtime for each step. Here
//! one turn serves all that has happened meanwhile, and what it sends leaves together. Wakers have to be fit for any
//! thread, so what is a list in one thread stands behind a lock that is never waited for.

use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// The parts that were woken, of one task.
#[derive(Default)]
pub(super) struct Parts(Mutex<Woken>);

#[derive(Default)]
struct Woken {
    task: Option<Waker>,
    /// Each once, in the order they were woken.
    queue: Vec<usize>,
    is_running: bool,
}

/// One part.
pub(super) struct Part {
    of: Arc<Parts>,
    number: usize,
    is_queued: AtomicBool,
}

impl Parts {
    /// The task runs from here on: whoever is woken is seen by [`Parts::take`].
    pub(super) fn begin(&self, task: &Waker) {
        let mut woken = self.lock();
        woken.is_running = true;
        if !woken.task.as_ref().is_some_and(|known| known.will_wake(task)) {
            woken.task = Some(task.clone());
        }
    }

    /// The numbers of the parts that were woken, in exchange for an empty list.
    pub(super) fn take(&self, list: &mut Vec<usize>) {
        list.clear();
        mem::swap(&mut self.lock().queue, list);
    }

    /// Whether there is something to take.
    pub(super) fn is_any_woken(&self) -> bool {
        !self.lock().queue.is_empty()
    }

    /// The task runs no longer. What was woken since the last look wakes it.
    pub(super) fn end(&self) {
        let mut woken = self.lock();
        woken.is_running = false;
        if let (Some(task), false) = (&woken.task, woken.queue.is_empty()) {
            task.wake_by_ref();
        }
    }

    fn push(&self, number: usize) {
        let mut woken = self.lock();
        woken.queue.push(number);
        if let (Some(task), false, 1) = (&woken.task, woken.is_running, woken.queue.len()) {
            task.wake_by_ref();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Woken> {
        // A list of numbers is as good after a panic as before.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part {
    /// One of `parts`.
    pub(super) fn new(parts: &Arc<Parts>, number: usize) -> Arc<Self> {
        Arc::new(Self { of: Arc::clone(parts), number, is_queued: AtomicBool::new(false) })
    }

    /// It is polled now: from here on it can be woken again.
    pub(super) fn polled(&self) {
        self.is_queued.store(false, Ordering::Relaxed);
    }
}

impl Wake for Part {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::Relaxed) {
            self.of.push(self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_part_is_queued_once_and_wakes_the_task_once_while_it_does_not_run() {
        let task = Arc::new(Task::default());
        let waker = Waker::from(Arc::clone(&task));
        let woken = || task.0.load(Ordering::Relaxed);
        let parts = Arc::new(Parts::default());
        let (one, two) = (Part::new(&parts, 1), Part::new(&parts, 2));
        let mut list = Vec::new();
        parts.begin(&waker);
        one.wake_by_ref();
        parts.take(&mut list);
        assert_eq!((list.as_slice(), woken()), (&[1][..], 0));
        one.polled();
        parts.end();
        assert_eq!(woken(), 0);
        two.wake_by_ref();
        two.wake_by_ref();
        one.wake_by_ref();
        assert_eq!(woken(), 1);
        parts.begin(&waker);
        parts.take(&mut list);
        assert_eq!(list, [2, 1]);
        // Not seen any more in this turn: there is another one.
        two.polled();
        two.wake_by_ref();
        parts.end();
        assert_eq!(woken(), 2);
    }
}
