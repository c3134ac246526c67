//! How long an attempt may take: as the rules say, and on routes with `per_try_timeout: adaptive` what they have learnt.

use std::time::Duration;

use model::outcome::{AttemptEnd, FailureKind};
use model::retry::TryPace;
use model::time::Timestamp;
use retry::{Cost, Pace, Pool, Replay, Walk};

use super::{Exchange, Resend, Running, State, Worker};
use crate::pick;
use crate::snapshot::{RouteView, Snapshot};
use crate::step::{Shared, TryLimit};

impl Exchange {
    /// Whether the running attempt may be given up for taking longer than [`TryLimit::Learnt`]: only where the request
    /// would be repeated, else a slow answer is better than none.
    pub fn may_be_cut(&self, now: Timestamp, replay: Replay, snapshot: &Snapshot, shared: &impl Shared) -> bool {
        let Some(cluster) = self.cluster(snapshot) else { return false };
        let walk = Walk {
            attempts: self.attempts,
            peers: cluster.picker.peers(),
            timeouts: self.timeouts,
            is_stale_used: self.resend == Resend::Used,
            replay,
            time_left: self.deadline.map(|deadline| deadline.since(now)),
            pool: if self.is_bound(cluster) { Pool::Empty } else { pick::pool(now, cluster, &self.tried, shared) },
        };
        retry::may_be_cut(self.rules(cluster, snapshot), &self.request, &walk)
            && shared.can_pay(cluster.budget, Cost::TIMEOUT)
    }

    /// The time of the attempt that begins.
    pub(super) fn limit(&self, now: Timestamp, snapshot: &Snapshot, worker: &mut Worker) -> Option<TryLimit> {
        let rules = self.rules(self.cluster(snapshot)?, snapshot);
        let given = rules.per_try_timeout.map(TryLimit::Given);
        match rules.pace {
            TryPace::Given => given,
            TryPace::Adaptive => {
                let learnt = self.route(snapshot).and_then(|route| worker.paces.get_mut(&route.id)?.limit(now));
                // What is left goes round among those that may still be tried.
                let left = self.deadline.map(|deadline| {
                    deadline.since(now) / u32::from(rules.attempts.saturating_sub(self.attempts)).saturating_add(1)
                });
                let learnt = learnt.map(|learnt| left.map_or(learnt, |left| learnt.min(left.max(SHORTEST))));
                match (learnt, rules.per_try_timeout) {
                    (Some(learnt), Some(most)) if learnt >= most => given,
                    (Some(learnt), _) => Some(TryLimit::Learnt(learnt)),
                    (None, _) => given,
                }
            }
        }
    }

    /// A head came: one more time to learn from, where times are learnt.
    pub(super) fn learn(
        &self,
        now: Timestamp,
        running: Running,
        head: &AttemptEnd,
        snapshot: &Snapshot,
        worker: &mut Worker,
    ) {
        if head.status.is_some_and(|status| status < 500)
            && let Some(route) = self.adaptive(snapshot)
        {
            let took = now.since(running.picked_at);
            match worker.paces.get_mut(&route.id) {
                Some(pace) => pace.answered(now, took),
                None => worker.paces.entry(route.id.clone()).or_insert_with(|| Pace::new(now)).answered(now, took),
            }
        }
    }

    /// An attempt ended without a head: perhaps by the time that it had.
    pub(super) fn note_cut(&self, now: Timestamp, end: &AttemptEnd, snapshot: &Snapshot, worker: &mut Worker) {
        if end.failure == Some(FailureKind::TryTimeout)
            && let Some(route) = self.adaptive(snapshot)
            && let State::Attempting(Running { attempt, .. }) = self.state
            && let (Some(TryLimit::Learnt(limit)), Some(pace)) = (attempt.limit, worker.paces.get_mut(&route.id))
        {
            pace.cut(now, limit);
        }
    }

    fn adaptive<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s RouteView> {
        let route = self.route(snapshot)?;
        route.retry.iter().any(|(_, rules)| rules.pace == TryPace::Adaptive).then_some(route)
    }
}

/// A try is given no less, however many may follow.
const SHORTEST: Duration = Duration::from_millis(50);
