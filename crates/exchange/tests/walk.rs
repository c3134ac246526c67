//! Each transition of the machine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use exchange::step::Part;
use exchange::{Admission, Exchange, Input, Reason, RetryDenied, Step, Worker};
use model::available::Because;
use model::cluster::Compat;
use model::id::{DestinationIndex, Slot};
use model::outcome::{AttemptEnd, FailureKind, OutcomeClass, Progress};
use model::route::{Route, RouteAction};
use model::time::Timestamp;
use support::words::{ended, events, head, word};
use support::*;

#[test]
fn a_good_answer_is_forwarded_and_reported_once_it_has_ended() {
    let cluster = cluster(Compat::None, &["a", "b"]);
    let (snapshot, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    let (mut walk, step) = Walk::begin(&Request::get(), &snapshot, &board);
    assert_eq!(word(&step), "connect 0");
    assert_eq!(walk.handle(head(200)), Step::Forward);
    assert_eq!(walk.exchange.report(), None);
    assert_eq!(walk.handle(Input::ResponseEnded { end: came(200) }), Step::Done);
    let report = walk.exchange.report().unwrap();
    assert_eq!((report.destination, report.outcome.class), (DestinationIndex(0), OutcomeClass::Ok));
    assert_eq!(walk.exchange.report(), None);
    assert_eq!((walk.exchange.retry_denied(), walk.exchange.new_pin(), board.spent.get()), (None, None, 0));
    assert_eq!(walk.handle(head(200)), Step::Done, "nothing happens after the end");
}

#[test]
fn a_stream_of_events_is_ok_with_its_head_and_only_a_break_is_told_later() {
    let cluster = cluster(Compat::None, &["a", "b"]);
    let (snapshot, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    let broken = AttemptEnd { failure: Some(FailureKind::BodyCut), ..came(200) };
    let late = AttemptEnd { failure: Some(FailureKind::Deadline), ..came(200) };
    let ends = [
        (Input::ResponseEnded { end: came(200) }, None),
        (Input::ClientGone, None),
        (Input::ResponseEnded { end: late }, None),
        (Input::ResponseEnded { end: broken }, Some(OutcomeClass::Cut)),
    ];
    for (input, told) in ends {
        let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
        assert_eq!(walk.handle(events(200)), Step::Forward);
        let report = walk.exchange.report().unwrap();
        assert_eq!((report.part, report.outcome.class), (Part::Begun, OutcomeClass::Ok));
        assert_eq!(walk.handle(input), Step::Done);
        let report = walk.exchange.report();
        assert_eq!(report.map(|report| report.outcome.class), told, "{input:?}");
        assert!(report.is_none_or(|report| report.part == Part::Broken));
    }
    // What is no success is told when it is over, as ever.
    let (mut walk, _) = Walk::begin(&Request::method("POST"), &snapshot, &board);
    assert_eq!(walk.handle(events(500)), Step::Forward);
    assert_eq!(walk.exchange.report(), None);
    walk.handle(Input::ResponseEnded { end: came(500) });
    assert_eq!(walk.exchange.report().unwrap().outcome.class, OutcomeClass::AppFail);
}

#[test]
fn each_attempt_is_reported_with_its_own_end() {
    let cluster = cluster(Compat::None, &["a", "b", "c"]);
    let (snapshot, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    for (input, at, class, failure, retryable) in [
        (
            ended(Progress::Sent, FailureKind::HeadTimeout),
            0,
            OutcomeClass::Timeout,
            Some(FailureKind::HeadTimeout),
            true,
        ),
        (head(503), 1, OutcomeClass::AppFail, Some(FailureKind::Status), true),
        (ended(Progress::NotSent, FailureKind::Refused), 2, OutcomeClass::ConnFail, Some(FailureKind::Refused), false),
    ] {
        walk.handle(input);
        let report = walk.exchange.report().unwrap();
        assert_eq!(report.destination, DestinationIndex(at));
        assert_eq!((report.outcome.class, report.outcome.failure), (class, failure));
        assert_eq!(report.outcome.retryable, retryable);
        assert_eq!(report.picked_at, walk.now);
    }
}

#[test]
fn the_deadline_runs_from_the_head_and_cuts_the_running_attempt() {
    let mut one = cluster(Compat::None, &["a", "b"]);
    one.retry.client_timeout = Some(Duration::from_secs(10));
    let at = |routed: Option<u64>, client: Option<u64>| {
        let mut cluster = one.clone();
        cluster.retry.client_timeout = client.map(Duration::from_secs);
        let (snapshot, board) =
            (snapshot(whole(&cluster), &[route(routed.map(Duration::from_secs))]), Board::default());
        Walk::begin(&Request::get(), &snapshot, &board).0.exchange.deadline()
    };
    assert_eq!(at(None, None), None);
    assert_eq!(at(Some(20), None), Some(Timestamp::from_secs(21)));
    assert_eq!(at(Some(20), Some(10)), Some(Timestamp::from_secs(10)), "10 s less a tenth, from 1 s on");
    assert_eq!(at(Some(2), Some(10)), Some(Timestamp::from_secs(3)));

    let (snapshot, board) = (snapshot(whole(&one), &[route(Some(Duration::from_secs(2)))]), Board::default());
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    walk.now = Timestamp::from_secs(3);
    assert_eq!(word(&walk.handle(Input::DeadlineReached)), "504 deadline");
    let report = walk.exchange.report().unwrap();
    assert_eq!((report.outcome.class, report.outcome.failure), (OutcomeClass::Timeout, Some(FailureKind::Deadline)));
    assert_eq!(walk.exchange.retry_denied(), Some(RetryDenied::Deadline));
    // A failure just before the end is not repeated.
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    walk.now = Timestamp::from_millis(2996);
    assert_eq!(word(&walk.handle(ended(Progress::Sent, FailureKind::Reset))), "502 connection-reset");
    assert_eq!(walk.exchange.retry_denied(), Some(RetryDenied::Deadline));
    // Once forwarded, the deadline ends the exchange and holds nothing against the destination.
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    walk.handle(head(200));
    assert_eq!(walk.handle(Input::DeadlineReached), Step::Done);
    assert_eq!(walk.exchange.report().unwrap().outcome.class, OutcomeClass::Neutral);
}

#[test]
fn an_attempt_that_gets_the_rest_of_the_total_alone_has_not_missed_it() {
    let cut_at_the_end = |per_try: Option<u64>, fails_at: u64, failure| {
        let mut cluster = cluster(Compat::None, &["a", "b"]);
        cluster.retry.per_try_timeout = per_try.map(Duration::from_millis);
        let (snapshot, board) = (snapshot(whole(&cluster), &[route(Some(Duration::from_secs(2)))]), Board::default());
        let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
        walk.now = Timestamp::from_millis(1000 + fails_at);
        assert_eq!(word(&walk.handle(ended(Progress::Sent, failure))), "connect 1");
        assert_ne!(walk.exchange.report().unwrap().outcome.class, OutcomeClass::Neutral);
        walk.now = Timestamp::from_secs(3);
        assert_eq!(word(&walk.handle(Input::DeadlineReached)), "504 deadline");
        let outcome = walk.exchange.report().unwrap().outcome;
        (outcome.class, outcome.failure)
    };
    let blamed = (OutcomeClass::Timeout, Some(FailureKind::Deadline));
    let spared = (OutcomeClass::Neutral, Some(FailureKind::ShortDeadline));
    assert_eq!(cut_at_the_end(None, 1980, FailureKind::Reset), spared, "it had 20 ms of 2 s");
    assert_eq!(cut_at_the_end(None, 201, FailureKind::Reset), spared);
    assert_eq!(cut_at_the_end(None, 200, FailureKind::Reset), blamed, "it had nine tenths");
    // What an attempt may have at most is `per_try_timeout` where that is shorter.
    assert_eq!(cut_at_the_end(Some(1000), 1005, FailureKind::TryTimeout), blamed, "it had as good as a whole one");
    assert_eq!(cut_at_the_end(Some(1500), 1500, FailureKind::TryTimeout), spared, "it had a third of one");
}

#[test]
fn a_client_that_leaves_ends_it_and_says_nothing_of_the_destination() {
    for forwarded in [None, Some(head(200))] {
        let cluster = cluster(Compat::None, &["a", "b"]);
        let (snapshot, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
        let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
        forwarded.map(|input| walk.handle(input));
        let step = walk.handle(Input::ClientGone);
        assert_eq!(word(&step), if forwarded.is_some() { "done" } else { "499 client-gone" });
        let outcome = walk.exchange.report().unwrap().outcome;
        assert_eq!((outcome.class, outcome.client_gone), (OutcomeClass::Neutral, true));
        assert_eq!(walk.exchange.retry_denied(), None);
    }
}

#[test]
fn gates_are_claimed_and_one_that_is_taken_counts_as_not_available() {
    let cluster = cluster(Compat::None, &["a", "b"]);
    let states = |gated: [bool; 2]| {
        [0u32, 1].map(|at| State { slot: Slot(at), because: Because::Health, is_gated: gated[at as usize] })
    };
    let both = snapshot(view(&cluster, &states([true, true]), vec![0, 1]), &[route(None)]);
    let board = Board::default();
    let attempt = |step: Step| match step {
        Step::Connect(attempt) => Some((attempt.destination.0, attempt.admission)),
        Step::Gather
        | Step::Wait { .. }
        | Step::HoldThenConnect(_)
        | Step::Forward
        | Step::AnswerHeld
        | Step::Answer(_)
        | Step::Done => None,
    };
    assert_eq!(attempt(Walk::begin(&Request::get(), &both, &board).1), Some((0, Admission::Gate)));
    assert_eq!(attempt(Walk::begin(&Request::get(), &both, &board).1), Some((1, Admission::Gate)));
    assert_eq!(word(&Walk::begin(&Request::get(), &both, &board).1), "503 none-available");
    let first = snapshot(view(&cluster, &states([true, false]), vec![0, 1]), &[route(None)]);
    assert_eq!(attempt(Walk::begin(&Request::get(), &first, &board).1), Some((1, Admission::Open)));
    // A stale connection's resend takes the gate over; the report does not give it back.
    board.taken.replace([].into());
    let (mut walk, _) = Walk::begin(&Request::get(), &first, &board);
    let step = walk.handle(ended(Progress::StaleReuse, FailureKind::Closed));
    assert_eq!(attempt(step), Some((0, Admission::Gate)));
    assert_eq!(walk.exchange.report().unwrap().admission, Admission::Open);
    walk.handle(head(200));
    walk.handle(Input::ResponseEnded { end: came(200) });
    assert_eq!(walk.exchange.report().unwrap().admission, Admission::Gate);
}

#[test]
fn nobody_available_is_503_and_502_under_nginx() {
    for (compat, expected) in [
        (Compat::None, "503 none-available"),
        (Compat::Yarp, "503 none-available"),
        (Compat::Nginx, "502 no-live-upstreams"),
    ] {
        let cluster = cluster(compat, &["a"]);
        let states = [State { slot: Slot(0), because: Because::Unhealthy, is_gated: false }];
        let (snapshot, board) = (snapshot(view(&cluster, &states, vec![]), &[route(None)]), Board::default());
        assert_eq!(word(&Walk::begin(&Request::get(), &snapshot, &board).1), expected);
    }
}

#[test]
fn routes_that_answer_by_themselves_reach_no_destination() {
    let cluster = cluster(Compat::None, &["a"]);
    for (action, expected, location) in [
        (RouteAction::Cluster(None), "503 no-cluster", None),
        (RouteAction::Respond { status: 200, body: "hi".to_owned() }, "200 route", None),
        (RouteAction::Redirect { to: "/x".to_owned(), status: 308 }, "308 route", Some("/x")),
        (RouteAction::Deny(403), "403 denied", None),
    ] {
        let snapshot = snapshot(whole(&cluster), &[Route { action, ..route(None) }]);
        let board = Board::default();
        let (mut walk, step) = Walk::begin(&Request::get(), &snapshot, &board);
        assert_eq!(word(&step), expected);
        let Step::Answer(answer) = step else { panic!("not an answer") };
        assert_eq!(answer.location.as_deref(), location);
        assert_eq!(walk.exchange.report(), None);
        assert!(walk.exchange.placement().route.is_some());
    }
    let nothing = snapshot(whole(&cluster), &[]);
    assert_eq!(word(&Walk::begin(&Request::get(), &nothing, &Board::default()).1), "404 no-route");
    let mut posts = route(None);
    posts.matcher.methods = vec!["POST".to_owned()];
    let posts = snapshot(whole(&cluster), &[posts]);
    let Step::Answer(answer) = Walk::begin(&Request::get(), &posts, &Board::default()).1 else { panic!("no answer") };
    assert_eq!((answer.status, answer.allow.as_deref()), (405, Some("POST")));
    let dots = Request { path: "/a/%2e%2e/b", ..Request::get() };
    let Step::Answer(answer) = Walk::begin(&dots, &posts, &Board::default()).1 else { panic!("no answer") };
    assert_eq!((answer.status, answer.reason), (400, Reason::Path));
}

#[test]
fn a_worker_forgets_the_turns_of_clusters_that_are_gone() {
    let mut cluster = cluster(Compat::None, &["a", "b"]);
    cluster.load_balancing = model::balancing::LoadBalancing::RoundRobin;
    let (snapshot, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    let mut worker = Worker::new(1);
    let empty = format!("{:?}", worker.turns);
    let request = Request::get();
    Exchange::begin(Timestamp::ZERO, &request.facts(), &snapshot, &mut worker, &board);
    let used = format!("{:?}", worker.turns);
    assert_ne!(used, empty);
    worker.retain(&snapshot.config);
    assert_eq!(format!("{:?}", worker.turns), used);
    let gone = model::config::Config { clusters: vec![], ..(*snapshot.config).clone() };
    worker.retain(&gone);
    assert_eq!(format!("{:?}", worker.turns), empty);
}
