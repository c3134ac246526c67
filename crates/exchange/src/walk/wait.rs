//! Requests that nobody can take at once: they wait for a place at a destination, or for a destination.
//!
//! ```text
//!   pick, or others wait already ──> lacks ──> Waiting ── Woken ──> pick ──> Attempting
//!                                      │          ^                   └─ nobody yet ──> lacks, the same end in sight
//!                                      │          └─ follow: another configuration
//!                                      └─ no patience with this lack: Step::Answer
//! ```
//! Who is woken long after the end that was in sight was not told of that end: the process stood still, and the places that
//! became free meanwhile are heard of now, one after the other. So the end is put off, once.

use std::sync::Arc;
use std::time::Duration;

use balance::affinity::Pin;
use model::cluster::{Compat, Queue};
use model::id::{ClusterIndex, DestinationIndex, RouteIndex, Slot};
use model::time::{Timestamp, made_good};

use super::{Exchange, State, Worker};
use crate::pick;
use crate::reason::Reason;
use crate::snapshot::{ClusterView, Snapshot};
use crate::step::{Answer, Input, Placement, Shared, Step};

/// What a request that waits has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    since: Timestamp,
    until: Timestamp,
    lack: Lack,
}

/// What there is none of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// Destinations are available and all their places are taken; or those of the one that the session is bound to.
    Places(Option<Slot>),
    /// No destination is available.
    Destinations,
    /// Others wait already and it has not looked itself: what they lack, as far as the cluster shows it.
    Turn,
}

impl Exchange {
    /// Makes a request that waits go on with a newer snapshot, which may be of another configuration. False, and nothing
    /// changed, where it does not wait, or where its route or cluster is not there any more or speaks otherwise: it goes
    /// on with what it began with.
    pub fn follow(&mut self, old: &Snapshot, new: &Snapshot) -> bool {
        if !matches!(self.state, State::Waiting(_)) {
            return false;
        }
        if Arc::ptr_eq(&old.config, &new.config) {
            return true;
        }
        let Some((placement, cluster)) = moved(self.placement, old, new) else { return false };
        if let (Pin::To(index), Some(before)) = (self.pin, self.cluster(old)) {
            let id = before.destinations.get(index.index()).map(|destination| &destination.id);
            let at = cluster.destinations.iter().position(|destination| Some(&destination.id) == id);
            let at = at.and_then(|at| u32::try_from(at).ok());
            self.pin = at.map_or(Pin::Unknown, |at| Pin::To(DestinationIndex(at)));
        }
        self.placement = placement;
        // The sides of the route may be others now; the client's is drawn anew with its next request.
        self.drawn = None;
        true
    }

    /// Something happens while the request waits.
    pub(super) fn waiting(
        &mut self,
        now: Timestamp,
        waiting: Waiting,
        input: &Input,
        snapshot: &Snapshot,
        worker: &mut Worker,
        shared: &impl Shared,
    ) -> Step {
        let compat = self.compat(snapshot);
        if *input == Input::Woken {
            self.make_good(now, waiting);
        }
        match input {
            Input::Woken if self.deadline.is_some_and(|deadline| deadline <= now) => {
                self.answer(Answer::of(Reason::Deadline))
            }
            Input::Woken => match self.placement.cluster.zip(self.cluster(snapshot)) {
                Some(place) => self.pick(now, waiting.since, place, snapshot, worker, shared),
                None => self.answer(Answer::of(Reason::NoCluster)),
            },
            Input::WaitOver => self.wait_over(waiting, snapshot),
            Input::QueueFull => {
                let lack = self.cluster(snapshot).map_or(waiting.lack, |cluster| shown(waiting.lack, cluster));
                self.answer(answer_of(lack, Reason::QueueFull, compat))
            }
            Input::DeadlineReached => self.answer(Answer::of(Reason::Deadline)),
            Input::ClientGone => self.answer(Answer::of(Reason::ClientGone)),
            // No attempt runs.
            Input::Gathered | Input::ResponseHead { .. } | Input::AttemptEnded { .. } | Input::ResponseEnded { .. } => {
                waiting.step()
            }
        }
    }

    /// What a new request is taken to lack where others wait already: it takes its place behind them, unless the
    /// destination that its session is bound to is not there, which no wait changes.
    pub(super) fn joins(&self, cluster: &ClusterView, shared: &impl Shared) -> Option<Lack> {
        if cluster.queue.is_none() || !shared.is_queued(cluster.budget) {
            return None;
        }
        if self.is_bound(cluster) {
            return pick::pinned(cluster, self.pin).map(|(_, destination)| Lack::Places(Some(destination.slot)));
        }
        Some(Lack::Turn)
    }

