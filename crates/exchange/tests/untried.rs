//! Who counts as somebody else that may take a request over, and what is paid where there is nobody.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::num::NonZeroU32;
use std::time::Duration;

use exchange::step::TryLimit;
use exchange::{Exchange, Replay, RetryDenied, Snapshot, Step, Worker};
use model::available::Because;
use model::cluster::{Cluster, Compat};
use model::id::Slot;
use model::outcome::{FailureKind, Progress};
use model::retry::{RouteRetry, TryPace};
use model::time::Timestamp;
use support::words::{ended, head, word};
use support::*;

/// a serves; b has one place and is behind a gate where that is asked for.
fn pair(is_gated: bool, places: Option<u32>) -> Snapshot {
    let mut one = cluster(Compat::None, &["a", "b"]);
    one.destinations[1].max_connections = places.and_then(NonZeroU32::new);
    of(&one, is_gated)
}

fn of(one: &Cluster, is_gated: bool) -> Snapshot {
    let states = [0, 1].map(|at| State { slot: Slot(at), because: Because::Health, is_gated: is_gated && at == 1 });
    let mut route = route(None);
    route.policy.retry = Some(RouteRetry { pace: TryPace::Adaptive, ..RouteRetry::default() });
    snapshot(view(one, &states, vec![0, 1]), &[route])
}

/// Whether a's attempt, which takes long, would be cut.
fn is_cut(snapshot: &Snapshot, board: &Board) -> bool {
    let (mut worker, mut now) = (Worker::new(1), Timestamp::from_secs(1));
    let request = Request::get();
    for _ in 0..200 {
        let (mut exchange, step) = Exchange::begin(now, &request.facts(), snapshot, &mut worker, board);
        assert_eq!(word(&step), "connect 0");
        now = now + Duration::from_millis(2);
        exchange.handle(now, head(200), snapshot, &mut worker, board);
    }
    let (exchange, step) = Exchange::begin(now, &request.facts(), snapshot, &mut worker, board);
    let Step::Connect(attempt) = step else { panic!("{step:?}") };
    assert!(matches!(attempt.limit, Some(TryLimit::Learnt(_))), "{:?}", attempt.limit);
    exchange.may_be_cut(now, Replay::Possible, snapshot, board)
}

#[test]
fn a_learnt_limit_ends_no_attempt_while_the_others_are_full_or_on_trial() {
    let board = Board::default();
    let (limited, gated) = (pair(false, Some(1)), pair(true, None));
    assert!(is_cut(&limited, &board) && is_cut(&gated, &board), "while b has a place, and while its gate is open");
    board.places.borrow_mut().insert(1, 1);
    assert!(!is_cut(&limited, &board), "b is full");
    board.taken.borrow_mut().insert(1);
    assert!(!is_cut(&gated, &board), "another request holds b's gate");
}

#[test]
fn a_repeat_that_nobody_can_take_costs_the_budget_nothing() {
    let refused = ended(Progress::NotSent, FailureKind::Refused);
    let reset = ended(Progress::Sent, FailureKind::Reset);
    for (snapshot, is_full) in [(pair(false, Some(1)), true), (pair(true, None), false)] {
        for (input, answer) in
            [(refused, "502 connection-refused"), (reset, "502 connection-reset"), (head(503), "forward")]
        {
            let board = Board::default();
            if is_full {
                board.places.borrow_mut().insert(1, 1);
            } else {
                board.taken.borrow_mut().insert(1);
            }
            let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
            assert_eq!(word(&walk.handle(input)), answer);
            assert_eq!(walk.exchange.retry_denied(), Some(RetryDenied::Untried));
            assert_eq!((board.spent.get(), board.asked.get()), (0, 0), "{answer}: neither paid nor asked for a place");
        }
    }
}

/// The last place goes to somebody else between the look at the others and the pick.
#[test]
fn what_was_paid_for_a_place_that_was_lost_is_given_back() {
    for input in [ended(Progress::NotSent, FailureKind::Refused), head(503)] {
        let (snapshot, board) = (pair(false, Some(1)), Board::default());
        let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
        board.is_overtaken.set(true);
        walk.handle(input);
        assert_eq!(walk.exchange.retry_denied(), Some(RetryDenied::Untried));
        assert_eq!((board.spent.get(), board.asked.get()), (0, 1));
    }
}
