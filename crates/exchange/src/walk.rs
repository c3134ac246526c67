//! The machine: one request from its head to the end of its answer.
//!
//! ```text
//!                 ┌── AttemptEnded, may go on ──┐   ┌── ResponseHead of a listed status, may go on ──┐
//!                 v      Step::Connect          │   v     Step::HoldThenConnect                      │
//!  begin ──> Attempting ────────────────────────┴───┴────────────────────────────────────────────────┘
//!    │          │  └─ ResponseHead ─────────> Forwarding ── ResponseEnded, DeadlineReached, ClientGone ──> Ended
//!    │          │       Step::Forward                        Step::Done                                      ^
//!    │          └─ AttemptEnded, may not; DeadlineReached; ClientGone: Step::Answer or Step::AnswerHeld ─────┤
//!    └─ bad path, no route, respond, redirect, deny, none available: Step::Answer ───────────────────────────┘
//! ```
//!
//! Inputs that do not fit the state change nothing. On the common path (one attempt, no cookie, up to 64 destinations)
//! nothing is allocated.

use std::time::Duration;

use balance::affinity::Pin;
use balance::{IndexSet, Turns};
use model::affinity::AffinityFailurePolicy;
use model::classify::{classify, status_class};
use model::cluster::Compat;
use model::id::{ClusterIndex, DestinationIndex};
use model::outcome::{AttemptEnd, FailureKind, Outcome, OutcomeClass, Progress};
use model::random::Random;
use model::request::RequestFacts;
use model::retry::RetryRules;
use model::time::Timestamp;
use retry::{Cost, Pool, Repeatable, Replay, RetryDenied, Target, Verdict, Walk};
use route::Found;

use crate::pick::{self, Picked};
use crate::reason::Reason;
use crate::snapshot::{ActionView, ClusterView, Snapshot};
use crate::step::{Admission, Answer, Attempt, Connection, Input, Placement, Report, Shared, Step};

/// What one worker keeps between exchanges.
#[derive(Debug)]
pub struct Worker {
    /// Whose turn it is.
    pub turns: Turns,
    /// Where its random choices come from.
    pub random: Random,
}

impl Worker {
    /// A worker that has served nothing yet; give each worker another seed.
    pub fn new(seed: u64) -> Self {
        Self { turns: Turns::new(), random: Random::new(seed) }
    }
}

/// One exchange. The caller keeps the snapshot it began with and passes the same one to every call.
#[derive(Debug)]
pub struct Exchange {
    state: State,
    placement: Placement,
    request: Repeatable,
    deadline: Option<Timestamp>,
    pin: Pin,
    tried: IndexSet,
    attempts: u8,
    timeouts: u8,
    resend: Resend,
    held: Held,
    new_pin: Option<DestinationIndex>,
    denied: Option<RetryDenied>,
    report: Option<Report>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// An attempt runs.
    Attempting(Running),
    /// Its response goes to the client.
    Forwarding(Running, u16),
    /// The answer is decided, no attempt runs.
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Running {
    attempt: Attempt,
    picked_at: Timestamp,
}

/// The one free resend of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resend {
    Unused,
    Used,
}

/// Whether the driver keeps a real response of an earlier attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Nothing,
    Response,
}

/// How the attempt that just ended is accounted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    Possible,
    No,
}

impl Exchange {
    /// The head of a request has arrived at `now`: finds its route and its first destination.
    pub fn begin(
        now: Timestamp,
        facts: &RequestFacts<'_>,
        snapshot: &Snapshot,
        worker: &mut Worker,
        shared: &impl Shared,
    ) -> (Self, Step) {
        let mut exchange = Self {
            state: State::Ended,
            placement: Placement::default(),
            request: Repeatable::of(facts),
            deadline: None,
            pin: Pin::Absent,
            tried: IndexSet::default(),
            attempts: 0,
            timeouts: 0,
            resend: Resend::Unused,
            held: Held::Nothing,
            new_pin: None,
            denied: None,
            report: None,
        };
        let step = exchange.start(now, facts, snapshot, worker, shared);
        exchange.check_invariants();
        (exchange, step)
    }

