//! The time that a gRPC call's client has, within the total deadline.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use exchange::{Exchange, Reason, Snapshot, Step, Worker};
use model::cluster::Compat;
use model::request::{Fields, RequestFacts};
use model::time::Timestamp;
use support::{Board, Request, cluster, route, snapshot, whole};

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
