//! The machine: one request from its head to the end of its answer.
//!
//! ```text
//!                 ┌── AttemptEnded, may go on ──┐   ┌── ResponseHead of a listed status, may go on ──┐
//!                 v      Step::Connect          │   v     Step::HoldThenConnect                      │
//!  begin ──> Attempting ────────────────────────┴───┴────────────────────────────────────────────────┘
//!    │          │  └─ ResponseHead ─────────> Forwarding ── ResponseEnded, DeadlineReached, ClientGone ──> Ended
//!    │          │       Step::Forward                        Step::Done                                      ^
//!    │          └─ AttemptEnded, may not; DeadlineReached; ClientGone: Step::Answer or Step::AnswerHeld ─────┤
//!    ├─ nobody can take it now: Step::Wait ──> Waiting ── Woken ──> Attempting, as from begin; WaitOver ──> Step::Answer
//!    ├─ the body is to be read first: Step::Gather ──> Gathering ── Gathered ──> Attempting, as from begin
//!    └─ bad path, no route, not admitted, respond, redirect, deny, none available: Step::Answer ───────────────────────────┘
//! ```
//!
//! Inputs that do not fit the state change nothing. On the common path (one attempt, no cookie, up to 64 destinations)
//! nothing is allocated.
//!
//! This file has the inputs, `state` what is remembered; `start` begins, `next` decides what follows an attempt, `pace` how
//! long one may take, `wait` waits for a place, `end` forwards and reports; `facts` is what the driver may ask.

mod state;

mod start;

mod next;

mod pace;

mod wait;

mod end;

mod facts;

mod worker;

use std::time::Duration;

use balance::affinity::Pin;
use balance::{IndexSet, Key};
use model::cluster::Compat;
use model::id::{ClusterIndex, DestinationIndex};
use model::outcome::{AttemptEnd, FailureKind, Progress};
use model::request::RequestFacts;
use model::retry::RetryRules;
use model::time::Timestamp;
use retry::{Repeatable, Replay, RetryDenied};

use self::next::Ground;
use self::state::{CallTime, Given, Held, Patience, Repeat, Resend, Running, Session, State, Told};
pub use self::worker::Worker;
use crate::reason::Reason;
use crate::snapshot::{ClusterView, RouteView, Snapshot};
use crate::step::{Admission, Answer, Attempt, Connection, Input, Placement, Report, Shared, Step};
use crate::transform::Rewritten;