    /// Something happened. After each call [`Self::report`] may hold an ended attempt.
    pub fn handle(
        &mut self,
        now: Timestamp,
        input: Input,
        snapshot: &Snapshot,
        worker: &mut Worker,
        shared: &impl Shared,
    ) -> Step {
        let step = match (self.state, input) {
            (State::Attempting(running), Input::ResponseHead { status, retry_after, body_replayable }) => {
                let end = head(status, retry_after);
                match self.cluster(snapshot) {
                    Some(cluster) => {
                        let ground = Ground { now, cluster, shared };
                        self.head_arrived(running, status, &end, body_replayable, &ground, worker)
                    }
                    None => self.forward(running, status, false),
                }
            }
            (State::Attempting(running), Input::AttemptEnded { end, body_replayable }) => {
                self.attempt_ended(now, running, &end, body_replayable, snapshot, worker, shared)
            }
            (State::Attempting(running), Input::ResponseEnded { end }) => {
                self.attempt_ended(now, running, &end, Replay::Lost, snapshot, worker, shared)
            }
            (State::Attempting(running), Input::DeadlineReached) => {
                self.denied = Some(RetryDenied::Deadline);
                self.leave(running, &cut(FailureKind::Deadline, None), Repeat::No);
                self.last_answer(Reason::Deadline, self.compat(snapshot))
            }
            (State::Attempting(running), Input::ClientGone) => {
                self.leave(running, &cut(FailureKind::ClientGone, None), Repeat::No);
                self.answer(Answer::of(Reason::ClientGone))
            }
            (State::Forwarding(running, _), Input::ResponseEnded { end } | Input::AttemptEnded { end, .. }) => {
                self.finish(running, &end, snapshot, worker)
            }
            (State::Forwarding(running, status), Input::DeadlineReached) => {
                self.finish(running, &cut(FailureKind::Deadline, Some(status)), snapshot, worker)
            }
            (State::Forwarding(running, status), Input::ClientGone) => {
                self.finish(running, &cut(FailureKind::ClientGone, Some(status)), snapshot, worker)
            }
            (State::Forwarding(..), Input::ResponseHead { .. }) => Step::Forward,
            (
                State::Ended,
                Input::ResponseHead { .. }
                | Input::AttemptEnded { .. }
                | Input::ResponseEnded { .. }
                | Input::DeadlineReached
                | Input::ClientGone,
            ) => Step::Done,
        };
        self.check_invariants();
        step
    }

    /// The attempt that ended with the last call, once.
    pub fn report(&mut self) -> Option<Report> {
        self.report.take()
    }

    /// When [`Input::DeadlineReached`] is due; `None`: never.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// The destination that the response pins the client to: the driver adds a Set-Cookie with its key. Known from
    /// [`Step::Forward`] on.
    pub fn new_pin(&self) -> Option<DestinationIndex> {
        self.new_pin
    }

    /// Why the last failed attempt was not repeated; `None` when nothing was refused.
    pub fn retry_denied(&self) -> Option<RetryDenied> {
        self.denied
    }

    /// The route and the cluster.
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// Attempts so far, the free resend not counted.
    pub fn attempts(&self) -> u8 {
        self.attempts
    }

    /// The driver could not keep the held response: [`Step::AnswerHeld`] will not come for it.
    pub fn drop_held(&mut self) {
        self.held = Held::Nothing;
    }

    fn start(
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
        let index = match &view.action {
            ActionView::Cluster(index) => *index,
            ActionView::NoCluster => return self.answer(Answer::of(Reason::NoCluster)),
            ActionView::Respond { status, body } => {
                let answer = Answer { status: *status, body: Some(body.clone()), ..Answer::of(Reason::Route) };
                return self.answer(answer);
            }
            ActionView::Redirect { to, status } => {
                let answer = Answer { status: *status, location: Some(to.clone()), ..Answer::of(Reason::Route) };
                return self.answer(answer);
            }
            ActionView::Deny(status) => return self.answer(Answer { status: *status, ..Answer::of(Reason::Route) }),
        };
        let Some(cluster) = snapshot.clusters.get(index.index()) else {
            return self.answer(Answer::of(Reason::NoCluster));
        };
        self.placement.cluster = Some(index);
        self.deadline = patience(view.timeout, &cluster.retry).map(|patience| now + patience);
        self.pin = pick::pin(cluster, facts.fields);
        match pick::first(cluster, self.pin, worker, shared) {
            Picked::One(destination, admission) => Step::Connect(self.connect(now, index, destination, admission)),
            Picked::Nobody => self.answer(Answer::of(nobody(cluster.compat))),
            Picked::PinLost => self.answer(Answer::of(Reason::AffinityLost)),
        }
    }

