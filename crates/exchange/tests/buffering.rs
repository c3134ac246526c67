//! A request that is read whole before its destination is chosen.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use exchange::{Exchange, Input, Reason, Snapshot, Step, Worker};
use model::cluster::Compat;
use model::request::{BodyFacts, Fields, RequestFacts};
use model::route::Buffering;
use model::time::Timestamp;
use support::*;

const MOST: u64 = 1000;

fn buffering() -> Snapshot {
    let mut route = route(Some(Duration::from_secs(9)));
    route.policy.buffering = Buffering::On { request: MOST, response: 0 };
    snapshot(whole(&cluster(Compat::None, &["a", "b"])), &[route])
}

fn begin(snapshot: &Snapshot, body: BodyFacts, is_upgrade: bool) -> (Exchange, Step) {
    let request = Request::method("POST");
    let facts = RequestFacts { body, is_upgrade, ..request.facts() };
    Exchange::begin(Timestamp::ZERO, &facts, snapshot, &mut Worker::new(1), &Board::default())
}

#[test]
fn a_body_of_known_length_within_the_bound_is_gathered_and_no_other() {
    let snapshot = buffering();
    let gathers = |body| begin(&snapshot, body, false).1 == Step::Gather;
    assert!(gathers(BodyFacts::Length(1)) && gathers(BodyFacts::Length(MOST)));
    assert!(!gathers(BodyFacts::Length(MOST + 1)));
    assert!(!gathers(BodyFacts::Length(0)) && !gathers(BodyFacts::None) && !gathers(BodyFacts::Unknown));
    assert_ne!(begin(&snapshot, BodyFacts::Length(10), true).1, Step::Gather, "an upgrade");
}

#[test]
fn a_call_of_grpc_is_never_gathered_and_a_body_of_grpc_web_is_one_like_any_other() {
    struct ContentType(&'static str);
    impl Fields for ContentType {
        fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
            if name == "content-type" {
                visit(self.0.as_bytes());
            }
        }
    }
    let snapshot = buffering();
    for (value, is_gathered) in
        [("application/grpc", false), ("Application/gRPC+proto", false), ("application/grpc-web+proto", true)]
    {
        let (request, fields) = (Request::method("POST"), ContentType(value));
        let facts = RequestFacts { body: BodyFacts::Length(10), fields: &fields, ..request.facts() };
        let (_, step) = Exchange::begin(Timestamp::ZERO, &facts, &snapshot, &mut Worker::new(1), &Board::default());
        assert_eq!(step == Step::Gather, is_gathered, "{value}: {step:?}");
    }
}

#[test]
fn the_destination_is_chosen_from_what_is_available_once_the_body_is_there() {
    let before = buffering();
    let (mut exchange, step) = begin(&before, BodyFacts::Length(10), false);
    assert_eq!((step, exchange.attempts()), (Step::Gather, 0));
    // Meanwhile the first destination goes.
    let mut after = buffering();
    let mut view = whole(&cluster(Compat::None, &["a", "b"]));
    view.available = vec![1];
    after.clusters = vec![view.into()];
    let later = Timestamp::from_millis(5000);
    let step = exchange.handle(later, Input::Gathered, &after, &mut Worker::new(1), &Board::default());
    let Step::Connect(attempt) = step else { panic!("{step:?}") };
    assert_eq!((attempt.destination.0, attempt.number), (1, 1));
    assert_eq!(exchange.deadline(), Some(Timestamp::from_millis(9000)), "the client's time runs from its head on");
}

#[test]
fn what_ends_an_exchange_while_its_body_is_read_is_charged_to_nobody() {
    let snapshot = buffering();
    for (input, reason) in [(Input::ClientGone, Reason::ClientGone), (Input::DeadlineReached, Reason::Deadline)] {
        let (mut exchange, _) = begin(&snapshot, BodyFacts::Length(10), false);
        let step = exchange.handle(Timestamp::ZERO, input, &snapshot, &mut Worker::new(1), &Board::default());
        let Step::Answer(answer) = step else { panic!("{step:?}") };
        assert_eq!((answer.reason, exchange.report()), (reason, None));
    }
}
