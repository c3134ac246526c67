//! What is counted, and how a scrape is made of it.
//!
//! Workers count into shards of their own ([`WorkerMetrics`]), the control thread into [`Metrics`] itself; a scrape adds
//! them up. Everything that describes the present (health, availability, in flight) is read from the view that the
//! scrape is given and kept nowhere. A cluster or destination that is no longer configured therefore vanishes from the
//! next scrape, and what was counted for it is dropped, so that neither memory nor series grow with reloads. Where nobody
//! scrapes, [`Metrics::forget_gone`] is called now and then.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::event::{EventKind, Transition};
use model::health::{CheckKind, Health};
use model::id::{ClusterId, DestinationId, DestinationKey};
use model::outcome::{FailureKind, OutcomeClass};
use model::view::HealthView;

use crate::reopen::ReopenFile;

mod scrape;
mod worker;

use scrape::Known;
pub use scrape::{Format, ScrapeView};
pub use worker::{AttemptSums, OpenTunnel, Queued, RequestSums, WorkerMetrics};

/// Counters of the whole process. Shared by `Arc`.
#[derive(Default)]
pub struct Metrics {
    shards: Mutex<Vec<WorkerMetrics>>,
    health: Mutex<BTreeMap<DestinationKey, HealthCounts>>,
    logs: Mutex<BTreeMap<&'static str, ReopenFile>>,
    /// Of names, by result.
    lookups: Mutex<BTreeMap<&'static str, u64>>,
    applied: AtomicU64,
    refused: AtomicU64,
    is_stale: AtomicBool,
    journal_lost: AtomicU64,
    recorder_bytes: AtomicU64,
    recorder_millis: AtomicU64,
    recorder_folder: AtomicU64,
    recorder_lost: [AtomicU64; 2],
    certificates: CertificateCounts,
}

/// What became of files of listeners' TLS that changed.
#[derive(Default)]
struct CertificateCounts {
    taken: AtomicU64,
    refused: AtomicU64,
    is_stale: AtomicBool,
}

/// What the health core did to one destination.
#[derive(Default)]
struct HealthCounts {
    /// By result; `None` is a passed probe.
    probes: BTreeMap<Option<FailureKind>, u64>,
    transitions: BTreeMap<(CheckKind, Health), u64>,
}

/// Why a piece of the recording is not in its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecorderLoss {
    /// Too much waited for the disk.
    Queue,
    /// It could not be written, or the beginning of its segment could not.
    Disk,
}

/// Whether something in use is older than its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// It is.
    Yes,
    /// It is not.
    No,
}

impl Metrics {
    /// No counts yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// A shard for one more worker.
    pub fn worker(&self) -> WorkerMetrics {
        let shard = WorkerMetrics::default();
        lock(&self.shards).push(shard.clone());
        shard
    }

    /// A probe was judged; `None`: it passed.
    pub fn probe(&self, destination: &DestinationKey, failure: Option<FailureKind>) {
        self.count(destination, |counts| *counts.probes.entry(failure).or_default() += 1);
    }

    /// A lookup of a name ended.
    pub fn lookup(&self, result: &'static str) {
        *lock(&self.lookups).entry(result).or_default() += 1;
    }

    /// An event was appended to the journal: transitions and configurations are counted.
    pub fn event(&self, kind: &EventKind) {
        match kind {
            EventKind::Transition(Transition { destination, check, to, .. }) => {
                self.count(destination, |counts| *counts.transitions.entry((*check, *to)).or_default() += 1);
            }
            EventKind::Config { applied: true, .. } => {
                self.applied.fetch_add(1, Ordering::Relaxed);
                self.is_stale.store(false, Ordering::Relaxed);
            }
            EventKind::Config { applied: false, .. } => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                self.is_stale.store(true, Ordering::Relaxed);
            }
            EventKind::Availability { .. }
            | EventKind::Share { .. }
            | EventKind::Shadow { .. }
            | EventKind::Kept { .. }
            | EventKind::Draining => {}
        }
    }

    /// Certificates or keys of listeners have changed: so many listeners took them, so many could not; `stale` says
    /// whether any goes on with older ones for that.
    pub fn certificates(&self, taken: usize, refused: usize, stale: Stale) {
        self.certificates.taken.fetch_add(taken as u64, Ordering::Relaxed);
        self.certificates.refused.fetch_add(refused as u64, Ordering::Relaxed);
        self.certificates.is_stale.store(stale == Stale::Yes, Ordering::Relaxed);
    }

    /// The flight recorder holds so many bytes, which go back so far; nothing of either when it is off.
    pub fn recorder(&self, bytes: usize, span: Duration) {
        self.recorder_bytes.store(bytes as u64, Ordering::Relaxed);
        let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        self.recorder_millis.store(millis, Ordering::Relaxed);
    }

    /// So many bytes stand in the flight recorder's folder.
    pub fn recorder_folder(&self, bytes: u64) {
        self.recorder_folder.store(bytes, Ordering::Relaxed);
    }

    /// A piece of the recording did not get there.
    pub fn recorder_lost(&self, why: RecorderLoss) {
        let [queue, disk] = &self.recorder_lost;
        let count = match why {
            RecorderLoss::Queue => queue,
            RecorderLoss::Disk => disk,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Pieces of the recording that did not get into its folder, whatever the reason.
    pub fn recorder_losses(&self) -> u64 {
        self.recorder_lost.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// A reader of events had fallen behind.
    pub fn journal_lost(&self) {
        self.journal_lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Shows a log's failures under `name`.
    pub fn watch_log(&self, name: &'static str, file: ReopenFile) {
        lock(&self.logs).insert(name, file);
    }

    /// Whether the last configuration was refused, so that an older one runs.
    pub fn is_config_stale(&self) -> bool {
        self.is_stale.load(Ordering::Relaxed)
    }

    /// The text of a scrape.
    pub fn scrape(&self, view: &ScrapeView<'_>, format: Format) -> String {
        scrape::render(self, view, format)
    }

    /// Attempts at a destination that ended so far, by [`OutcomeClass::code`].
    pub fn outcomes(&self, cluster: &ClusterId, destination: &DestinationId) -> [u64; OutcomeClass::ALL.len()] {
        let mut sums = [0; OutcomeClass::ALL.len()];
        for shard in lock(&self.shards).iter() {
            let counts = shard.outcomes(cluster, destination);
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        sums
    }

    /// Drops what was counted for clusters and destinations that `health` does not have any more.
    pub fn forget_gone(&self, health: &HealthView) {
        let known = Known::of(health);
        for shard in lock(&self.shards).iter() {
            shard.retain(|cluster, destination| known.has(cluster, destination));
        }
        lock(&self.health).retain(|key, _| known.has(&key.cluster, Some(&key.destination)));
    }

    fn count(&self, destination: &DestinationKey, step: impl FnOnce(&mut HealthCounts)) {
        let mut health = lock(&self.health);
        match health.get_mut(destination) {
            Some(counts) => step(counts),
            None => step(health.entry(destination.clone()).or_default()),
        }
    }
}

/// Counts stay usable when some thread panicked while it held them: a sum that misses one step harms nobody.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
