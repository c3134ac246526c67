//! Requests that wait for a place at a destination: one line per cluster, shared by all workers.
//!
//! ```text
//!   Step::Wait ──> enter ──> InLine ──poll──> something may have changed ──> Input::Woken ──> pick
//!                    ^         │ dropped: served, answered, or its client is gone
//!                    │         v
//!                    └── Line (exchange::queue) <── Place dropped: one became free;  changed: a new snapshot
//! ```
//! The lock is held for a look at the line, never while anything waits. Only clusters that have a queue come here at all;
//! there, while nobody waits, a request that begins or ends costs one load. Those that wait are told one at a time: the
//! next one when the one before it has left. So nobody is overtaken, and one free place wakes one request.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use board::PlaceGuard;
use exchange::queue::{Line, Ticket};
use model::id::Slot;

/// All lines, by the number of the cluster's budget.
#[derive(Default)]
pub(crate) struct Queues {
    lines: Mutex<BTreeMap<u32, Line<Waiter>>>,
    /// How many wait in all lines together. The places' own fences order it: who gives one back and finds nobody here did
    /// that before the other one joined and looked once more.
    waiting: AtomicUsize,
}

/// How one that waits is told.
struct Waiter {
    waker: Option<Waker>,
    news: News,
}

/// Whether something may have changed since it last tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    Some,
    None,
}

impl Queues {
    /// Whether anybody waits for the cluster.
    pub(crate) fn is_queued(&self, cluster: u32) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0 && self.lines().contains_key(&cluster)
    }

    /// Joins the cluster's line, unless `most` wait there. `wants`: the only destination that helps.
    pub(crate) fn enter(self: &Arc<Self>, cluster: u32, most: u32, wants: Option<Slot>) -> Entered {
        let mut lines = self.lines();
        let line = lines.entry(cluster).or_default();
        let ticket = line.enter(most, wants, Waiter { waker: None, news: News::None });
        let Some(ticket) = ticket else {
            let is_free = !line.is_empty() && line.is_free_for(wants);
            if line.is_empty() {
                lines.remove(&cluster);
            }
            return if is_free { Entered::Beside } else { Entered::Full };
        };
        self.waiting.fetch_add(1, Ordering::SeqCst);
        // Nothing can have been missed by one that stands behind others who would have been told of it.
        if let Some((_, waiter)) = line.foremost().find(|(one, _)| *one == ticket) {
            waiter.news = News::Some;
        }
        drop(lines);
        Entered::InLine(InLine { queues: Arc::clone(self), cluster, ticket })
    }

    /// A place at the cluster's destination became free.
    fn freed(&self, cluster: u32, slot: Slot) {
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut lines = self.lines();
        let waker = lines.get_mut(&cluster).and_then(|line| line.first_for(slot)).and_then(Waiter::tell);
        drop(lines);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// A snapshot was published: other destinations may be available, or other limits hold. Sessions whose destination is
    /// not there any more have to learn that, wherever they stand.
    pub(crate) fn changed(&self) {
        if self.waiting.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut lines = self.lines();
        let mut wakers = Vec::new();
        for line in lines.values_mut() {
            wakers.extend(line.foremost().filter_map(|(_, waiter)| waiter.tell()));
            wakers.extend(line.bound().filter_map(Waiter::tell));
        }
        drop(lines);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn lines(&self) -> MutexGuard<'_, BTreeMap<u32, Line<Waiter>>> {
        // Nothing in a line's calls panics half-way through a change.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    /// Notes the news; gives what is to be woken once the lock is free.
    fn tell(&mut self) -> Option<Waker> {
        self.news = News::Some;
        self.waker.take()
    }
}

/// What joining a line comes to.
pub(crate) enum Entered {
    /// It stands there.
    InLine(InLine),
    /// As many wait as may, none of them for what this one wants: sessions, each bound to a destination. It may look once.
    Beside,
    /// As many wait as may.
    Full,
}

/// A request that stands in a line, until dropped.
pub(crate) struct InLine {
    queues: Arc<Queues>,
    cluster: u32,
    ticket: Ticket,
}

impl InLine {
    /// Ready when something may have changed since it was ready last.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<()> {
        let mut lines = self.queues.lines();
        // It stands there until it is dropped.
        let Some(waiter) = lines.get_mut(&self.cluster).and_then(|line| line.item(self.ticket)) else {
            return Poll::Ready(());
        };
        if waiter.news == News::Some {
            waiter.news = News::None;
            return Poll::Ready(());
        }
        match &mut waiter.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// What it waits for from here on.
    pub(crate) fn wants(&self, wants: Option<Slot>) {
        if let Some(line) = self.queues.lines().get_mut(&self.cluster) {
            line.wants(self.ticket, wants);
        }
    }

    /// Whether it is the first of those that take any destination.
    pub(crate) fn is_first(&self) -> bool {
        self.queues.lines().get(&self.cluster).is_some_and(|line| line.is_first(self.ticket))
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        let mut lines = self.queues.lines();
        let Some(line) = lines.get_mut(&self.cluster) else { return };
        line.leave(self.ticket);
        self.queues.waiting.fetch_sub(1, Ordering::SeqCst);
        // There may be more than one place free, or this one was told of one and has not taken it.
        let wakers: Vec<_> = line.foremost().filter_map(|(_, waiter)| waiter.tell()).collect();
        if line.is_empty() {
            lines.remove(&self.cluster);
        }
        drop(lines);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// One of a destination's places, in use. Given back when dropped, and told to who waits.
pub(crate) struct Place {
    /// Always there until it is dropped.
    guard: Option<PlaceGuard>,
    queues: Arc<Queues>,
    cluster: u32,
    slot: Slot,
}

impl Place {
    /// At this destination of this cluster.
    pub(crate) fn new(guard: PlaceGuard, queues: &Arc<Queues>, cluster: u32, slot: Slot) -> Self {
        Self { guard: Some(guard), queues: Arc::clone(queues), cluster, slot }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.guard.take());
        self.queues.freed(self.cluster, self.slot);
    }
}

#[cfg(test)]
mod tests;
