//! The last events, numbered, for readers that come and go: event streams, long polls, `lazaret journal`.
//!
//! The health core numbers events; the journal stamps them with the wall clock, notes how the destination stood after
//! them, keeps the last [`CAPACITY`] of them, counts them and writes one log line each. A reader remembers the number of the last one it saw; when that has
//! fallen out of the ring, or was never given, it is told so ([`After::Lost`]) and starts over from the present state.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::available::Because;
use model::event::{Event, EventKind, ShareCause, Transition};
use model::health::{Health, HealthPair};
use model::id::{DestinationKey, Revision};
use model::time::Timestamp;
use model::view::{HealthView, NodeStatus};
use tokio::sync::watch;

use crate::metrics::Metrics;

/// So many events are kept.
pub const CAPACITY: usize = 8192;

/// The journal. Shared by `Arc`.
pub struct Journal {
    ring: Mutex<VecDeque<Arc<Entry>>>,
    latest: watch::Sender<Revision>,
    metrics: Arc<Metrics>,
}

/// One event and when it happened on the wall clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The event.
    pub event: Event,
    /// When it was appended.
    pub wall: jiff::Timestamp,
    /// How its destination stood then; `None`: it is about no destination, or about one that is gone.
    pub standing: Option<Standing>,
}

/// How a destination stands: what a reader of an event wants to know besides what changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Both values.
    pub health: HealthPair,
    /// Its status in APISIX's words.
    pub status: NodeStatus,
    /// Whether traffic may use it.
    pub is_available: bool,
    /// Why.
    pub because: Because,
}

impl Standing {
    /// Looks a destination up.
    fn of(destination: &DestinationKey, health: &HealthView) -> Option<Self> {
        let cluster = health.clusters.iter().find(|cluster| cluster.id == destination.cluster)?;
        let found = cluster.destinations.iter().find(|one| one.id == destination.destination)?;
        Some(Self {
            health: found.health,
            status: found.status,
            is_available: found.is_available,
            because: found.because,
        })
    }
}

impl Entry {
    /// The wall clock's time of an earlier moment that the event speaks of.
    pub fn wall_of(&self, earlier: Timestamp) -> jiff::Timestamp {
        let ago = self.event.at.since(earlier);
        // A moment before the epoch means that the wall clock is unset; the event's own time is the best that is known.
        self.wall.checked_sub(ago).unwrap_or(self.wall)
    }
}

/// What came after a revision.
#[derive(Clone, Debug, PartialEq)]
pub enum After {
    /// These, in order; empty when nothing did.
    Events(Vec<Arc<Entry>>),
    /// Some of them are gone, or the revision was never given: the reader must start over.
    Lost,
}

impl Journal {
    /// An empty journal that counts into `metrics`.
    pub fn new(metrics: Arc<Metrics>) -> Arc<Self> {
        let (latest, _) = watch::channel(Revision::default());
        Arc::new(Self { ring: Mutex::default(), latest, metrics })
    }

    /// Keeps, counts and logs an event, and wakes readers. Events come in the order of their revisions; `health` is the
    /// view that they are part of.
    pub fn append(&self, event: Event, health: &HealthView) {
        log(&event);
        self.metrics.event(&event.kind);
        let (wall, revision) = (jiff::Timestamp::now(), event.revision);
        let standing = match &event.kind {
            EventKind::Transition(transition) => Standing::of(&transition.destination, health),
            EventKind::Availability { destination, .. }
            | EventKind::Share { destination, .. }
            | EventKind::Shadow { destination, .. }
            | EventKind::Kept { destination, .. } => Standing::of(destination, health),
            EventKind::Config { .. } | EventKind::Draining => None,
        };
        {
            let mut ring = self.ring();
            ring.push_back(Arc::new(Entry { event, wall, standing }));
            while ring.len() > CAPACITY {
                ring.pop_front();
            }
        }
        self.latest.send_replace(revision);
    }

    /// Number of the last event; 0 before the first.
    pub fn revision(&self) -> Revision {
        *self.latest.borrow()
    }

    /// The events after `revision`, `limit` of them at most.
    pub fn after(&self, revision: Revision, limit: usize) -> After {
        let ring = self.ring();
        let newest = ring.back().map_or(Revision::default(), |entry| entry.event.revision);
        let oldest = ring.front().map_or(newest.next(), |entry| entry.event.revision);
        if revision > newest || revision.next() < oldest {
            return After::Lost;
        }
        let start = ring.partition_point(|entry| entry.event.revision <= revision);
        After::Events(ring.iter().skip(start).take(limit).cloned().collect())
    }

    /// The last events that `keep` accepts, newest first, `limit` of them at most.
    pub fn last(&self, limit: usize, keep: impl Fn(&Event) -> bool) -> Vec<Arc<Entry>> {
        self.ring().iter().rev().filter(|entry| keep(&entry.event)).take(limit).cloned().collect()
    }

    /// Changes whenever an event is appended.
    pub fn subscribe(&self) -> watch::Receiver<Revision> {
        self.latest.subscribe()
    }

