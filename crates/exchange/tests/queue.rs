//! Requests that wait: for a place at a destination, or for a destination.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use exchange::step::Part;
use exchange::{Admission, Input, Snapshot, Step};
use model::affinity::{AffinityCookie, AffinityFailurePolicy, AffinityPolicy, SessionAffinity};
use model::available::Because;
use model::cluster::{Cluster, Compat, Queue};
use model::config::Config;
use model::id::Slot;
use model::outcome::{AttemptEnd, FailureKind, Progress};
use model::time::Timestamp;
use model::upstream::UpstreamHttp;
use support::words::{ended, events, head, word};
use support::*;

fn limited(compat: Compat, most: &[u32]) -> Cluster {
    let ids = ["a", "b", "c"];
    let mut cluster = cluster(compat, &ids[..most.len()]);
    for (destination, &most) in cluster.destinations.iter_mut().zip(most) {
        destination.max_connections = NonZeroU32::new(most);
    }
    cluster
}

#[test]
fn a_full_destination_is_passed_by_and_a_full_cluster_is_waited_for() {
    let (snapshot, board) = (snapshot(whole(&limited(Compat::None, &[1, 1])), &[route(None)]), Board::default());
    let begin = || Walk::begin(&Request::get(), &snapshot, &board);
    let (_first, step) = begin();
    assert!(matches!(&step, Step::Connect(attempt) if attempt.admission == Admission::Place), "{step:?}");
    assert_eq!(word(&step), "connect 0");
    assert_eq!(word(&begin().1), "connect 1");
    let (mut walk, step) = begin();
    assert_eq!(word(&step), "wait until 2000");
    walk.now = walk.now + Duration::from_millis(300);
    assert_eq!(word(&walk.handle(Input::Woken)), "wait until 2000", "the time does not begin anew");
    board.places.borrow_mut().insert(1, 0);
    assert_eq!(word(&walk.handle(Input::Woken)), "connect 1");
    assert_eq!(walk.handle(head(200)), Step::Forward);
}

