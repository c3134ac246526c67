//! Traffic that is split over clusters: shares, stickiness, force.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::net::IpAddr;

use exchange::step::Content;
use exchange::{Exchange, Input, Reason, Replay, Snapshot, Step, Worker};
use model::cluster::Compat;
use model::request::{Fields, RequestFacts};
use model::route::{Route, RouteAction, Side, Split, Sticky};
use model::time::Timestamp;
use support::{Board, Request, came, cluster, failed, route, snapshot_of, whole};

fn split(shares: &[(&str, u32)], sticky: Sticky) -> Split {
    Split {
        sides: shares.iter().map(|&(id, weight)| Side { cluster: id.into(), weight }).collect(),
        sticky,
        force_header: Some("x-side".to_owned()),
        force_cookie: Some("side".to_owned()),
    }
}

fn snapshot(split: Split) -> Snapshot {
    let named = |id: &str| {
        let mut cluster = cluster(Compat::None, &["d1", "d2"]);
        cluster.id = id.into();
        whole(&cluster)
    };
    let route = Route { action: RouteAction::Clusters(split), ..route(None) };
    snapshot_of(vec![named("unused"), named("blue"), named("green")], &[route])
}

struct Sent {
    header: Option<&'static str>,
    cookie: Option<String>,
}

impl Fields for Sent {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        match (name, self.header, &self.cookie) {
            ("x-side", Some(value), _) => visit(value.as_bytes()),
            ("cookie", _, Some(cookie)) => visit(cookie.as_bytes()),
            _ => {}
        }
    }
}

const NOTHING: Sent = Sent { header: None, cookie: None };

/// The cluster's id, and the cookies that a response of this status sets.
fn ask(snapshot: &Snapshot, worker: &mut Worker, sent: &Sent, client: IpAddr, status: u16) -> (String, Vec<String>) {
    let board = Board::default();
    let plain = Request::get();
    let facts = RequestFacts { fields: sent, client, ..plain.facts() };
    let now = Timestamp::from_secs(1);
    let (mut exchange, step) = Exchange::begin(now, &facts, snapshot, worker, &board);
    assert!(matches!(step, Step::Connect(_)), "{step:?}");
    let head =
        Input::ResponseHead { status, retry_after: false, body_replayable: Replay::Lost, content: Content::Message };
    assert_eq!(exchange.handle(now, head, snapshot, worker, &board), Step::Forward);
    let cluster = exchange.placement().cluster.unwrap();
    let cookies = exchange.cookies(snapshot);
    exchange.handle(now, Input::ResponseEnded { end: came(status) }, snapshot, worker, &board);
    (snapshot.clusters[cluster.index()].id.to_string(), cookies)
}

fn client(n: u32) -> IpAddr {
    IpAddr::V4(n.into())
}

#[test]
fn requests_are_drawn_by_the_shares() {
    let snapshot = snapshot(split(&[("blue", 90), ("green", 10)], Sticky::Off));
    let mut worker = Worker::new(7);
    let of_green = (0..10_000).filter(|_| ask(&snapshot, &mut worker, &NOTHING, client(1), 200).0 == "green").count();
    // Four standard deviations of 10 000 draws at 10 %.
    assert!((880..=1_120).contains(&of_green), "{of_green}");
}

#[test]
fn a_side_of_weight_0_takes_forced_requests_only() {
    let snapshot = snapshot(split(&[("blue", 5), ("green", 0)], Sticky::Off));
    let mut worker = Worker::new(7);
    for _ in 0..1_000 {
        assert_eq!(ask(&snapshot, &mut worker, &NOTHING, client(1), 200).0, "blue");
    }
    for sent in [
        Sent { header: Some("green"), cookie: None },
        Sent { header: None, cookie: Some("a=b; side=green".to_owned()) },
        Sent { header: Some("green"), cookie: Some("side=blue".to_owned()) },
    ] {
        assert_eq!(ask(&snapshot, &mut worker, &sent, client(1), 200), ("green".to_owned(), vec![]));
    }
    let unknown = Sent { header: Some("unused"), cookie: Some("side=red".to_owned()) };
    assert_eq!(ask(&snapshot, &mut worker, &unknown, client(1), 200).0, "blue", "what names no side forces nothing");
}

