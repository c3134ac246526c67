//! The time that a gRPC call's client has, within the total deadline.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use exchange::{Exchange, Input, Reason, Snapshot, Step, Worker};
use model::cluster::Compat;
use model::outcome::{AttemptEnd, CallStatus, FailureKind, OutcomeClass, Progress};
use model::request::{Fields, RequestFacts};
use model::time::Timestamp;
use support::words::{ended, head};
use support::{Board, Request, came, cluster, route, snapshot, whole};

/// Fields of a request, in their order.
struct Lines<'a>(&'a [(&'a str, &'a str)]);

impl Fields for Lines<'_> {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        self.0.iter().filter(|(one, _)| *one == name).for_each(|(_, value)| visit(value.as_bytes()));
    }
}

const NOW: Timestamp = Timestamp::from_secs(1);
const CALL: (&str, &str) = ("content-type", "application/grpc");

fn begin(snapshot: &Snapshot, method: &str, lines: &[(&str, &str)]) -> (Option<Duration>, Step) {
    let request = Request::method(method);
    let facts = RequestFacts { fields: &Lines(lines), ..request.facts() };
    let (exchange, step) = Exchange::begin(NOW, &facts, snapshot, &mut Worker::new(1), &Board::default());
    (exchange.deadline().map(|deadline| deadline.since(NOW)), step)
}

fn of(timeout: Option<Duration>) -> Snapshot {
    snapshot(whole(&cluster(Compat::None, &["d1"])), &[route(timeout)])
}

#[test]
fn the_smallest_of_grpc_timeout_and_the_routes_is_the_total_deadline() {
    let route = of(Some(Duration::from_secs(2)));
    let patience = |value| begin(&route, "POST", &[CALL, ("grpc-timeout", value)]).0;
    assert_eq!(patience("500m"), Some(Duration::from_millis(500)));
    assert_eq!(patience("3S"), Some(Duration::from_secs(2)));
    assert_eq!(patience("99999999H"), Some(Duration::from_secs(2)));
    let open = of(None);
    assert_eq!(begin(&open, "POST", &[CALL, ("grpc-timeout", "1M")]).0, Some(Duration::from_secs(60)));
}

#[test]
fn what_is_malformed_or_said_twice_or_of_no_call_is_ignored() {
    let open = of(None);
    for value in ["1", "1s", "123456789m", "-1S", ""] {
        assert_eq!(begin(&open, "POST", &[CALL, ("grpc-timeout", value)]).0, None, "{value}");
    }
    let twice = [CALL, ("grpc-timeout", "1S"), ("grpc-timeout", "2S")];
    assert_eq!(begin(&open, "POST", &twice).0, None);
    assert_eq!(begin(&open, "POST", &[("content-type", "text/plain"), ("grpc-timeout", "1S")]).0, None);
    assert_eq!(begin(&open, "GET", &[CALL, ("grpc-timeout", "1S")]).0, None);
}

#[test]
fn a_call_that_has_no_time_left_is_tried_nowhere() {
    let (_, step) = begin(&of(None), "POST", &[CALL, ("grpc-timeout", "0n")]);
    assert!(matches!(step, Step::Answer(answer) if answer.reason == Reason::Deadline && answer.status == 504));
}

#[test]
fn a_deadline_of_the_clients_own_is_held_against_nobody_and_one_of_ours_is() {
    let class_of = |route: Option<Duration>, timeout: &str, input: Input| {
        let (snapshot, board) = (of(route), Board::default());
        let request = Request::method("POST");
        let lines = [CALL, ("grpc-timeout", timeout)];
        let facts = RequestFacts { fields: &Lines(&lines), ..request.facts() };
        let mut worker = Worker::new(1);
        let (mut exchange, _) = Exchange::begin(NOW, &facts, &snapshot, &mut worker, &board);
        exchange.handle(NOW, head(200), &snapshot, &mut worker, &board);
        exchange.handle(NOW, input, &snapshot, &mut worker, &board);
        exchange.report().unwrap().outcome
    };
    let said = AttemptEnd { call: Some(CallStatus::DEADLINE_EXCEEDED), ..came(200) };
    let said = Input::ResponseEnded { end: said };
    let theirs = class_of(None, "1S", said);
    assert_eq!((theirs.class, theirs.failure), (OutcomeClass::Neutral, Some(FailureKind::ClientDeadline)));
    let ours = class_of(Some(Duration::from_millis(500)), "1S", said);
    assert_eq!((ours.class, ours.failure), (OutcomeClass::Timeout, Some(FailureKind::Status)));
    // The idle timeout of 60 s is a limit, too.
    assert_eq!(class_of(None, "60S", said).class, OutcomeClass::Timeout);

    let silent = |route| {
        let (snapshot, board) = (of(route), Board::default());
        let request = Request::method("POST");
        let lines = [CALL, ("grpc-timeout", "1S")];
        let facts = RequestFacts { fields: &Lines(&lines), ..request.facts() };
        let mut worker = Worker::new(1);
        let (mut exchange, _) = Exchange::begin(NOW, &facts, &snapshot, &mut worker, &board);
        exchange.handle(NOW + Duration::from_secs(1), Input::DeadlineReached, &snapshot, &mut worker, &board);
        exchange.report().unwrap().outcome.class
    };
    assert_eq!(silent(None), OutcomeClass::Neutral);
    assert_eq!(silent(Some(Duration::from_secs(1))), OutcomeClass::Timeout);
}

#[test]
fn a_call_that_is_told_of_little_time_and_cannot_keep_it_is_held_against_nobody() {
    let snapshot = snapshot(whole(&cluster(Compat::None, &["d1", "d2"])), &[route(Some(Duration::from_secs(1)))]);
    let second = |refused_after: u64, lines: &[(&str, &str)]| {
        let (request, board, mut worker) = (Request::method("POST"), Board::default(), Worker::new(1));
        let facts = RequestFacts { fields: &Lines(lines), ..request.facts() };
        let (mut exchange, _) = Exchange::begin(NOW, &facts, &snapshot, &mut worker, &board);
        let refused = ended(Progress::NotSent, FailureKind::Refused);
        let now = NOW + Duration::from_millis(refused_after);
        let step = exchange.handle(now, refused, &snapshot, &mut worker, &board);
        assert!(matches!(step, Step::Connect(_)), "{step:?}");
        exchange.handle(now, head(200), &snapshot, &mut worker, &board);
        let said = AttemptEnd { call: Some(CallStatus::DEADLINE_EXCEEDED), ..came(200) };
        exchange.handle(now, Input::ResponseEnded { end: said }, &snapshot, &mut worker, &board);
        let outcome = exchange.report().unwrap().outcome;
        (outcome.class, outcome.failure)
    };
    let told = [CALL, ("grpc-timeout", "1S")];
    let blamed = (OutcomeClass::Timeout, Some(FailureKind::Status));
    assert_eq!(second(900, &told), (OutcomeClass::Neutral, Some(FailureKind::ShortDeadline)), "it had 100 ms of 1 s");
    assert_eq!(second(5, &told), blamed);
    assert_eq!(second(900, &[CALL]), blamed, "it was told of no time: it goes by its own");
}