#[test]
fn of_many_that_are_full_each_is_not_asked_in_turn() {
    let ids: Vec<String> = (0..200).map(|n| format!("d{n:03}")).collect();
    let mut cluster = cluster(Compat::None, &ids.iter().map(String::as_str).collect::<Vec<_>>());
    cluster.destinations.iter_mut().for_each(|one| one.max_connections = NonZeroU32::new(1));
    let (snapshot, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    board.places.borrow_mut().extend((0..200).filter(|slot| *slot != 150).map(|slot| (slot, 1)));
    assert_eq!(word(&Walk::begin(&Request::get(), &snapshot, &board).1), "connect 150");
    assert_eq!(board.asked.replace(0), 2);
    assert_eq!(word(&Walk::begin(&Request::get(), &snapshot, &board).1), "wait until 2000");
    assert_eq!(board.asked.get(), 1);
}

#[test]
fn a_wait_ends_by_its_time_by_the_total_by_the_client_and_where_too_many_wait() {
    let (snapshot, board) = (snapshot(whole(&limited(Compat::None, &[1])), &[route(None)]), Board::default());
    let _first = Walk::begin(&Request::get(), &snapshot, &board);
    for (input, answer) in [
        (Input::WaitOver, "503 queue-timeout"),
        (Input::QueueFull, "503 queue-full"),
        (Input::DeadlineReached, "504 deadline"),
        (Input::ClientGone, "499 client-gone"),
    ] {
        let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
        let step = walk.handle(input);
        assert_eq!(word(&step), answer);
        let Step::Answer(answer) = step else { panic!("{step:?}") };
        let is_queue = answer.reason.details().starts_with("queue");
        assert_eq!(answer.retry_after.is_some(), is_queue);
        assert_eq!(walk.exchange.report(), None, "no destination had part in it");
    }
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    walk.now = walk.now + Duration::from_millis(1050);
    assert_eq!(word(&walk.handle(Input::Woken)), "503 queue-timeout", "woken too late");
}

#[test]
fn who_waits_while_the_process_stands_still_has_a_second_more_and_no_longer() {
    let (snapshot, board) = (snapshot(whole(&limited(Compat::None, &[1])), &[route(None)]), Board::default());
    let _first = Walk::begin(&Request::get(), &snapshot, &board);
    let (mut walk, step) = Walk::begin(&Request::get(), &snapshot, &board);
    assert_eq!(word(&step), "wait until 2000");
    walk.now = Timestamp::from_secs(20);
    assert_eq!(word(&walk.handle(Input::Woken)), "wait until 21000", "others were served before it");
    walk.now = Timestamp::from_millis(20_900);
    assert_eq!(word(&walk.handle(Input::Woken)), "wait until 21000");
    walk.now = Timestamp::from_millis(21_200);
    assert_eq!(word(&walk.handle(Input::Woken)), "503 queue-timeout", "once");

    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    walk.now = Timestamp::from_secs(40);
    walk.handle(Input::Woken);
    board.places.borrow_mut().clear();
    assert_eq!(word(&walk.handle(Input::Woken)), "connect 0", "its turn comes");
}

#[test]
fn a_total_deadline_that_passes_while_the_process_stands_still_is_put_off_with_the_wait() {
    let routes = [route(Some(Duration::from_millis(400)))];
    let (snapshot, board) = (snapshot(whole(&limited(Compat::None, &[1])), &routes), Board::default());
    let _first = Walk::begin(&Request::get(), &snapshot, &board);
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    walk.now = Timestamp::from_secs(20);
    board.places.borrow_mut().clear();
    assert_eq!(word(&walk.handle(Input::Woken)), "connect 0");
    assert_eq!(walk.exchange.deadline(), Some(Timestamp::from_secs(21)));
}

#[test]
fn a_destination_that_hangs_behind_a_queue_is_charged_though_each_first_attempt_has_waited_for_its_turn() {
    for (waits, failure) in [(990, FailureKind::Deadline), (1010, FailureKind::ShortDeadline)] {
        let mut cluster = limited(Compat::None, &[1]);
        cluster.queue.busy_timeout = Duration::from_secs(2);
        let routes = [route(Some(Duration::from_secs(2)))];
        let (snapshot, board) = (snapshot(whole(&cluster), &routes), Board::default());
        let _first = Walk::begin(&Request::get(), &snapshot, &board);
        let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
        walk.now = walk.now + Duration::from_millis(waits);
        board.places.borrow_mut().clear();
        assert_eq!(word(&walk.handle(Input::Woken)), "connect 0");
        walk.now = walk.now + Duration::from_millis(2000 - waits);
        assert_eq!(word(&walk.handle(Input::DeadlineReached)), "504 deadline");
        let outcome = walk.exchange.report().unwrap().outcome;
        assert_eq!(outcome.failure, Some(failure), "it waited for {waits} ms");
    }
}

#[test]
fn who_has_no_patience_with_a_lack_has_none_after_a_pause_either() {
    let cluster = limited(Compat::None, &[1]);
    let (full, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    let _first = Walk::begin(&Request::get(), &full, &board);
    let (mut walk, _) = Walk::begin(&Request::get(), &full, &board);
    walk.now = Timestamp::from_secs(20);
    let empty = nobody(&cluster);
    walk.snapshot = &empty;
    assert_eq!(word(&walk.handle(Input::Woken)), "503 none-available");
}

#[test]
fn nobody_goes_before_those_that_wait() {
    let (snapshot, board) = (snapshot(whole(&limited(Compat::None, &[9])), &[route(None)]), Board::default());
    board.is_queued.set(true);
    let (mut walk, step) = Walk::begin(&Request::get(), &snapshot, &board);
    assert_eq!(word(&step), "wait until 2000");
    assert_eq!(word(&walk.handle(Input::Woken)), "connect 0");
}

#[test]
fn without_a_queue_a_full_cluster_is_said_at_once_and_nginx_never_waits() {
    let mut cluster = limited(Compat::None, &[1]);
    cluster.queue = Queue { length: 0, ..Queue::DEFAULT };
    let full = |cluster: &Cluster| {
        let (snapshot, board) = (snapshot(whole(cluster), &[route(None)]), Board::default());
        let _first = Walk::begin(&Request::get(), &snapshot, &board);
        word(&Walk::begin(&Request::get(), &snapshot, &board).1)
    };
    assert_eq!(full(&cluster), "503 queue-full");
    assert_eq!(full(&limited(Compat::Nginx, &[1])), "502 no-live-upstreams");
}

#[test]
fn where_nobody_is_available_a_request_waits_only_if_told_to() {
    let mut cluster = cluster(Compat::None, &["a"]);
    let board = Board::default();
    let empty = nobody(&cluster);
    assert_eq!(word(&Walk::begin(&Request::get(), &empty, &board).1), "503 none-available");
    cluster.queue.unavailable_timeout = Duration::from_millis(500);
    let empty = nobody(&cluster);
    let (mut walk, step) = Walk::begin(&Request::get(), &empty, &board);
    assert_eq!(word(&step), "wait until 1500");
    assert_eq!(word(&walk.handle(Input::Woken)), "wait until 1500");
    let back = snapshot(whole(&cluster), &[route(None)]);
    walk.snapshot = &back;
    assert_eq!(word(&walk.handle(Input::Woken)), "connect 0");
    let (mut walk, _) = Walk::begin(&Request::get(), &empty, &board);
    assert_eq!(word(&walk.handle(Input::WaitOver)), "503 none-available");
}

#[test]
fn a_retry_takes_a_place_or_goes_nowhere() {
    let (snapshot, board) = (snapshot(whole(&limited(Compat::None, &[5, 1, 1])), &[route(None)]), Board::default());
    let refused = ended(Progress::NotSent, FailureKind::Refused);
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    board.places.borrow_mut().insert(1, 1);
    assert_eq!(word(&walk.handle(refused)), "connect 2");
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    assert_eq!(word(&walk.handle(refused)), "502 connection-refused");
}

#[test]
fn a_wait_has_its_end_in_sight_from_the_beginning_whatever_it_lacks_meanwhile() {
    let mut cluster = limited(Compat::None, &[1]);
    cluster.queue.unavailable_timeout = Duration::from_millis(1500);
    let (full, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    let _first = Walk::begin(&Request::get(), &full, &board);
    let (mut walk, step) = Walk::begin(&Request::get(), &full, &board);
    assert_eq!(word(&step), "wait until 2000");
    let empty = nobody(&cluster);
    walk.snapshot = &empty;
    assert_eq!(word(&walk.handle(Input::Woken)), "wait until 2500", "it was ejected: another patience, the same start");
    walk.snapshot = &full;
    assert_eq!(word(&walk.handle(Input::Woken)), "wait until 2000");
    cluster.queue.unavailable_timeout = Duration::ZERO;
    let impatient = nobody(&cluster);
    walk.snapshot = &impatient;
    assert_eq!(word(&walk.handle(Input::Woken)), "503 none-available", "who waits for a place does not wait for more");
}

#[test]
fn who_joins_others_waits_for_what_they_wait_for() {
    let mut cluster = limited(Compat::None, &[1]);
    cluster.queue.unavailable_timeout = Duration::from_secs(5);
    let (full, empty) = (snapshot(whole(&cluster), &[route(None)]), nobody(&cluster));
    let board = Board::default();
    board.is_queued.set(true);
    let (mut walk, step) = Walk::begin(&Request::get(), &empty, &board);
    assert_eq!(word(&step), "wait until 6000");
    assert_eq!(word(&walk.handle(Input::QueueFull)), "503 none-available");
    let (mut walk, step) = Walk::begin(&Request::get(), &full, &board);
    assert_eq!(word(&step), "wait until 2000");
    // All are ejected meanwhile, and only the first in line hears of it.
    walk.snapshot = &empty;
    walk.now = walk.now + Duration::from_secs(1);
    assert_eq!(word(&walk.handle(Input::WaitOver)), "wait until 6000");
    walk.now = walk.now + Duration::from_secs(4);
    assert_eq!(word(&walk.handle(Input::WaitOver)), "503 none-available");
    // And the other way round.
    cluster.queue.busy_timeout = Duration::from_secs(9);
    let (full, empty) = (snapshot(whole(&cluster), &[route(None)]), nobody(&cluster));
    let (mut walk, step) = Walk::begin(&Request::get(), &empty, &board);
    assert_eq!(word(&step), "wait until 6000");
    walk.snapshot = &full;
    walk.now = walk.now + Duration::from_secs(5);
    assert_eq!(word(&walk.handle(Input::WaitOver)), "wait until 10000");
    assert_eq!(word(&walk.handle(Input::WaitOver)), "503 queue-timeout");
}

#[test]
fn the_total_deadline_ends_a_wait_also_when_its_turn_comes_too_late() {
    let routes = [route(Some(Duration::from_millis(400)))];
    let (snapshot, board) = (snapshot(whole(&limited(Compat::None, &[1])), &routes), Board::default());
    let _first = Walk::begin(&Request::get(), &snapshot, &board);
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    walk.now = walk.now + Duration::from_millis(400);
    board.places.borrow_mut().clear();
    assert_eq!(word(&walk.handle(Input::Woken)), "504 deadline");
    assert!(board.places.borrow().is_empty(), "no place was taken");
}

#[test]
fn a_trial_takes_a_place_as_any_other_and_leaves_the_gate_where_there_is_none() {
    let cluster = limited(Compat::None, &[1]);
    let gated = [State { is_gated: true, ..good(0) }];
    let (snapshot, board) = (snapshot(view(&cluster, &gated, vec![0]), &[route(None)]), Board::default());
    board.places.borrow_mut().insert(0, 1);
    let (mut walk, step) = Walk::begin(&Request::get(), &snapshot, &board);
    assert_eq!(word(&step), "wait until 2000");
    assert!(board.taken.borrow().is_empty());
    board.places.borrow_mut().clear();
    let step = walk.handle(Input::Woken);
    assert!(matches!(&step, Step::Connect(attempt) if attempt.admission == Admission::Gate), "{step:?}");
    assert_eq!(board.places.borrow()[&0], 1);
}

#[test]
fn a_stream_of_events_says_that_it_keeps_what_it_holds() {
    let (snapshot, board) = (snapshot(whole(&limited(Compat::None, &[1])), &[route(None)]), Board::default());
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    walk.handle(events(200));
    let begun = walk.exchange.report().unwrap();
    assert_eq!((begun.part, begun.admission), (Part::Begun, Admission::Place));
    let end = AttemptEnd { status: Some(200), ..failed(Progress::Forwarded, FailureKind::BodyCut) };
    walk.handle(Input::ResponseEnded { end });
    let broken = walk.exchange.report().unwrap();
    assert_eq!((broken.part, broken.admission), (Part::Broken, Admission::Open), "it is given back once");
}

#[test]
fn a_session_whose_destination_is_full_goes_elsewhere_for_this_time() {
    let (request, cluster) = session(AffinityFailurePolicy::Redistribute);
    let (snapshot, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    let begin = || Walk::begin(&request, &snapshot, &board);
    assert_eq!(word(&begin().1), "connect 1");
    let (mut walk, step) = begin();
    assert_eq!(word(&step), "connect 0");
    assert_eq!(walk.handle(head(200)), Step::Forward);
    assert_eq!(walk.exchange.new_pin(), None, "the session stays where it lives");
    let (mut walk, step) = begin();
    assert_eq!(word(&step), "wait until 2000");
    board.places.borrow_mut().insert(1, 0);
    assert_eq!(word(&walk.handle(Input::Woken)), "connect 1");
}

#[test]
fn a_session_that_may_go_nowhere_else_waits_for_its_destination_and_not_for_one_that_is_gone() {
    let (request, cluster) = session(AffinityFailurePolicy::Return503Error);
    let (whole, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    let _first = Walk::begin(&request, &whole, &board);
    let (mut walk, step) = Walk::begin(&request, &whole, &board);
    assert_eq!(word(&step), "wait until 2000 for 1");
    assert_eq!(word(&walk.handle(Input::Woken)), "wait until 2000 for 1");
    board.is_queued.set(true);
    assert_eq!(word(&Walk::begin(&request, &whole, &board).1), "wait until 2000 for 1");
    let states = [good(0), good(1)];
    let without = snapshot(view(&cluster, &states, vec![0]), &[route(None)]);
    assert_eq!(word(&Walk::begin(&request, &without, &board).1), "503 affinity-lost", "it does not queue up for that");
    walk.snapshot = &without;
    assert_eq!(word(&walk.handle(Input::Woken)), "503 affinity-lost");
}

#[test]
fn who_waits_goes_by_the_limits_of_a_newer_configuration() {
    let (request, cluster) = session(AffinityFailurePolicy::Return503Error);
    let (old, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    let _first = Walk::begin(&request, &old, &board);
    let (mut walk, _) = Walk::begin(&request, &old, &board);

    // The same destinations in another order, and one place more; another cluster before it.
    let mut changed = cluster.clone();
    changed.destinations.reverse();
    changed.destinations[0].max_connections = NonZeroU32::new(2);
    let mut view = whole(&changed);
    for destination in &mut view.destinations {
        destination.slot = Slot(u32::from(destination.id.as_str() == "b"));
    }
    let new = moved_by_one(snapshot(view, &[route(None)]));
    assert!(walk.exchange.follow(&old, &new));
    walk.snapshot = &new;
    assert_eq!(walk.exchange.placement().cluster.map(|index| index.0), Some(1));
    assert_eq!(word(&walk.handle(Input::Woken)), "connect 0", "b stands first now");
    assert!(!walk.exchange.follow(&new, &old), "an attempt stays with the configuration that it began with");
}

#[test]
fn who_waits_goes_by_the_old_configuration_where_the_new_one_has_nothing_for_it() {
    let cluster = limited(Compat::None, &[1]);
    let (old, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    let _first = Walk::begin(&Request::get(), &old, &board);
    let mut other = cluster.clone();
    other.http = UpstreamHttp::Http2;
    let other = snapshot(whole(&other), &[route(None)]);
    let mut gone = snapshot(whole(&cluster), &[route(None)]);
    gone.clusters.clear();
    for new in [other, gone] {
        let (mut walk, _) = Walk::begin(&Request::get(), &old, &board);
        assert!(!walk.exchange.follow(&old, &new));
        assert_eq!(word(&walk.handle(Input::Woken)), "wait until 2000");
    }
}

/// The cluster with nobody available.
fn nobody(cluster: &Cluster) -> Snapshot {
    let mut view = whole(cluster);
    view.available.clear();
    snapshot(view, &[route(None)])
}

/// A request of a session that lives on the second of two destinations, and the cluster, with a place at each.
fn session(failure_policy: AffinityFailurePolicy) -> (Request<'static>, Cluster) {
    let mut cluster = limited(Compat::None, &[1, 1]);
    cluster.session_affinity = Some(SessionAffinity {
        policy: AffinityPolicy::HashCookie,
        failure_policy,
        key_name: "pin".to_owned(),
        cookie: AffinityCookie::default(),
    });
    let cookie: &'static str = format!("pin={}", balance::affinity::key("b")).leak();
    (Request { cookie: Some(cookie), ..Request::get() }, cluster)
}

/// The same with another cluster before the first.
fn moved_by_one(of: Snapshot) -> Snapshot {
    let other = Cluster { id: "other".into(), ..cluster(Compat::None, &["o"]) };
    let clusters = std::iter::once(Arc::new(whole(&other))).chain(of.clusters).collect();
    let config = Config::clone(&of.config);
    Snapshot { clusters, config: Arc::new(config), ..of }
}

fn good(slot: u32) -> State {
    State { slot: Slot(slot), because: Because::Health, is_gated: false }
}
