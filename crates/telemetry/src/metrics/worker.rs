//! One worker's counters. The lock is the worker's own: it waits only while a scrape copies the sums.
//!
//! What every request counts is looked up once and kept ([`AttemptSums`], [`RequestSums`]): then counting is one plain
//! store into memory that nobody else writes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use model::id::{ClusterId, DestinationId, ListenerId};
use model::outcome::{FailureKind, OutcomeClass};

use super::lock;

/// Counters of one worker; clones count into the same.
#[derive(Clone, Default)]
pub struct WorkerMetrics(Arc<Mutex<WorkerCounts>>);

/// All sums of a worker.
#[derive(Default)]
struct WorkerCounts {
    clusters: BTreeMap<ClusterId, ClusterCounts>,
    /// Of exchanges that never got as far as a cluster.
    unplaced: ClusterCounts,
    listeners: BTreeMap<ListenerId, ListenerCounts>,
    present: Present,
}

/// What is there now or belongs to no cluster.
#[derive(Clone, Default)]
pub(super) struct Present {
    /// Open tunnels. A cluster that is gone may have some for a while.
    pub(super) tunnels: BTreeMap<ClusterId, u64>,
    /// Requests in the queues of clusters.
    pub(super) waiting: BTreeMap<ClusterId, u64>,
    /// Exchanges that found no memory for a body to be taken ahead.
    pub(super) unbuffered: u64,
}

/// A request in its cluster's queue, counted until this is dropped.
pub struct Queued {
    metrics: WorkerMetrics,
    cluster: ClusterId,
}

impl Queued {
    /// It waits no longer; `result`: `served`, or why it was not.
    pub fn ended(self, result: &'static str) {
        let count = |counts: &mut ClusterCounts| *counts.queued.entry(result).or_default() += 1;
        self.metrics.count(Some(&self.cluster), count);
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        let mut counts = lock(&self.metrics.0);
        if let Some(waiting) = counts.present.waiting.get_mut(&self.cluster) {
            *waiting -= 1;
            if *waiting == 0 {
                counts.present.waiting.remove(&self.cluster);
            }
        }
    }
}

/// An open tunnel, counted until this is dropped.
pub struct OpenTunnel {
    metrics: WorkerMetrics,
    cluster: ClusterId,
}

impl Drop for OpenTunnel {
    fn drop(&mut self) {
        let mut counts = lock(&self.metrics.0);
        if let Some(open) = counts.present.tunnels.get_mut(&self.cluster) {
            *open -= 1;
            if *open == 0 {
                counts.present.tunnels.remove(&self.cluster);
            }
        }
    }
}

/// The sums of one listener.
#[derive(Clone, Default)]
pub(super) struct ListenerCounts {
    /// TLS handshakes by result.
    pub(super) handshakes: BTreeMap<&'static str, u64>,
    /// Connections closed before their first byte of HTTP, by reason.
    pub(super) refused: BTreeMap<&'static str, u64>,
}

/// The sums of one cluster.
#[derive(Default)]
pub(super) struct ClusterCounts {
    /// By class of status (0: none was sent) and reason.
    pub(super) requests: BTreeMap<(u16, &'static str), u64>,
    /// Those of which nothing is to be said but the class of status.
    pub(super) forwarded: RequestSums,
    /// By destination.
    pub(super) attempts: BTreeMap<DestinationId, AttemptSums>,
    /// By destination and how the connection ended.
    pub(super) stale: BTreeMap<(DestinationId, FailureKind), u64>,
    pub(super) local_failures: u64,
    pub(super) retries: u64,
    pub(super) retry_denied: BTreeMap<&'static str, u64>,
    pub(super) queued: BTreeMap<&'static str, u64>,
}

/// Sums that one worker counts and scrapes read.
#[derive(Debug)]
struct Sums<const N: usize>([AtomicU64; N]);

impl<const N: usize> Default for Sums<N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::default()))
    }
}

