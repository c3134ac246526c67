//! The end of attempts: what is forwarded, what is reported, what balancing hears of it.

use balance::affinity::Pin;
use model::classify::classify;
use model::outcome::{AttemptEnd, CallStatus, FailureKind, Outcome, OutcomeClass, Try};

use super::{CallTime, Exchange, Given, Held, Patience, Repeat, Running, Session, State, Told, Worker};
use crate::snapshot::{ClusterView, Snapshot};
use crate::step::{Admission, Attempt, Content, Part, Report, Step};

impl Exchange {
    /// The head goes to the client, and with it the rest. A stream of events is told of now: its end may be hours away.
    pub(super) fn forward(
        &mut self,
        running: Running,
        head: &AttemptEnd,
        content: Content,
        cluster: Option<&ClusterView>,
    ) -> Step {
        let destination = running.attempt.destination;
        let class = classify(head);
        let is_good = match class {
            OutcomeClass::AppFail | OutcomeClass::Overload => false,
            OutcomeClass::Ok
            | OutcomeClass::ConnFail
            | OutcomeClass::Timeout
            | OutcomeClass::Cut
            | OutcomeClass::Slow
            | OutcomeClass::Neutral => true,
        };
        let has_affinity = cluster.is_some_and(|cluster| cluster.affinity.is_some());
        let is_visit = self.session == Session::Visiting;
        let is_new = has_affinity && is_good && !is_visit && self.pin != Pin::To(destination);
        self.new_pin = is_new.then_some(destination);
        self.new_side = self.drawn.filter(|_| is_good);
        self.held = Held::Nothing;
        let running = match content {
            Content::Events if class == OutcomeClass::Ok => {
                self.leave(running, head, Repeat::No);
                self.report = self.report.map(|report| Report { part: Part::Begun, ..report });
                // The gate, if there was one, goes with the report; a place stays taken for as long as the stream runs.
                let attempt = Attempt { admission: Admission::Open, ..running.attempt };
                Running { attempt, told: Told::Begun, ..running }
            }
            Content::Events | Content::Message => running,
        };
        self.state = State::Forwarding(running, head.status.unwrap_or_default());
        Step::Forward
    }

    pub(super) fn finish(
        &mut self,
        running: Running,
        end: &AttemptEnd,
        snapshot: &Snapshot,
        worker: &mut Worker,
    ) -> Step {
        self.state = State::Ended;
        match running.told {
            Told::Nothing => self.leave(running, end, Repeat::No),
            Told::Begun if classify(end) == OutcomeClass::Cut => {
                self.leave(running, end, Repeat::No);
                self.report = self.report.map(|report| Report { part: Part::Broken, ..report });
            }
            Told::Begun => return Step::Done,
        }
        if let Some(cluster) = self.cluster(snapshot) {
            self.charge(running, cluster, worker);
        }
        Step::Done
    }

    /// Writes the report of an ended attempt.
    pub(super) fn leave(&mut self, running: Running, end: &AttemptEnd, repeat: Repeat) {
        let end = &self.with_patience(running, end);
        let class = classify(end);
        let failure = match class {
            // What a destination says, by a status of either kind, is told from what its transport does.
            OutcomeClass::AppFail | OutcomeClass::Timeout => end.failure.or(Some(FailureKind::Status)),
            OutcomeClass::Ok
            | OutcomeClass::Overload
            | OutcomeClass::ConnFail
            | OutcomeClass::Cut
            | OutcomeClass::Slow
            | OutcomeClass::Neutral => end.failure,
        };
        self.report = Some(Report {
            cluster: running.attempt.cluster,
            destination: running.attempt.destination,
            picked_at: running.picked_at,
            which: Try::of_number(running.attempt.number),
            admission: running.attempt.admission,
            outcome: Outcome {
                class,
                failure,
                status: end.status,
                retryable: repeat == Repeat::Possible,
                client_gone: end.client_gone,
            },
            part: Part::Whole,
        });
    }

    /// Whose deadline it was that cut an attempt, or that the destination says it could not keep, and whether it was given
    /// the time.
    fn with_patience(&self, running: Running, end: &AttemptEnd) -> AttemptEnd {
        let is_late = match end.failure {
            Some(failure) => failure == FailureKind::Deadline,
            None => end.call == Some(CallStatus::DEADLINE_EXCEEDED),
        };
        // A call says to its destination how long its caller waits; others who are late are so by a clock of their own.
        let is_cut = match end.failure {
            Some(_) => end.status.is_none(),
            None => self.call_time == CallTime::Said,
        };
        match (self.patience, running.given) {
            (Patience::Client, _) if is_late => AttemptEnd { failure: Some(FailureKind::ClientDeadline), ..*end },
            (Patience::Ours, Given::Rest) if is_late && is_cut => {
                AttemptEnd { failure: Some(FailureKind::ShortDeadline), ..*end }
            }
            (Patience::Client | Patience::Ours, _) => *end,
        }
    }

    /// Tells the balancing policy of a failure that nginx counts.
    pub(super) fn charge(&self, running: Running, cluster: &ClusterView, worker: &mut Worker) {
        let is_counted = self.report.is_some_and(|report| match report.outcome.class {
            OutcomeClass::AppFail | OutcomeClass::Timeout => {
                report.outcome.failure != Some(FailureKind::Status) || report.outcome.retryable
            }
            OutcomeClass::ConnFail => true,
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
}