/// One exchange. The caller keeps the snapshot it began with and passes the same one to every call; only with
/// [`Input::Gathered`] it may change to a newer one of the same configuration, since time has passed, and while the
/// exchange waits to one that [`Exchange::follow`] allows.
#[derive(Debug)]
pub struct Exchange {
    state: State,
    placement: Placement,
    request: Repeatable,
    /// Attempts of proxies before this one.
    before: u8,
    deadline: Option<Timestamp>,
    /// It waits for a destination until then at least: the end in sight had come while the process stood still. Once.
    put_off: Option<Timestamp>,
    /// What a first attempt may have; one to which the deadline leaves much less has not missed it.
    most: Duration,
    /// Whose patience `deadline` is.
    patience: Patience,
    call_time: CallTime,
    pin: Pin,
    key: Key,
    tried: IndexSet,
    attempts: u8,
    timeouts: u8,
    resend: Resend,
    held: Held,
    new_pin: Option<DestinationIndex>,
    session: Session,
    /// The side that was drawn for a client that a cookie keeps there.
    drawn: Option<usize>,
    new_side: Option<usize>,
    /// What goes on in place of what came, on routes that change it.
    rewritten: Option<Box<Rewritten>>,
    denied: Option<RetryDenied>,
    report: Option<Report>,
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
            before: facts.attempt.saturating_sub(1),
            deadline: None,
            put_off: None,
            most: Duration::ZERO,
            patience: Patience::Ours,
            call_time: CallTime::Unsaid,
            pin: Pin::Absent,
            key: Key::default(),
            tried: IndexSet::default(),
            attempts: 0,
            timeouts: 0,
            resend: Resend::Unused,
            held: Held::Nothing,
            new_pin: None,
            session: Session::AtHome,
            drawn: None,
            new_side: None,
            rewritten: None,
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
            (State::Gathering, Input::Gathered) => match self.placement.cluster.zip(self.cluster(snapshot)) {
                Some((index, cluster)) => self.first(now, index, cluster, snapshot, worker, shared),
                None => self.answer(Answer::of(Reason::NoCluster)),
            },
            (State::Gathering, Input::DeadlineReached) => self.answer(Answer::of(Reason::Deadline)),
            (State::Gathering, Input::ClientGone) => self.answer(Answer::of(Reason::ClientGone)),
            // No attempt runs that could have got so far.
            (
                State::Gathering,
                Input::ResponseHead { .. }
                | Input::AttemptEnded { .. }
                | Input::ResponseEnded { .. }
                | Input::Woken
                | Input::WaitOver
                | Input::QueueFull,
            ) => Step::Gather,
            (State::Waiting(waiting), input) => self.waiting(now, waiting, &input, snapshot, worker, shared),
            (State::Attempting(running), Input::Gathered | Input::Woken | Input::WaitOver | Input::QueueFull) => {
                Step::Connect(running.attempt)
            }
            (State::Attempting(running), Input::ResponseHead { status, retry_after, body_replayable, content }) => {
                let head = AttemptEnd { retry_after, ..cut(None, Some(status)) };
                match self.cluster(snapshot) {
                    Some(cluster) => {
                        if shared.is_awake_since(running.picked_at) {
                            self.learn(now, running, &head, snapshot, worker);
                        }
                        let ground = Ground { now, cluster, snapshot, shared };
                        self.head_arrived(running, &head, content, body_replayable, &ground, worker)
                    }
                    None => self.forward(running, &head, content, None),
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
                self.leave(running, &cut(Some(FailureKind::Deadline), None), Repeat::No);
                self.last_answer(Reason::Deadline, self.compat(snapshot))
            }
            (State::Attempting(running), Input::ClientGone) => {
                self.leave(running, &cut(Some(FailureKind::ClientGone), None), Repeat::No);
                self.answer(Answer::of(Reason::ClientGone))
            }
            (State::Forwarding(running, _), Input::ResponseEnded { end } | Input::AttemptEnded { end, .. }) => {
                self.finish(running, &end, snapshot, worker)
            }
            (State::Forwarding(running, status), Input::DeadlineReached) => {
                self.finish(running, &cut(Some(FailureKind::Deadline), Some(status)), snapshot, worker)
            }
            (State::Forwarding(running, status), Input::ClientGone) => {
                self.finish(running, &cut(Some(FailureKind::ClientGone), Some(status)), snapshot, worker)
            }
            (
                State::Forwarding(..),
                Input::ResponseHead { .. } | Input::Gathered | Input::Woken | Input::WaitOver | Input::QueueFull,
            ) => Step::Forward,
            (
                State::Ended,
                Input::Gathered
                | Input::Woken
                | Input::WaitOver
                | Input::QueueFull
                | Input::ResponseHead { .. }
                | Input::AttemptEnded { .. }
                | Input::ResponseEnded { .. }
                | Input::DeadlineReached
                | Input::ClientGone,
            ) => Step::Done,
        };
        self.check_invariants();
        step
    }

    /// The driver could not keep the held response: [`Step::AnswerHeld`] will not come for it.
    pub fn drop_held(&mut self) {
        self.held = Held::Nothing;
    }

    /// The rules that hold for it: the route's own, or its cluster's.
    fn rules<'s>(&self, cluster: &'s ClusterView, snapshot: &'s Snapshot) -> &'s RetryRules {
        let own = self.route(snapshot).map(|route| route.retry.as_slice()).unwrap_or_default();
        let found = own.iter().find(|(index, _)| Some(*index) == self.placement.cluster);
        found.map_or(&cluster.retry, |(_, rules)| rules)
    }

    fn route<'s>(&self, snapshot: &'s Snapshot) -> Option<&'s RouteView> {
        self.placement.route.and_then(|route| snapshot.routes.get(route.index()))
    }

    fn connect(
        &mut self,
        now: Timestamp,
        cluster: ClusterIndex,
        (destination, admission): (DestinationIndex, Admission),
        snapshot: &Snapshot,
        worker: &mut Worker,
    ) -> Attempt {
        self.tried.insert(destination);
        self.attempts = self.attempts.saturating_add(1);
        let limit = self.limit(now, snapshot, worker);
        let attempt =
            Attempt { cluster, destination, number: self.attempts, connection: Connection::Any, admission, limit };
        self.run(now, attempt);
        attempt
    }

    /// The attempt begins.
    fn run(&mut self, now: Timestamp, attempt: Attempt) {
        // The first one may have waited for its turn. Whoever hangs must be charged by it, or by nobody: behind a queue all wait.
        let least = if attempt.number == 1 { self.most / 2 } else { self.most / 10 * 9 };
        let given = match self.deadline {
            Some(deadline) if deadline.since(now) < least => Given::Rest,
            Some(_) | None => Given::Enough,
        };
        self.state = State::Attempting(Running { attempt, picked_at: now, told: Told::Nothing, given });
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

/// The end of an attempt as far as it shows from our side: a head that came, or an attempt that was cut off.
fn cut(failure: Option<FailureKind>, status: Option<u16>) -> AttemptEnd {
    AttemptEnd {
        progress: match (failure, status) {
            (None, _) => Progress::HeadSeen,
            (Some(_), Some(_)) => Progress::Forwarded,
            (Some(_), None) => Progress::Sent,
        },
        failure,
        status,
        call: None,
        retry_after: false,
        response_bytes_seen: status.is_some(),
        client_gone: failure == Some(FailureKind::ClientGone),
        reused: false,
    }
}
