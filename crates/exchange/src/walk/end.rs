//! The end of attempts: what is forwarded, what is reported, what balancing hears of it.

use balance::affinity::Pin;
use model::classify::{classify, status_class};
use model::outcome::{AttemptEnd, FailureKind, Outcome, OutcomeClass};

use super::{Exchange, Held, Repeat, Running, Session, State, Worker};
use crate::snapshot::{ClusterView, Snapshot};
use crate::step::{Report, Step};

impl Exchange {
    pub(super) fn forward(&mut self, running: Running, status: u16, has_affinity: bool) -> Step {
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
        let is_visit = self.session == Session::Visiting;
        let is_new = has_affinity && is_good && !is_visit && self.pin != Pin::To(destination);
        self.new_pin = is_new.then_some(destination);
        self.new_side = self.drawn.filter(|_| is_good);
        self.held = Held::Nothing;
        self.state = State::Forwarding(running, status);
        Step::Forward
    }

    pub(super) fn finish(
        &mut self,
        running: Running,
        end: &AttemptEnd,
        snapshot: &Snapshot,
        worker: &mut Worker,
    ) -> Step {
        self.leave(running, end, Repeat::No);
        if let Some(cluster) = self.cluster(snapshot) {
            self.charge(running, cluster, worker);
        }
        self.state = State::Ended;
        Step::Done
    }

    /// Writes the report of an ended attempt.
    pub(super) fn leave(&mut self, running: Running, end: &AttemptEnd, repeat: Repeat) {
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
    pub(super) fn charge(&self, running: Running, cluster: &ClusterView, worker: &mut Worker) {
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
}
