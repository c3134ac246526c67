//! What follows an attempt: another one, its response, or an answer of our own.

use balance::affinity::Pin;
use model::affinity::AffinityFailurePolicy;
use model::cluster::Compat;
use model::outcome::{AttemptEnd, FailureKind};
use model::time::Timestamp;
use retry::{Cost, Pool, Replay, RetryDenied, Target, Verdict, Walk};

use super::{Exchange, Held, Repeat, Resend, Running, State, Worker};
use crate::pick::{self, Picked, Trial};
use crate::reason::Reason;
use crate::snapshot::{ClusterView, Snapshot};
use crate::step::{Admission, Answer, Attempt, Connection, Content, Shared, Step};

/// What may follow, and what was taken from the budget for it.
struct Paid {
    target: Target,
    cost: Cost,
}

/// What a call of the machine looks at.
pub(super) struct Ground<'a, S> {
    pub(super) now: Timestamp,
    pub(super) cluster: &'a ClusterView,
    pub(super) snapshot: &'a Snapshot,
    pub(super) shared: &'a S,
}

impl Exchange {
    /// A head: repeated elsewhere when its status is listed and all else allows it, forwarded otherwise.
    pub(super) fn head_arrived(
        &mut self,
        running: Running,
        end: &AttemptEnd,
        content: Content,
        replay: Replay,
        ground: &Ground<'_, impl Shared>,
        worker: &mut Worker,
    ) -> Step {
        let cluster = Some(ground.cluster);
        if !end
            .status
            .is_some_and(|status| self.rules(ground.cluster, ground.snapshot).conditions.statuses.contains(&status))
        {
            return self.forward(running, end, content, cluster);
        }
        let cost = match self.decide(end, replay, ground) {
            Ok(Paid { cost, .. }) => cost,
            Err(denied) => {
                self.denied = Some(denied);
                return self.forward(running, end, content, cluster);
            }
        };
        match pick::next(
            ground.cluster,
            &self.tried,
            self.key,
            self.trial(ground.cluster, ground.snapshot),
            worker,
            ground.shared,
        ) {
            Picked::One(destination, admission) => {
                self.leave(running, end, Repeat::Possible);
                self.charge(running, ground.cluster, worker);
                self.held = Held::Response;
                let cluster = running.attempt.cluster;
                let picked = (destination, admission);
                Step::HoldThenConnect(self.connect(ground.now, cluster, picked, ground.snapshot, worker))
            }
            // nginx has given the response up before it looks for the next server.
            Picked::Nobody | Picked::Busy if ground.cluster.compat == Compat::Nginx => {
                self.leave(running, end, Repeat::Possible);
                self.charge(running, ground.cluster, worker);
                self.denied = Some(RetryDenied::Untried);
                self.answer(Answer::of(Reason::NoLiveUpstreams))
            }
            Picked::Nobody | Picked::Busy => {
                refund(cost, ground.cluster, ground.shared);
                self.denied = Some(RetryDenied::Untried);
                self.forward(running, end, content, cluster)
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the same six that every call of the machine gets")]
    pub(super) fn attempt_ended(
        &mut self,
        now: Timestamp,
        running: Running,
        end: &AttemptEnd,
        replay: Replay,
        snapshot: &Snapshot,
        worker: &mut Worker,
        shared: &impl Shared,
    ) -> Step {
        let reason = Reason::of_failure(end.failure, end.progress);
        if end.client_gone || reason == Reason::ClientGone {
            self.leave(running, end, Repeat::No);
            return self.answer(Answer::of(Reason::ClientGone));
        }
        let Some(cluster) = self.cluster(snapshot) else {
            self.leave(running, end, Repeat::No);
            return self.answer(Answer::of(reason));
        };
        self.note_cut(now, end, snapshot, worker);
        let ground = Ground { now, cluster, snapshot, shared };
        match self.decide(end, replay, &ground) {
            Ok(Paid { target: Target::SameFresh, .. }) => {
                // The gate, if there is one, passes on to the resend.
                let left = Running { attempt: Attempt { admission: Admission::Open, ..running.attempt }, ..running };
                self.leave(left, end, Repeat::Possible);
                self.resend = Resend::Used;
                let attempt = Attempt { connection: Connection::Fresh, ..running.attempt };
                self.run(now, attempt);
                Step::Connect(attempt)
            }
            Ok(Paid { target: Target::Next, cost }) => {
                self.leave(running, end, Repeat::Possible);
                self.charge(running, cluster, worker);
                if matches!(end.failure, Some(FailureKind::HeadTimeout | FailureKind::TryTimeout)) {
                    self.timeouts = self.timeouts.saturating_add(1);
                }
                match pick::next(cluster, &self.tried, self.key, self.trial(cluster, snapshot), worker, shared) {
                    Picked::One(destination, admission) => {
                        let picked = (destination, admission);
                        Step::Connect(self.connect(now, running.attempt.cluster, picked, snapshot, worker))
                    }
                    Picked::Nobody | Picked::Busy => {
                        refund(cost, cluster, shared);
                        self.denied = Some(RetryDenied::Untried);
                        let reason = if cluster.compat == Compat::Nginx { Reason::NoLiveUpstreams } else { reason };
                        self.last_answer(reason, cluster.compat)
                    }
                }
            }
            Err(denied) => {
                self.leave(running, end, Repeat::No);
                self.charge(running, cluster, worker);
                // Where nobody would have repeated anything, nothing was denied.
                self.denied = (reason != Reason::ClientBody).then_some(denied);
                self.last_answer(reason, cluster.compat)
            }
        }
    }

    /// Whether destinations on their way back may be tried with this request.
    pub(super) fn trial(&self, cluster: &ClusterView, snapshot: &Snapshot) -> Trial {
        // nginx's one trial is whatever request comes.
        let is_welcome =
            cluster.compat == Compat::Nginx || retry::may_be_trial(self.rules(cluster, snapshot), &self.request);
        if is_welcome { Trial::Welcome } else { Trial::LastResort }
    }

    /// Asks the rules, then the budget: before somebody is picked, so that no destination is held in vain.
    fn decide(&self, end: &AttemptEnd, replay: Replay, ground: &Ground<'_, impl Shared>) -> Result<Paid, RetryDenied> {
        let cluster = ground.cluster;
        let walk = Walk {
            attempts: self.attempts,
            peers: cluster.picker.peers(),
            timeouts: self.timeouts,
            is_stale_used: self.resend == Resend::Used,
            replay,
            time_left: self.deadline.map(|deadline| deadline.since(ground.now)),
            pool: if self.is_bound(cluster) {
                Pool::Empty
            } else {
                pick::pool(ground.now, cluster, &self.tried, ground.shared)
            },
        };
        match retry::decide(self.rules(cluster, ground.snapshot), cluster.compat, &self.request, end, &walk) {
            // nginx's rules do not look at who is left.
            Verdict::Retry { target: Target::Next, .. } if self.is_bound(cluster) => Err(RetryDenied::Untried),
            Verdict::Retry { target, cost, .. } => {
                if cost == Cost::FREE || ground.shared.withdraw(cluster.budget, cost) {
                    Ok(Paid { target, cost })
                } else {
                    Err(RetryDenied::Budget)
                }
            }
            Verdict::Denied(denied) => Err(denied),
        }
    }

    /// Whether the client's session lives on one destination and nowhere else.
    pub(super) fn is_bound(&self, cluster: &ClusterView) -> bool {
        let policy = cluster.affinity.as_ref().map(|affinity| affinity.failure_policy);
        self.pin != Pin::Absent && policy == Some(AffinityFailurePolicy::Return503Error)
    }

    /// The best answer when no attempt is left: a real one that was held before one of our own. nginx knows only the
    /// last attempt's.
    pub(super) fn last_answer(&mut self, reason: Reason, compat: Compat) -> Step {
        match (self.held, compat) {
            (Held::Response, Compat::None | Compat::Yarp) => {
                self.state = State::Ended;
                Step::AnswerHeld
            }
            (Held::Response, Compat::Nginx) | (Held::Nothing, _) => self.answer(Answer::of(reason)),
        }
    }
}

/// Nobody was there to take the repeated request, whatever the rules had seen just before.
fn refund(cost: Cost, cluster: &ClusterView, shared: &impl Shared) {
    if cost != Cost::FREE {
        shared.refund(cluster.budget, cost);
    }
}