#[test]
fn a_cookie_keeps_a_client_on_its_side_until_the_side_is_given_up() {
    let even = snapshot(split(&[("blue", 1), ("green", 1)], Sticky::Cookie("lzs".to_owned())));
    let mut worker = Worker::new(3);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let (side, cookies) = ask(&even, &mut worker, &NOTHING, client(1), 200);
        let [cookie] = cookies.as_slice() else { panic!("{cookies:?}") };
        let pair = cookie.split(';').next().unwrap().to_owned();
        assert!(cookie.ends_with("; Path=/; HttpOnly") && !pair.contains(&side), "{cookie}");
        let back = Sent { header: None, cookie: Some(pair) };
        for _ in 0..20 {
            assert_eq!(ask(&even, &mut worker, &back, client(1), 200), (side.clone(), vec![]));
        }
        let given_up = snapshot(split(&[("blue", 1), ("green", 0)], Sticky::Cookie("lzs".to_owned())));
        let (now, cookies) = ask(&given_up, &mut worker, &back, client(1), 200);
        assert_eq!((now.as_str(), cookies.len()), ("blue", usize::from(side == "green")));
        seen.insert(side);
    }
    assert_eq!(seen.len(), 2);
}

#[test]
fn a_failed_answer_binds_nobody_to_its_side() {
    let snapshot = snapshot(split(&[("blue", 1), ("green", 1)], Sticky::Cookie("lzs".to_owned())));
    let (_, cookies) = ask(&snapshot, &mut Worker::new(3), &NOTHING, client(1), 500);
    assert!(cookies.is_empty());
}

#[test]
fn an_address_stays_on_its_side_and_few_move_when_shares_change() {
    let of = |green: u32| snapshot(split(&[("blue", 100 - green), ("green", green)], Sticky::ClientAddress));
    let (ten, twenty) = (of(10), of(20));
    let mut worker = Worker::new(1);
    let (mut of_green, mut came_back) = (0, 0);
    for n in 0..4_000 {
        let (before, _) = ask(&ten, &mut worker, &NOTHING, client(n), 200);
        assert_eq!(ask(&ten, &mut worker, &NOTHING, client(n), 200).0, before);
        let (after, _) = ask(&twenty, &mut worker, &NOTHING, client(n), 200);
        of_green += usize::from(after == "green");
        came_back += usize::from(before == "green" && after == "blue");
    }
    assert!((700..=900).contains(&of_green), "{of_green}");
    assert_eq!(came_back, 0, "whoever was on the growing side stays there");
    let six = |text: &str| ask(&ten, &mut Worker::new(1), &NOTHING, text.parse().unwrap(), 200).0;
    for net in 0..50 {
        assert_eq!(six(&format!("2001:db8:{net}::1")), six(&format!("2001:db8:{net}::ffff")), "one /64 is one client");
    }
}

#[test]
fn a_retry_stays_in_the_cluster_that_was_chosen() {
    let snapshot = snapshot(split(&[("blue", 1), ("green", 1)], Sticky::Off));
    let board = Board::default();
    for seed in 0..50 {
        let mut worker = Worker::new(seed);
        let plain = Request::get();
        let now = Timestamp::from_secs(1);
        let (mut exchange, step) = Exchange::begin(now, &plain.facts(), &snapshot, &mut worker, &board);
        let Step::Connect(first) = step else { panic!("{step:?}") };
        let end = failed(model::outcome::Progress::NotSent, model::outcome::FailureKind::Refused);
        let input = Input::AttemptEnded { end, body_replayable: Replay::Possible };
        let step = exchange.handle(now, input, &snapshot, &mut worker, &board);
        let Step::Connect(second) = step else { panic!("{step:?}") };
        assert_eq!(first.cluster, second.cluster);
        let step = exchange.handle(now, input, &snapshot, &mut worker, &board);
        let Step::Answer(answer) = step else { panic!("{step:?}") };
        assert_eq!(answer.reason, Reason::ConnectionRefused, "the other side is not asked");
    }
}
