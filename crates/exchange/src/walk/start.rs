//! From a request's head to its first attempt: path, route, action, deadline, pin, pick.

use std::time::Duration;

use balance::affinity::Pin;
use model::id::ClusterIndex;
use model::request::RequestFacts;
use model::retry::RetryRules;
use model::time::Timestamp;
use retry::Repeatable;
use route::Found;

use super::wait::Lack;
use super::{CallTime, Exchange, Patience, Session, State, Worker};
use crate::buffering;
use crate::grpc;
use crate::pick::{self, First, Picked};
use crate::reason::Reason;
use crate::snapshot::{ActionView, ClusterView, Snapshot};
use crate::step::{Answer, Shared, Step};

impl Exchange {
    pub(super) fn start(
        &mut self,
        now: Timestamp,
        facts: &RequestFacts<'_>,
        snapshot: &Snapshot,
        worker: &mut Worker,
        shared: &impl Shared,
    ) -> Step {
        if route::path::check(facts.path).is_err() {
            return self.answer(Answer::of(Reason::Path));
        }
        let route = match snapshot.table.find(facts) {
            Found::Route(route) => route,
            Found::MethodNotAllowed => {
                let allow = snapshot.table.allowed(facts).join(", ");
                return self.answer(Answer { allow: Some(allow.into()), ..Answer::of(Reason::MethodNotAllowed) });
            }
            Found::NotFound => return self.answer(Answer::of(Reason::NoRoute)),
        };
        let Some(view) = snapshot.routes.get(route.index()) else {
            return self.answer(Answer::of(Reason::NoRoute));
        };
        self.placement.route = Some(route);
        if let Some(rules) = &view.rules
            && let Err(answer) = rules.judge(facts, shared)
        {
            return self.answer(answer);
        }
        let index = match &view.action {
            ActionView::Cluster(index) => *index,
            ActionView::Split(split) => match split.choose(facts, &mut worker.random) {
                Some(choice) => {
                    self.drawn = choice.drawn;
                    choice.cluster
                }
                None => return self.answer(Answer::of(Reason::NoCluster)),
            },
            ActionView::NoCluster => return self.answer(Answer::of(Reason::NoCluster)),
            ActionView::Respond { status, body } => {
                let answer = Answer { status: *status, body: Some(body.clone()), ..Answer::of(Reason::Route) };
                return self.answer(answer);
            }
            ActionView::Redirect { to, status } => {
                let Some(location) = to.fill(facts) else { return self.answer(Answer::of(Reason::NoHost)) };
                let answer = Answer { status: *status, location: Some(location), ..Answer::of(Reason::Route) };
                return self.answer(answer);
            }
            ActionView::Deny(status) => return self.answer(Answer { status: *status, ..Answer::of(Reason::Denied) }),
        };
        let Some(cluster) = snapshot.clusters.get(index.index()) else {
            return self.answer(Answer::of(Reason::NoCluster));
        };
        if let Some(transforms) = &view.transforms {
            let Ok(rewritten) = transforms.apply(facts) else { return self.answer(Answer::of(Reason::Path)) };
            self.request = Repeatable::of(&rewritten.facts(facts));
            self.rewritten = Some(Box::new(rewritten));
        }
        self.placement.cluster = Some(index);
        let rules = self.rules(cluster, snapshot);
        let (ours, theirs) = (patience(view.timeout, rules), grpc::timeout(facts));
        if theirs.is_some() {
            self.call_time = CallTime::Said;
        }
        let limits = [ours, rules.per_try_timeout, Some(cluster.timeouts.idle)];
        if theirs.is_some_and(|theirs| limits.into_iter().flatten().all(|limit| theirs < limit)) {
            self.patience = Patience::Client;
        }
        let patience = [ours, theirs].into_iter().flatten().min();
        self.deadline = patience.map(|patience| now + patience);
        let most = [patience, rules.per_try_timeout, Some(cluster.timeouts.idle)].into_iter().flatten().min();
        self.most = most.unwrap_or_default();
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            return self.answer(Answer::of(Reason::Deadline));
        }
        self.pin = pick::pin(cluster, facts.fields);
        self.key = pick::key(cluster, facts);
        if buffering::gathers(view.buffering, facts) {
            self.state = State::Gathering;
            return Step::Gather;
        }
        self.first(now, index, cluster, snapshot, worker, shared)
    }

    /// The first pick, unless others wait for one already.
    pub(super) fn first(
        &mut self,
        now: Timestamp,
        index: ClusterIndex,
        cluster: &ClusterView,
        snapshot: &Snapshot,
        worker: &mut Worker,
        shared: &impl Shared,
    ) -> Step {
        match self.joins(cluster, shared) {
            Some(lack) => self.lacks(now, now, lack, cluster),
            None => self.pick(now, now, (index, cluster), snapshot, worker, shared),
        }
    }

    /// The first pick of a request that has waited since then.
    pub(super) fn pick(
        &mut self,
        now: Timestamp,
        since: Timestamp,
        (index, cluster): (ClusterIndex, &ClusterView),
        snapshot: &Snapshot,
        worker: &mut Worker,
        shared: &impl Shared,
    ) -> Step {
        let is_diverted = pick::diverts(cluster, self.pin, &mut worker.random);
        let pin = if is_diverted { Pin::Absent } else { self.pin };
        let trial = self.trial(cluster, snapshot);
        let (picked, is_visit) = match pick::first(cluster, pin, self.key, trial, worker, shared) {
            First::Picked(picked) => (picked, is_diverted),
            First::Elsewhere(picked) => (picked, true),
            First::PinBusy(slot) => return self.lacks(now, since, Lack::Places(Some(slot)), cluster),
            First::PinLost => return self.answer(Answer::of(Reason::AffinityLost)),
        };
        match picked {
            Picked::One(destination, admission) => {
                self.session = if is_visit { Session::Visiting } else { Session::AtHome };
                Step::Connect(self.connect(now, index, (destination, admission), snapshot, worker))
            }
            Picked::Busy => self.lacks(now, since, Lack::Places(None), cluster),
            Picked::Nobody => self.lacks(now, since, Lack::Destinations, cluster),
        }
    }
}

/// How long the configuration lets the client wait in all.
fn patience(route: Option<Duration>, rules: &RetryRules) -> Option<Duration> {
    let client = rules.client_timeout.map(|timeout| {
        let kept = 100u32.saturating_sub(u32::from(rules.network_margin_percent));
        timeout * kept / 100
    });
    match (route, client) {
        (Some(route), Some(client)) => Some(route.min(client)),
        (Some(one), None) | (None, Some(one)) => Some(one),
        (None, None) => None,
    }
}
