//! Where what every request counts is counted.
//!
//! Names of clusters and destinations are compared and locks taken when a destination is met for the first time, or again
//! after another configuration; after that counting is one plain store into memory of the worker's own.

use std::cell::RefCell;

use exchange::snapshot::{ClusterView, DestinationView};
use model::id::{ClusterId, ClusterIndex, DestinationId, Slot};
use model::outcome::OutcomeClass;
use telemetry::metrics::{AttemptSums, RequestSums, WorkerMetrics};

/// One worker's places.
#[derive(Default)]
pub(crate) struct Sums {
    /// By slot.
    attempts: RefCell<Vec<Option<Attempts>>>,
    /// By the cluster's index.
    requests: RefCell<Vec<Option<Requests>>>,
}

struct Attempts {
    cluster: ClusterId,
    destination: DestinationId,
    sums: AttemptSums,
}

struct Requests {
    cluster: ClusterId,
    sums: RequestSums,
}

impl Sums {
    /// An attempt ended.
    pub(crate) fn attempt(
        &self,
        metrics: &WorkerMetrics,
        cluster: &ClusterView,
        destination: &DestinationView,
        class: OutcomeClass,
    ) {
        let Slot(slot) = destination.slot;
        let mut places = self.attempts.borrow_mut();
        if let Some(Some(known)) = places.get(slot as usize)
            && is_same(known.cluster.as_str(), cluster.id.as_str())
            && is_same(known.destination.as_str(), destination.id.as_str())
            && known.sums.is_shown()
        {
            return known.sums.count(class);
        }
        let sums = metrics.attempts_of(&cluster.id, &destination.id);
        sums.count(class);
        let found = Attempts { cluster: cluster.id.clone(), destination: destination.id.clone(), sums };
        keep(&mut places, slot as usize, found);
    }

    /// A cluster's destination answered a request, and the client has got the whole answer.
    pub(crate) fn request(&self, metrics: &WorkerMetrics, index: ClusterIndex, cluster: &ClusterView, status: u16) {
        let mut places = self.requests.borrow_mut();
        if let Some(Some(known)) = places.get(index.index())
            && is_same(known.cluster.as_str(), cluster.id.as_str())
            && known.sums.is_shown()
        {
            return known.sums.count(status);
        }
        let sums = metrics.requests_of(&cluster.id);
        sums.count(status);
        keep(&mut places, index.index(), Requests { cluster: cluster.id.clone(), sums });
    }
}

/// Whether both are one text in memory. What is kept here keeps its text, so no other one can come to lie there.
fn is_same(kept: &str, name: &str) -> bool {
    std::ptr::eq(kept, name)
}

/// Slots and indexes are dense: there are no more places than the largest configuration had destinations.
#[cold]
fn keep<T>(places: &mut Vec<Option<T>>, index: usize, found: T) {
    if places.len() <= index {
        places.resize_with(index + 1, || None);
    }
    if let Some(place) = places.get_mut(index) {
        *place = Some(found);
    }
}
