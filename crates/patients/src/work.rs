//! Serving as work: so many requests at a time, a queue before them, and for each request what it takes and what it comes to.
//!
//! ```text
//!   request ──> task ──┬── queue full ──> on_full at once
//!                      └──> [ . . . ] ──> ( . . ) takes ──> answer, reset or half a body
//! ```
//!
//! A pause shifts what is being served by its length. What hangs is lost: neither those that wait nor those that are being
//! served are ever answered.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::Instant;

use crate::behaviour::Behaviour;
use crate::patient::Switches;

/// What serving means for a patient that works.
#[derive(Clone)]
pub struct Work {
    /// Requests served at the same time; 1 or more.
    pub concurrency: usize,
    /// How many wait, first come, first served.
    pub backlog: usize,
    /// The status that one more gets.
    pub on_full: u16,
    /// What a request with this target takes and comes to; asked once for each as it arrives, whatever the patient does
    /// with it then.
    pub task: Arc<dyn Fn(&str) -> Task + Send + Sync>,
}

/// One request's part of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// How long it is served.
    pub takes: Duration,
    /// What it comes to.
    pub end: End,
}

/// What served work comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// An answer with this status.
    Answer(u16),
    /// The connection is reset before a response.
    Reset,
    /// A head that announces more than comes, then a reset.
    Cut,
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { concurrency, backlog, on_full, task: _ } = self;
        write!(f, "Work {{ concurrency: {concurrency}, backlog: {backlog}, on_full: {on_full} }}")
    }
}

/// The places of a patient that works.
pub(crate) struct Places {
    pub(crate) work: Work,
    served: Semaphore,
    waiting: AtomicUsize,
    /// When those places that are free should have become so. Whoever waited for one begins then and not when it hears of it: else
    /// each turn of a full patient would last a tick of the timer longer than it should, and it would serve less.
    freed: Mutex<Vec<Instant>>,
}

/// How a request left its place.
pub(crate) enum Left {
    /// Served.
    Done,
    /// There was no place.
    Full,
    /// It is never answered.
    Lost,
}

impl Places {
    pub(crate) fn new(work: Work) -> Self {
        let served = Semaphore::new(work.concurrency.clamp(1, Semaphore::MAX_PERMITS));
        Self { work, served, waiting: AtomicUsize::new(0), freed: Mutex::default() }
    }

    /// Waits for a place and serves there.
    pub(crate) async fn serve(&self, takes: Duration, switches: &mut watch::Receiver<Switches>) -> Left {
        let mut hanging = switches.clone();
        tokio::select! {
            left = self.work_off(takes, switches) => left,
            _ = hanging.wait_for(|switches| switches.traffic == Behaviour::Hang) => Left::Lost,
        }
    }

    async fn work_off(&self, takes: Duration, switches: &mut watch::Receiver<Switches>) -> Left {
        let Some((_place, mut began)) = self.place().await else { return Left::Full };
        let mut left = takes;
        loop {
            if switches.borrow_and_update().traffic == Behaviour::Pause {
                // Whoever switches is gone: the patient ends, and this connection with it.
                let Ok(_) = switches.wait_for(|switches| switches.traffic != Behaviour::Pause).await else {
                    return Left::Lost;
                };
                began = Instant::now();
            }
            let due = began + left;
            tokio::select! {
                () = tokio::time::sleep_until(due) => {
                    self.freed().push(due);
                    return Left::Done;
                }
                _ = switches.wait_for(|switches| switches.traffic == Behaviour::Pause) => {
                    left = left.saturating_sub(began.elapsed());
                }
            }
        }
    }

    /// A place among those that are served, and since when it is served there; `None`: too many wait.
    async fn place(&self) -> Option<(SemaphorePermit<'_>, Instant)> {
        let came = Instant::now();
        if let Ok(place) = self.served.try_acquire() {
            self.freed().pop();
            return Some((place, came));
        }
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.work.backlog {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let _queued = Queued(&self.waiting);
        let place = self.served.acquire().await.ok()?;
        let began = self.freed().pop().map_or_else(Instant::now, |freed| freed.max(came));
        Some((place, began))
    }

    fn freed(&self) -> MutexGuard<'_, Vec<Instant>> {
        self.freed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts as waiting until it is dropped.
struct Queued<'a>(&'a AtomicUsize);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// What so many requests of 1.5 ms take in two places, by the runtime's own clock.
    #[tokio::test(start_paused = true)]
    async fn those_that_wait_are_served_without_the_timers_ticks_between_them() {
        let task = Arc::new(|_: &str| Task { takes: Duration::ZERO, end: End::Answer(200) });
        let places = Arc::new(Places::new(Work { concurrency: 2, backlog: 1000, on_full: 503, task }));
        let (_switch, switches) = watch::channel(Switches::default());
        let began = Instant::now();
        let serve = |_| {
            let (places, mut switches) = (Arc::clone(&places), switches.clone());
            tokio::spawn(async move { places.serve(Duration::from_micros(1500), &mut switches).await })
        };
        let all: Vec<_> = (0..200).map(serve).collect();
        for one in all {
            assert!(matches!(one.await.unwrap(), Left::Done));
        }
        // A hundred in each place, and the last one's tick.
        let took = began.elapsed();
        assert!((Duration::from_millis(150)..Duration::from_millis(153)).contains(&took), "{took:?}");
    }
}