    fn ring(&self) -> MutexGuard<'_, VecDeque<Arc<Entry>>> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One event, one line. An ejection is a warning, everything else is information.
fn log(event: &Event) {
    let revision = event.revision.0;
    match &event.kind {
        EventKind::Transition(transition) => log_transition(revision, transition),
        EventKind::Availability { destination, available, because } => tracing::info!(
            target: "health", revision, cluster = %destination.cluster, destination = %destination.destination,
            available, because = because.as_str(), "availability changed"
        ),
        EventKind::Share { destination, share, because, .. } => tracing::info!(
            target: "health", revision, cluster = %destination.cluster, destination = %destination.destination,
            share = share.get(), because = because.as_str(), policy = suspected_by(because), "share changed"
        ),
        EventKind::Shadow { destination, policy, would_eject, .. } => tracing::info!(
            target: "health", revision, cluster = %destination.cluster, destination = %destination.destination,
            policy, would_eject, "shadow policy changed its mind"
        ),
        EventKind::Kept { destination, policy, evidence } => {
            let last = evidence.last.last();
            tracing::info!(
                target: "health", revision, cluster = %destination.cluster, destination = %destination.destination,
                policy, failed = evidence.failed,
                failure = last.and_then(|seen| seen.failure).map(|failure| failure.as_str()),
                status = last.and_then(|seen| seen.status),
                "probes fail and requests are answered, it stays"
            );
        }
        EventKind::Config { applied: true, summary } => {
            tracing::info!(target: "config", revision, summary, "configuration applied");
        }
        EventKind::Config { applied: false, summary } => {
            tracing::warn!(target: "config", revision, summary, "configuration refused, the one before stays");
        }
        EventKind::Draining => tracing::info!(target: "health", revision, "draining"),
    }
}

fn suspected_by(because: &ShareCause) -> Option<&str> {
    match because {
        ShareCause::Suspect { policy } => Some(policy),
        ShareCause::Whole | ShareCause::Ramp => None,
    }
}

fn log_transition(revision: u64, transition: &Transition) {
    let Transition { destination, check, from, to, cause, evidence } = transition;
    let last = evidence.last.last();
    // The same fields at two levels: the level of a line is fixed where it is written.
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                target: "health",
                revision,
                cluster = %destination.cluster,
                destination = %destination.destination,
                check = check.as_str(),
                from = from.as_str(),
                to = to.as_str(),
                cause = cause.as_str(),
                policy = cause.policy(),
                failed = evidence.failed,
                total = evidence.total,
                limit = evidence.limit,
                window_ms = evidence.window.map(|window| window.as_millis() as u64),
                failure = last.and_then(|seen| seen.failure).map(|failure| failure.as_str()),
                status = last.and_then(|seen| seen.status),
                reactivation_ms = evidence.reactivation.map(|period| period.as_millis() as u64),
                "health changed"
            )
        };
    }
    match to {
        Health::Unhealthy => line!(warn),
        Health::Healthy | Health::Unknown => line!(info),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use std::time::Duration;

    use super::*;

    fn event(revision: u64) -> Event {
        Event { revision: Revision(revision), at: Timestamp::from_secs(revision), kind: EventKind::Draining }
    }

    fn numbers(after: After) -> Vec<u64> {
        match after {
            After::Events(entries) => entries.iter().map(|entry| entry.event.revision.0).collect(),
            After::Lost => panic!("lost"),
        }
    }

    #[test]
    fn readers_get_what_came_after_their_revision() {
        let journal = Journal::new(Metrics::new());
        assert_eq!(journal.after(Revision(0), 10), After::Events(vec![]));
        (1..=5).for_each(|revision| journal.append(event(revision), &HealthView::default()));
        assert_eq!(numbers(journal.after(Revision(0), 10)), [1, 2, 3, 4, 5]);
        assert_eq!(numbers(journal.after(Revision(3), 10)), [4, 5]);
        assert_eq!(numbers(journal.after(Revision(1), 2)), [2, 3]);
        assert_eq!(numbers(journal.after(Revision(5), 10)), [0_u64; 0]);
        assert_eq!(journal.after(Revision(6), 10), After::Lost);
        assert_eq!(journal.revision(), Revision(5));
    }

    #[test]
    fn what_fell_out_of_the_ring_is_lost() {
        let journal = Journal::new(Metrics::new());
        (1..=CAPACITY as u64 + 3).for_each(|revision| journal.append(event(revision), &HealthView::default()));
        assert_eq!(journal.after(Revision(2), 10), After::Lost);
        assert_eq!(numbers(journal.after(Revision(3), 1)), [4]);
        let last = journal.last(2, |event| event.revision.0 % 2 == 0);
        let last: Vec<u64> = last.iter().map(|entry| entry.event.revision.0).collect();
        assert_eq!(last, [CAPACITY as u64 + 2, CAPACITY as u64]);
    }

    #[test]
    fn appending_wakes_subscribers() {
        let journal = Journal::new(Metrics::new());
        let mut reader = journal.subscribe();
        assert!(!reader.has_changed().unwrap());
        journal.append(event(1), &HealthView::default());
        assert!(reader.has_changed().unwrap());
        assert_eq!(*reader.borrow_and_update(), Revision(1));
    }

    #[test]
    fn earlier_moments_are_placed_before_the_event() {
        let wall = jiff::Timestamp::from_second(1_700_000_000).unwrap();
        let entry = Entry { event: event(100), wall, standing: None };
        let earlier = entry.event.at - Duration::from_secs(40);
        assert_eq!(entry.wall_of(earlier).as_second(), 1_699_999_960);
    }
}