    /// A head: repeated elsewhere when its status is listed and all else allows it, forwarded otherwise.
    fn head_arrived(
        &mut self,
        running: Running,
        status: u16,
        end: &AttemptEnd,
        replay: Replay,
        ground: &Ground<'_, impl Shared>,
        worker: &mut Worker,
    ) -> Step {
        if !ground.cluster.retry.conditions.statuses.contains(&status) {
            return self.forward(running, status, ground.cluster.affinity.is_some());
        }
        match self.decide(end, replay, ground) {
            Ok(_) => {}
            Err(denied) => {
                self.denied = Some(denied);
                return self.forward(running, status, ground.cluster.affinity.is_some());
            }
        }
        match pick::next(ground.cluster, &self.tried, worker, ground.shared) {
            Picked::One(destination, admission) => {
                self.leave(running, end, Repeat::Possible);
                self.charge(running, ground.cluster, worker);
                self.held = Held::Response;
                let cluster = running.attempt.cluster;
                Step::HoldThenConnect(self.connect(ground.now, cluster, destination, admission))
            }
            // nginx has given the response up before it looks for the next server.
            Picked::Nobody | Picked::PinLost if ground.cluster.compat == Compat::Nginx => {
                self.leave(running, end, Repeat::Possible);
                self.charge(running, ground.cluster, worker);
                self.denied = Some(RetryDenied::Untried);
                self.answer(Answer::of(Reason::NoLiveUpstreams))
            }
            Picked::Nobody | Picked::PinLost => {
                self.denied = Some(RetryDenied::Untried);
                self.forward(running, status, ground.cluster.affinity.is_some())
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the same six that every call of the machine gets")]
    fn attempt_ended(
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
        let ground = Ground { now, cluster, shared };
        match self.decide(end, replay, &ground) {
            Ok(Target::SameFresh) => {
                // The gate, if there is one, passes on to the resend.
                let left = Running { attempt: Attempt { admission: Admission::Open, ..running.attempt }, ..running };
                self.leave(left, end, Repeat::Possible);
                self.resend = Resend::Used;
                let attempt = Attempt { connection: Connection::Fresh, ..running.attempt };
                self.state = State::Attempting(Running { attempt, picked_at: now });
                Step::Connect(attempt)
            }
            Ok(Target::Next) => {
                self.leave(running, end, Repeat::Possible);
                self.charge(running, cluster, worker);
                if matches!(end.failure, Some(FailureKind::HeadTimeout)) {
                    self.timeouts = self.timeouts.saturating_add(1);
                }
                match pick::next(cluster, &self.tried, worker, shared) {
                    Picked::One(destination, admission) => {
                        Step::Connect(self.connect(now, running.attempt.cluster, destination, admission))
                    }
                    Picked::Nobody | Picked::PinLost => {
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

    /// Asks the rules, then the budget.
    fn decide(
        &self,
        end: &AttemptEnd,
        replay: Replay,
        ground: &Ground<'_, impl Shared>,
    ) -> Result<Target, RetryDenied> {
        let cluster = ground.cluster;
        let walk = Walk {
            attempts: self.attempts,
            peers: cluster.picker.peers(),
            timeouts: self.timeouts,
            is_stale_used: self.resend == Resend::Used,
            replay,
            time_left: self.deadline.map(|deadline| deadline.since(ground.now)),
            pool: if self.is_bound(cluster) { Pool::Empty } else { pick::pool(cluster, &self.tried, ground.shared) },
        };
        match retry::decide(&cluster.retry, cluster.compat, &self.request, end, &walk) {
            Verdict::Retry { target, cost, .. } => {
                if cost == Cost::FREE || ground.shared.withdraw(cluster.budget, cost) {
                    Ok(target)
                } else {
                    Err(RetryDenied::Budget)
                }
            }
            Verdict::Denied(denied) => Err(denied),
        }
    }

    /// Whether the client's session lives on one destination and nowhere else.
    fn is_bound(&self, cluster: &ClusterView) -> bool {
        let policy = cluster.affinity.as_ref().map(|affinity| affinity.failure_policy);
        self.pin != Pin::Absent && policy == Some(AffinityFailurePolicy::Return503Error)
    }

    fn connect(
        &mut self,
        now: Timestamp,
        cluster: ClusterIndex,
        destination: DestinationIndex,
        admission: Admission,
    ) -> Attempt {
        self.tried.insert(destination);
        self.attempts = self.attempts.saturating_add(1);
        let attempt = Attempt { cluster, destination, number: self.attempts, connection: Connection::Any, admission };
        self.state = State::Attempting(Running { attempt, picked_at: now });
        attempt
    }

    fn forward(&mut self, running: Running, status: u16, has_affinity: bool) -> Step {
        let destination = running.attempt.destination;
        let is_good = match status_class(Some(status), false) {
            OutcomeClass::AppFail | OutcomeClass::Overload => false,
            OutcomeClass::Ok
            | OutcomeClass::ConnFail
            | OutcomeClass::Timeout
            | OutcomeClass::Cut
            | OutcomeClass::Slow
            | OutcomeClass::Neutral => true,
        };
        let is_new = has_affinity && is_good && self.pin != Pin::To(destination);
        self.new_pin = is_new.then_some(destination);
        self.held = Held::Nothing;
        self.state = State::Forwarding(running, status);
        Step::Forward
    }

    fn finish(&mut self, running: Running, end: &AttemptEnd, snapshot: &Snapshot, worker: &mut Worker) -> Step {
        self.leave(running, end, Repeat::No);
        if let Some(cluster) = self.cluster(snapshot) {
            self.charge(running, cluster, worker);
        }
        self.state = State::Ended;
        Step::Done
    }

    /// Writes the report of an ended attempt.
    fn leave(&mut self, running: Running, end: &AttemptEnd, repeat: Repeat) {
        let class = classify(end);
        let failure = match class {
            OutcomeClass::AppFail => end.failure.or(Some(FailureKind::Status)),
            OutcomeClass::Ok
            | OutcomeClass::Overload
            | OutcomeClass::ConnFail
            | OutcomeClass::Timeout
            | OutcomeClass::Cut
            | OutcomeClass::Slow
            | OutcomeClass::Neutral => end.failure,
        };
        self.report = Some(Report {
            cluster: running.attempt.cluster,
            destination: running.attempt.destination,
            picked_at: running.picked_at,
            admission: running.attempt.admission,
            outcome: Outcome {
                class,
                failure,
                status: end.status,
                retryable: repeat == Repeat::Possible,
                client_gone: end.client_gone,
            },
        });
    }

    /// Tells the balancing policy of a failure that nginx counts.
    fn charge(&self, running: Running, cluster: &ClusterView, worker: &mut Worker) {
        let is_counted = self.report.is_some_and(|report| match report.outcome.class {
            OutcomeClass::AppFail => report.outcome.failure != Some(FailureKind::Status) || report.outcome.retryable,
            OutcomeClass::ConnFail | OutcomeClass::Timeout => true,
            OutcomeClass::Ok
            | OutcomeClass::Overload
            | OutcomeClass::Cut
            | OutcomeClass::Slow
            | OutcomeClass::Neutral => false,
        });
        if is_counted {
            cluster.picker.failed(running.attempt.destination, &mut worker.turns, &mut worker.random);
        }
    }

    /// The best answer when no attempt is left: a real one that was held before one of our own. nginx knows only the
    /// last attempt's.
    fn last_answer(&mut self, reason: Reason, compat: Compat) -> Step {
        match (self.held, compat) {
            (Held::Response, Compat::None | Compat::Yarp) => {
                self.state = State::Ended;
                Step::AnswerHeld
            }
            (Held::Response, Compat::Nginx) | (Held::Nothing, _) => self.answer(Answer::of(reason)),
        }
    }

    fn answer(&mut self, answer: Answer) -> Step {
        self.state = State::Ended;
        Step::Answer(answer)
    }

    fn cluster<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s ClusterView> {
        self.placement.cluster.and_then(|index| snapshot.clusters.get(index.index())).map(|cluster| &**cluster)
    }

    fn compat(&self, snapshot: &Snapshot) -> Compat {
        self.cluster(snapshot).map_or(Compat::None, |cluster| cluster.compat)
    }

    fn check_invariants(&self) {
        if let State::Attempting(running) | State::Forwarding(running, _) = self.state {
            debug_assert!(self.tried.contains(running.attempt.destination), "a running attempt's destination is tried");
            debug_assert_eq!(self.placement.cluster, Some(running.attempt.cluster), "no exchange changes its cluster");
            debug_assert_eq!(running.attempt.number, self.attempts, "the running attempt is the last one");
        }
        debug_assert!(
            self.new_pin.is_none() || !matches!(self.state, State::Attempting(_)),
            "only a forwarded response pins"
        );
    }
}

/// What a call of the machine looks at.
struct Ground<'a, S> {
    now: Timestamp,
    cluster: &'a ClusterView,
    shared: &'a S,
}

/// How long the client waits in all.
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

fn nobody(compat: Compat) -> Reason {
    match compat {
        Compat::Nginx => Reason::NoLiveUpstreams,
        Compat::None | Compat::Yarp => Reason::NoneAvailable,
    }
}

/// The end of an attempt whose head is all that is wanted of it.
fn head(status: u16, retry_after: bool) -> AttemptEnd {
    AttemptEnd {
        progress: Progress::HeadSeen,
        failure: None,
        status: Some(status),
        retry_after,
        response_bytes_seen: true,
        client_gone: false,
        reused: false,
    }
}

/// The end of an attempt that was cut off from our side.
fn cut(failure: FailureKind, status: Option<u16>) -> AttemptEnd {
    AttemptEnd {
        progress: if status.is_some() { Progress::Forwarded } else { Progress::Sent },
        failure: Some(failure),
        status,
        retry_after: false,
        response_bytes_seen: status.is_some(),
        client_gone: failure == FailureKind::ClientGone,
        reused: false,
    }
}