    /// Nobody can take it: it waits, or is answered where that is not wanted.
    pub(super) fn lacks(&mut self, now: Timestamp, since: Timestamp, lack: Lack, cluster: &ClusterView) -> Step {
        let span = cluster.queue.map_or(Duration::ZERO, |queue| patience(queue, shown(lack, cluster)));
        let until = self.end_of(since, span);
        if until <= now {
            let late = if span.is_zero() { Reason::QueueFull } else { Reason::QueueTimeout };
            return self.answer(answer_of(shown(lack, cluster), late, cluster.compat));
        }
        let waiting = Waiting { since, until, lack };
        self.state = State::Waiting(waiting);
        waiting.step()
    }
}

impl Exchange {
    /// Puts off what should have ended this wait before it was woken.
    fn make_good(&mut self, now: Timestamp, waiting: Waiting) {
        if self.put_off.is_some() {
            return;
        }
        let deadline = self.deadline.filter(|deadline| *deadline <= waiting.until);
        let Some(more) = made_good(deadline.unwrap_or(waiting.until), now) else { return };
        self.put_off = Some(now + more);
        self.deadline = self.deadline.map(|deadline| deadline.max(now + more));
    }

    /// When the patience of one that waits since then is over. Who has none does not wait.
    fn end_of(&self, since: Timestamp, span: Duration) -> Timestamp {
        let until = since + span;
        if span.is_zero() { until } else { self.put_off.map_or(until, |put_off| until.max(put_off)) }
    }

    /// The end that was in sight has come. Only the first in line hears of what changes, so the others look here whether
    /// there is another end by now.
    fn wait_over(&mut self, waiting: Waiting, snapshot: &Snapshot) -> Step {
        let Some(cluster) = self.cluster(snapshot) else { return self.answer(Answer::of(Reason::NoCluster)) };
        let lack = shown(waiting.lack, cluster);
        let until = self.end_of(waiting.since, cluster.queue.map_or(Duration::ZERO, |queue| patience(queue, lack)));
        if until <= waiting.until {
            return self.answer(answer_of(lack, Reason::QueueTimeout, cluster.compat));
        }
        let waiting = Waiting { until, ..waiting };
        self.state = State::Waiting(waiting);
        waiting.step()
    }
}

impl Waiting {
    fn step(self) -> Step {
        let wants = match self.lack {
            Lack::Places(wants) => wants,
            Lack::Destinations | Lack::Turn => None,
        };
        Step::Wait { until: self.until, wants }
    }
}

/// What there is none of, for one that has not looked or looked some time ago.
fn shown(lack: Lack, cluster: &ClusterView) -> Lack {
    let is_limited = || cluster.destinations.iter().any(|destination| destination.max_connections.is_some());
    match lack {
        Lack::Places(Some(_)) | Lack::Destinations => lack,
        Lack::Places(None) | Lack::Turn if cluster.available.is_empty() => Lack::Destinations,
        Lack::Places(None) => lack,
        Lack::Turn if is_limited() => Lack::Places(None),
        Lack::Turn => Lack::Destinations,
    }
}

/// Where an exchange stands in another configuration.
fn moved<'s>(placement: Placement, old: &Snapshot, new: &'s Snapshot) -> Option<(Placement, &'s ClusterView)> {
    let route = old.routes.get(placement.route?.index())?;
    let cluster = old.clusters.get(placement.cluster?.index())?;
    let at_route = new.routes.iter().position(|one| one.id == route.id)?;
    let at_cluster = new.clusters.iter().position(|one| one.id == cluster.id)?;
    let found = new.clusters.get(at_cluster)?;
    let placement = Placement {
        route: Some(RouteIndex(u32::try_from(at_route).ok()?)),
        cluster: Some(ClusterIndex(u32::try_from(at_cluster).ok()?)),
    };
    (found.http == cluster.http && found.compat == cluster.compat).then_some((placement, &**found))
}

fn patience(queue: Queue, lack: Lack) -> Duration {
    if queue.length == 0 {
        return Duration::ZERO;
    }
    match lack {
        Lack::Places(_) | Lack::Turn => queue.busy_timeout,
        Lack::Destinations => queue.unavailable_timeout,
    }
}

/// `reason`: why it waits no longer. Where there is no destination that is what the client is told.
fn answer_of(lack: Lack, reason: Reason, compat: Compat) -> Answer {
    let reason = match (lack, compat) {
        (_, Compat::Nginx) => Reason::NoLiveUpstreams,
        (Lack::Destinations, Compat::None | Compat::Yarp) => Reason::NoneAvailable,
        (Lack::Places(_) | Lack::Turn, Compat::None | Compat::Yarp) => reason,
    };
    let retry_after = matches!(reason, Reason::QueueFull | Reason::QueueTimeout).then_some(RETRY_AFTER);
    Answer { retry_after, ..Answer::of(reason) }
}

/// Seconds: places come and go quickly.
const RETRY_AFTER: u32 = 1;
