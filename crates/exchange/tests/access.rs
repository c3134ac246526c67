//! Who may use a route and how often.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use exchange::{Answer, Exchange, Reason, Snapshot, Step, Worker};
use model::cluster::Compat;
use model::entry::{AccessList, ConnectionLimit, LimitKey, RequestLimit};
use model::request::RequestFacts;
use model::route::{Route, RoutePolicy};
use model::time::Timestamp;
use support::{Board, Request, cluster, route, snapshot, whole};

fn of(policy: RoutePolicy) -> Snapshot {
    snapshot(whole(&cluster(Compat::None, &["d1"])), &[Route { policy, ..route(None) }])
}

fn ask(snapshot: &Snapshot, board: &Board, client: &str) -> Result<(), Answer> {
    let plain = Request::get();
    let facts = RequestFacts { client: client.parse().unwrap(), ..plain.facts() };
    let (mut exchange, step) = Exchange::begin(board.now.get(), &facts, snapshot, &mut Worker::new(1), board);
    assert!(exchange.report().is_none(), "nothing is charged to a destination");
    if let Step::Answer(answer) = step {
        return Err(answer);
    }
    assert!(matches!(step, Step::Connect(_)), "{step:?}");
    Ok(())
}

#[test]
fn who_is_not_on_the_list_gets_403() {
    let access = AccessList {
        allow: vec!["10.0.0.0/8".parse().unwrap(), "2001:db8::/32".parse().unwrap()],
        deny: vec!["10.6.6.6/32".parse().unwrap()],
    };
    let snapshot = of(RoutePolicy { access, ..RoutePolicy::default() });
    let board = Board::default();
    for client in ["10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1"] {
        assert_eq!(ask(&snapshot, &board, client), Ok(()));
    }
    for client in ["10.6.6.6", "::ffff:10.6.6.6", "192.0.2.1", "2001:db9::1"] {
        let answer = ask(&snapshot, &board, client).unwrap_err();
        assert_eq!((answer.status, answer.reason.details()), (403, "access-denied"));
    }
}

#[test]
fn whoever_asks_too_often_gets_429_and_is_told_when_to_come_back() {
    let limit = RequestLimit { rate: 0.4, burst: 2, key: LimitKey::ClientAddress };
    let snapshot = of(RoutePolicy { limit_requests: Some(limit), ..RoutePolicy::default() });
    let board = Board::default();
    assert!((0..2).all(|_| ask(&snapshot, &board, "192.0.2.1").is_ok()));
    let answer = ask(&snapshot, &board, "192.0.2.1").unwrap_err();
    assert_eq!((answer.status, answer.reason, answer.retry_after), (429, Reason::TooManyRequests, Some(3)));
    assert_eq!(ask(&snapshot, &board, "192.0.2.2"), Ok(()), "others have their own");
    board.now.set(Timestamp::from_millis(2_499));
    assert_eq!(ask(&snapshot, &board, "192.0.2.1").unwrap_err().retry_after, Some(1));
    board.now.set(Timestamp::from_millis(2_500));
    assert_eq!(ask(&snapshot, &board, "192.0.2.1"), Ok(()));
}

#[test]
fn requests_are_told_apart_by_a_header_where_it_says_so() {
    let limit = RequestLimit { rate: 0.1, burst: 1, key: LimitKey::Header("cookie".to_owned()) };
    let snapshot = of(RoutePolicy { limit_requests: Some(limit), ..RoutePolicy::default() });
    let board = Board::default();
    let passes = |cookie| {
        let request = Request { cookie, ..Request::get() };
        let (_, step) = Exchange::begin(board.now.get(), &request.facts(), &snapshot, &mut Worker::new(1), &board);
        matches!(step, Step::Connect(_))
    };
    assert!(passes(Some("a")) && !passes(Some("a")) && passes(Some("b")));
    assert!(passes(None) && !passes(None), "without it the address counts");
}

#[test]
fn whoever_has_too_many_in_flight_gets_429() {
    let limit_connections = Some(ConnectionLimit { per_client: 2 });
    let snapshot = of(RoutePolicy { limit_connections, ..RoutePolicy::default() });
    let board = Board::default();
    assert!((0..2).all(|_| ask(&snapshot, &board, "192.0.2.1").is_ok()));
    let answer = ask(&snapshot, &board, "192.0.2.1").unwrap_err();
    assert_eq!((answer.status, answer.reason.details(), answer.retry_after), (429, "too-many-in-flight", Some(1)));
    assert_eq!(ask(&snapshot, &board, "192.0.2.2"), Ok(()));
}
