//! Session affinity: who is pinned, who stays, who moves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use exchange::RetryDenied;
use model::affinity::{AffinityCookie, AffinityFailurePolicy, AffinityPolicy, SessionAffinity};
use model::available::Because;
use model::cluster::Compat;
use model::id::{DestinationIndex, Slot};
use model::outcome::{FailureKind, Progress};
use support::words::{ended, head, word};
use support::*;

fn sticky(failure_policy: AffinityFailurePolicy) -> model::cluster::Cluster {
    let mut cluster = cluster(Compat::None, &["a", "b", "c"]);
    cluster.session_affinity = Some(SessionAffinity {
        policy: AffinityPolicy::HashCookie,
        failure_policy,
        key_name: "lz".to_owned(),
        cookie: AffinityCookie::default(),
    });
    cluster
}

#[test]
fn a_client_without_a_pin_gets_one_and_one_with_a_pin_keeps_it() {
    let cluster = sticky(AffinityFailurePolicy::Redistribute);
    let (snapshot, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    let (mut walk, step) = Walk::begin(&Request::get(), &snapshot, &board);
    assert_eq!(word(&step), "connect 0");
    walk.handle(head(200));
    assert_eq!(walk.exchange.new_pin(), Some(DestinationIndex(0)));
    let cookie = format!("lz={}", balance::affinity::key("b"));
    let pinned = Request { cookie: Some(&cookie), ..Request::get() };
    let (mut walk, step) = Walk::begin(&pinned, &snapshot, &board);
    assert_eq!(word(&step), "connect 1");
    walk.handle(head(200));
    assert_eq!(walk.exchange.new_pin(), None);
}

#[test]
fn no_failed_attempt_pins() {
    let cluster = sticky(AffinityFailurePolicy::Redistribute);
    let (snapshot, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    for inputs in [
        &[head(500)][..],
        &[ended(Progress::NotSent, FailureKind::Local)],
        &[head(503), ended(Progress::Sent, FailureKind::Reset), ended(Progress::Sent, FailureKind::Reset)],
        &[head(503), head(503), head(503)],
    ] {
        let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
        inputs.iter().for_each(|&input| drop(walk.handle(input)));
        assert_eq!(walk.exchange.new_pin(), None, "{inputs:?}");
    }
    // A retry that moved the request pins where it was served.
    let cookie = format!("lz={}", balance::affinity::key("a"));
    let (mut walk, _) = Walk::begin(&Request { cookie: Some(&cookie), ..Request::get() }, &snapshot, &board);
    assert_eq!(word(&walk.handle(ended(Progress::NotSent, FailureKind::Refused))), "connect 1");
    walk.handle(head(200));
    assert_eq!(walk.exchange.new_pin(), Some(DestinationIndex(1)));
}

#[test]
fn a_pin_that_cannot_be_met_moves_or_stays_by_its_policy() {
    let cookie = format!("lz={}", balance::affinity::key("a"));
    let pinned = Request { cookie: Some(&cookie), ..Request::get() };
    let board = Board::default();
    for (policy, expected) in [
        (AffinityFailurePolicy::Redistribute, "connect 1"),
        (AffinityFailurePolicy::Return503Error, "503 affinity-lost"),
    ] {
        let cluster = sticky(policy);
        let states = [0, 1, 2].map(|at| State { slot: Slot(at), because: Because::Health, is_gated: false });
        let without_a = snapshot(view(&cluster, &states, vec![1, 2]), &[route(None)]);
        assert_eq!(word(&Walk::begin(&pinned, &without_a, &board).1), expected);
        let all = snapshot(whole(&cluster), &[route(None)]);
        assert_eq!(word(&Walk::begin(&pinned, &all, &board).1), "connect 0", "back once it is there");
        let forged = Request { cookie: Some("lz=../../etc"), ..Request::get() };
        assert_eq!(word(&Walk::begin(&forged, &without_a, &board).1), "connect 1");
    }
    // With Return503Error the session lives nowhere else: no retry moves it.
    for compat in [Compat::None, Compat::Nginx] {
        let cluster = model::cluster::Cluster { compat, ..sticky(AffinityFailurePolicy::Return503Error) };
        let all = snapshot(whole(&cluster), &[route(None)]);
        let (mut walk, _) = Walk::begin(&pinned, &all, &board);
        assert_eq!(word(&walk.handle(ended(Progress::NotSent, FailureKind::Refused))), "502 connection-refused");
        assert_eq!(walk.exchange.retry_denied(), Some(RetryDenied::Untried));
    }
}