impl<const N: usize> Sums<N> {
    /// There is one thread that counts, so that no step is lost between the load and the store.
    #[inline]
    fn count(&self, place: usize) {
        if let Some(sum) = self.0.get(place) {
            sum.store(sum.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    fn read(&self) -> [u64; N] {
        self.0.each_ref().map(|sum| sum.load(Ordering::Relaxed))
    }
}

/// What one worker counts of one destination's attempts. To be counted by the worker's thread alone.
#[derive(Debug, Default)]
pub struct AttemptSums(Arc<Sums<{ OutcomeClass::ALL.len() }>>);

impl AttemptSums {
    /// An attempt ended.
    #[inline]
    pub fn count(&self, class: OutcomeClass) {
        self.0.count(usize::from(class.code()));
    }

    /// Whether scrapes still show it: not once its destination was gone for a while.
    #[inline]
    pub fn is_shown(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// By [`OutcomeClass::code`].
    pub(super) fn read(&self) -> [u64; OutcomeClass::ALL.len()] {
        self.0.read()
    }
}

/// What one worker counts of the requests that a cluster's destinations answered whole. To be counted by the worker's
/// thread alone.
#[derive(Debug, Default)]
pub struct RequestSums(Arc<Sums<STATUS_CLASSES>>);

impl RequestSums {
    /// An exchange is over; `status`: what the client saw.
    #[inline]
    pub fn count(&self, status: u16) {
        self.0.count(usize::from(status / 100));
    }

    /// Whether scrapes still show it: not once its cluster was gone for a while.
    #[inline]
    pub fn is_shown(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// With the class of status, those that are not zero.
    pub(super) fn read(&self) -> impl Iterator<Item = (u16, u64)> {
        (0..).zip(self.0.read()).filter(|(_, sum)| *sum > 0)
    }
}

/// A status has three digits; 0 stands for none.
const STATUS_CLASSES: usize = 10;

impl WorkerMetrics {
    /// The place where attempts at this destination are counted.
    pub fn attempts_of(&self, cluster: &ClusterId, destination: &DestinationId) -> AttemptSums {
        let mut found = AttemptSums::default();
        self.count(Some(cluster), |counts| {
            let sums = match counts.attempts.get(destination) {
                Some(sums) => sums,
                None => counts.attempts.entry(destination.clone()).or_default(),
            };
            found = AttemptSums(Arc::clone(&sums.0));
        });
        found
    }

    /// The place where requests are counted that this cluster's destinations answer.
    pub fn requests_of(&self, cluster: &ClusterId) -> RequestSums {
        let mut found = RequestSums::default();
        self.count(Some(cluster), |counts| found = RequestSums(Arc::clone(&counts.forwarded.0)));
        found
    }

    /// An exchange is over. `status`: what the client saw, 499 when it was gone; `reason`: why the answer was our own,
    /// empty when it came from a destination.
    pub fn request(&self, cluster: Option<&ClusterId>, status: u16, reason: &'static str) {
        self.count(cluster, |counts| *counts.requests.entry((status / 100, reason)).or_default() += 1);
    }

    /// An attempt ended.
    pub fn attempt(&self, cluster: &ClusterId, destination: &DestinationId, class: OutcomeClass) {
        self.attempts_of(cluster, destination).count(class);
    }

    /// A pooled connection had ended before any byte of an answer; `how`: closed or reset.
    pub fn stale_connection(&self, cluster: &ClusterId, destination: &DestinationId, how: FailureKind) {
        self.count(Some(cluster), |counts| *counts.stale.entry((destination.clone(), how)).or_default() += 1);
    }

    /// An attempt failed for want of something of our own.
    pub fn local_failure(&self, cluster: &ClusterId) {
        self.count(Some(cluster), |counts| counts.local_failures += 1);
    }

    /// One more attempt began in an exchange that had one before.
    pub fn retry(&self, cluster: &ClusterId) {
        self.count(Some(cluster), |counts| counts.retries += 1);
    }

    /// A failed attempt was not repeated; `reason` says what forbade it.
    pub fn retry_denied(&self, cluster: &ClusterId, reason: &'static str) {
        self.count(Some(cluster), |counts| *counts.retry_denied.entry(reason).or_default() += 1);
    }

    /// A request begins to wait.
    pub fn queued(&self, cluster: &ClusterId) -> Queued {
        *lock(&self.0).present.waiting.entry(cluster.clone()).or_default() += 1;
        Queued { metrics: self.clone(), cluster: cluster.clone() }
    }

    /// A tunnel was opened.
    pub fn tunnel(&self, cluster: &ClusterId) -> OpenTunnel {
        *lock(&self.0).present.tunnels.entry(cluster.clone()).or_default() += 1;
        OpenTunnel { metrics: self.clone(), cluster: cluster.clone() }
    }

    /// There was no memory for a body to be taken ahead: it streams.
    pub fn unbuffered(&self) {
        lock(&self.0).present.unbuffered += 1;
    }

    /// What is there now.
    pub(super) fn present(&self) -> Present {
        lock(&self.0).present.clone()
    }

    /// A TLS handshake is over; `result`: `full`, `resumed`, or why it failed.
    pub fn handshake(&self, listener: &ListenerId, result: &'static str) {
        self.of_listener(listener, |counts| *counts.handshakes.entry(result).or_default() += 1);
    }

    /// A connection was closed before its first byte of HTTP.
    pub fn refused_connection(&self, listener: &ListenerId, reason: &'static str) {
        self.of_listener(listener, |counts| *counts.refused.entry(reason).or_default() += 1);
    }

    /// The listener is gone, and with it what was counted for it.
    pub fn forget_listener(&self, listener: &ListenerId) {
        lock(&self.0).listeners.remove(listener);
    }

    /// Hands the sums of each listener to `visit`.
    pub(super) fn visit_listeners(&self, mut visit: impl FnMut(&ListenerId, &ListenerCounts)) {
        lock(&self.0).listeners.iter().for_each(|(listener, counts)| visit(listener, counts));
    }

    fn of_listener(&self, listener: &ListenerId, step: impl FnOnce(&mut ListenerCounts)) {
        let mut counts = lock(&self.0);
        match counts.listeners.get_mut(listener) {
            Some(counts) => step(counts),
            None => step(counts.listeners.entry(listener.clone()).or_default()),
        }
    }

    /// Drops the sums of clusters, and of their destinations, that `keep` refuses.
    pub(super) fn retain(&self, keep: impl Fn(&ClusterId, Option<&DestinationId>) -> bool) {
        lock(&self.0).clusters.retain(|cluster, counts| {
            counts.attempts.retain(|destination, _| keep(cluster, Some(destination)));
            counts.stale.retain(|(destination, _), _| keep(cluster, Some(destination)));
            keep(cluster, None)
        });
    }

    /// What attempts at a destination came to, by [`OutcomeClass::code`].
    pub(super) fn outcomes(&self, cluster: &ClusterId, destination: &DestinationId) -> [u64; OutcomeClass::ALL.len()] {
        let counts = lock(&self.0);
        let sums = counts.clusters.get(cluster).and_then(|counts| counts.attempts.get(destination));
        sums.map(AttemptSums::read).unwrap_or_default()
    }

    /// Hands each sum to `visit`.
    pub(super) fn visit(&self, mut visit: impl FnMut(Option<&ClusterId>, &ClusterCounts)) {
        let counts = lock(&self.0);
        visit(None, &counts.unplaced);
        for (cluster, counts) in &counts.clusters {
            visit(Some(cluster), counts);
        }
    }

    fn count(&self, cluster: Option<&ClusterId>, step: impl FnOnce(&mut ClusterCounts)) {
        let mut counts = lock(&self.0);
        match cluster {
            None => step(&mut counts.unplaced),
            // Looked up before it is inserted: cloning a key would write to a reference count that all workers share.
            Some(cluster) => match counts.clusters.get_mut(cluster) {
                Some(counts) => step(counts),
                None => step(counts.clusters.entry(cluster.clone()).or_default()),
            },
        }
    }
}
