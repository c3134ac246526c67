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
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit, watch};

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
        Self { work, served, waiting: AtomicUsize::new(0) }
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
        let Some(_place) = self.place().await else { return Left::Full };
        let mut left = takes;
        loop {
            // Whoever switches is gone: the patient ends, and this connection with it.
            let Ok(_) = switches.wait_for(|switches| switches.traffic != Behaviour::Pause).await else {
                return Left::Lost;
            };
            let began = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(left) => return Left::Done,
                _ = switches.wait_for(|switches| switches.traffic == Behaviour::Pause) => {
                    left = left.saturating_sub(began.elapsed());
                }
            }
        }
    }

    /// A place among those that are served; `None`: too many wait.
    async fn place(&self) -> Option<SemaphorePermit<'_>> {
        if let Ok(place) = self.served.try_acquire() {
            return Some(place);
        }
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.work.backlog {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let _queued = Queued(&self.waiting);
        self.served.acquire().await.ok()
    }
}

/// Counts as waiting until it is dropped.
struct Queued<'a>(&'a AtomicUsize);

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
