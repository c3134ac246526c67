//! How many attempts an exchange makes, where they go, and which answer wins.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use exchange::step::TryLimit;
use exchange::{Exchange, Input, Replay, RetryDenied, Step, Worker};
use model::available::Because;
use model::cluster::Compat;
use model::id::Slot;
use model::outcome::{FailureKind, OutcomeClass, Progress};
use model::request::RequestFacts;
use model::retry::{NonIdempotent, RetryConditions, RetryRules, RouteRetry, TryPace};
use model::time::Timestamp;
use support::words::{ended, head, word};
use support::*;

/// Runs inputs through a fresh exchange over three destinations; the steps' words.
fn steps(compat: Compat, rules: RetryRules, method: &str, inputs: &[Input]) -> (Vec<String>, Option<RetryDenied>) {
    let mut cluster = cluster(compat, &["a", "b", "c"]);
    cluster.retry = rules;
    let (snapshot, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    let (mut walk, step) = Walk::begin(&Request::method(method), &snapshot, &board);
    let mut words = vec![word(&step)];
    for &input in inputs {
        words.push(word(&walk.handle(input)));
    }
    (words, walk.exchange.retry_denied())
}

#[test]
fn failed_attempts_go_on_to_untried_destinations_until_attempts_are_used() {
    use FailureKind::{Refused, Reset};
    let native = RetryRules::native;
    let refused = ended(Progress::NotSent, Refused);
    let reset = ended(Progress::Sent, Reset);
    let (words, denied) = steps(Compat::None, native(), "GET", &[refused, reset, reset]);
    assert_eq!(words, ["connect 0", "connect 1", "connect 2", "502 connection-reset"]);
    assert_eq!(denied, Some(RetryDenied::Attempts));
    let (words, denied) = steps(Compat::None, native(), "POST", &[refused, reset]);
    assert_eq!(words, ["connect 0", "connect 1", "502 connection-reset"]);
    assert_eq!(denied, Some(RetryDenied::Method));
    let (words, denied) =
        steps(Compat::None, RetryRules { attempts: 9, ..native() }, "GET", &[refused, refused, refused]);
    assert_eq!(words[3], "502 connection-refused");
    assert_eq!(denied, Some(RetryDenied::Untried));
    let (words, denied) = steps(Compat::None, RetryRules::off(), "GET", &[refused]);
    assert_eq!(words[1], "502 connection-refused");
    assert_eq!(denied, Some(RetryDenied::Attempts));
}

#[test]
fn the_best_real_answer_wins_over_one_of_our_own() {
    let reset = ended(Progress::Sent, FailureKind::Reset);
    let (words, _) = steps(Compat::None, RetryRules::native(), "GET", &[head(503), reset, reset]);
    assert_eq!(words, ["connect 0", "hold, connect 1", "connect 2", "held"]);
    let (words, denied) = steps(Compat::None, RetryRules::native(), "GET", &[head(503), reset, head(502)]);
    assert_eq!(words[3], "forward");
    assert_eq!(denied, Some(RetryDenied::Attempts));
    let (words, denied) = steps(Compat::None, RetryRules::native(), "GET", &[head(503), head(200)]);
    assert_eq!(words, ["connect 0", "hold, connect 1", "forward"]);
    assert_eq!(denied, None);
    let (words, _) = steps(Compat::None, RetryRules::native(), "GET", &[head(503), Input::DeadlineReached]);
    assert_eq!(words[2], "held");
    let (words, denied) = steps(Compat::None, RetryRules::native(), "POST", &[head(503)]);
    assert_eq!((words[1].as_str(), denied), ("forward", Some(RetryDenied::Method)));
    // nginx knows the last attempt's answer only.
    let (words, _) = steps(Compat::Nginx, RetryRules::native(), "GET", &[head(503), reset, reset]);
    assert_eq!(words[3], "502 connection-reset");
}

#[test]
fn one_timeout_is_repeated_and_a_second_is_not() {
    let timeout = ended(Progress::Sent, FailureKind::HeadTimeout);
    let (words, denied) = steps(Compat::None, RetryRules::native(), "GET", &[timeout, timeout]);
    assert_eq!(words, ["connect 0", "connect 1", "504 response-timeout"]);
    assert_eq!(denied, Some(RetryDenied::Condition));
    let (words, _) = steps(Compat::Nginx, RetryRules::native(), "GET", &[timeout, timeout, timeout]);
    assert_eq!(words, ["connect 0", "connect 1", "connect 2", "504 response-timeout"]);
}

#[test]
fn a_held_answer_that_could_not_be_kept_is_not_asked_for() {
    let cluster = cluster(Compat::None, &["a", "b"]);
    let (snapshot, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    assert_eq!(word(&walk.handle(head(503))), "hold, connect 1");
    walk.exchange.drop_held();
    assert_eq!(word(&walk.handle(ended(Progress::Sent, FailureKind::HeadTimeout))), "504 response-timeout");
}

#[test]
fn a_stale_connection_costs_nothing_and_is_held_against_nobody() {
    let mut one = cluster(Compat::None, &["a"]);
    one.retry = RetryRules::off();
    let (snapshot, board) = (snapshot(whole(&one), &[route(None)]), Board::default());
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    assert_eq!(word(&walk.handle(ended(Progress::StaleReuse, FailureKind::Closed))), "connect 0 fresh");
    assert_eq!(walk.exchange.report().unwrap().outcome.class, OutcomeClass::Neutral);
    assert_eq!((walk.exchange.attempts(), board.spent.get()), (1, 0));
    assert_eq!(walk.handle(head(200)), Step::Forward);
    // POST is not sent twice, and says why.
    let (mut walk, _) = Walk::begin(&Request::method("POST"), &snapshot, &board);
    assert_eq!(word(&walk.handle(ended(Progress::StaleReuse, FailureKind::Closed))), "502 reused-connection-reset");
    assert_eq!(walk.exchange.retry_denied(), Some(RetryDenied::Method));
}

#[test]
fn retries_pay_their_price_and_stop_when_the_budget_is_empty() {
    let cluster = cluster(Compat::None, &["a", "b", "c"]);
    let (snapshot, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    walk.handle(ended(Progress::NotSent, FailureKind::Refused));
    assert_eq!(board.spent.get(), 250);
    walk.handle(ended(Progress::Sent, FailureKind::HeadTimeout));
    assert_eq!(board.spent.get(), 2250);
    board.is_broke.set(true);
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    assert_eq!(walk.handle(head(503)), Step::Forward);
    assert_eq!(walk.exchange.retry_denied(), Some(RetryDenied::Budget));
}

#[test]
fn when_all_that_is_left_fails_as_well_only_unsent_requests_go_on() {
    let cluster = cluster(Compat::None, &["a", "b", "c"]);
    let (snapshot, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    board.failing.replace([1].into());
    let reset = ended(Progress::Sent, FailureKind::Reset);
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    assert_eq!(word(&walk.handle(reset)), "connect 1", "c is good");
    board.failing.replace([1, 2].into());
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    assert_eq!(word(&walk.handle(reset)), "502 connection-reset");
    assert_eq!(walk.exchange.retry_denied(), Some(RetryDenied::Pool));
    let (mut walk, _) = Walk::begin(&Request::get(), &snapshot, &board);
    assert_eq!(word(&walk.handle(ended(Progress::NotSent, FailureKind::Refused))), "connect 1");
}

#[test]
fn a_request_that_may_not_be_repeated_is_no_trial_unless_there_is_nobody_else() {
    let one = cluster(Compat::None, &["a", "b"]);
    let states =
        [true, false].map(|is_gated| State { slot: Slot(u32::from(!is_gated)), because: Because::Health, is_gated });
    let board = Board::default();
    let both = snapshot(view(&one, &states, vec![0, 1]), &[route(None)]);
    let begin = |snapshot, method| word(&Walk::begin(&Request::method(method), snapshot, &board).1);
    assert_eq!(begin(&both, "POST"), "connect 1");
    assert_eq!(begin(&both, "GET"), "connect 0", "FirstAlphabetical, and the gate is open");
    assert_eq!(begin(&both, "GET"), "connect 1", "one trial at a time");
    board.taken.borrow_mut().clear();
    let alone = snapshot(view(&one, &states, vec![0]), &[route(None)]);
    assert_eq!(begin(&alone, "POST"), "connect 0");
    assert_eq!(begin(&alone, "POST"), "503 none-available");
}

#[test]
fn later_attempts_are_marked_with_those_of_proxies_before_counted() {
    let cluster = cluster(Compat::None, &["a", "b"]);
    let (snapshot, board) = (snapshot(whole(&cluster), &[route(None)]), Board::default());
    for (came, marks) in [(1, [None, Some(2)]), (3, [None, Some(4)]), (u8::MAX, [None, Some(u8::MAX)])] {
        let request = Request::get();
        let facts = RequestFacts { attempt: came, ..request.facts() };
        let mut worker = Worker::new(1);
        let (mut exchange, _) = Exchange::begin(Timestamp::ZERO, &facts, &snapshot, &mut worker, &board);
        assert_eq!(exchange.mark(), marks[0], "what came goes on");
        let refused = ended(Progress::NotSent, FailureKind::Refused);
        exchange.handle(Timestamp::ZERO, refused, &snapshot, &mut worker, &board);
        assert_eq!(exchange.mark(), marks[1]);
    }
}

#[test]
fn a_route_has_rules_of_its_own_and_the_clusters_where_it_names_none() {
    let cluster = cluster(Compat::None, &["a", "b", "c"]);
    let board = Board::default();
    let reset = ended(Progress::Sent, FailureKind::Reset);
    let steps = |own: RouteRetry, method, inputs: &[Input]| {
        let mut route = route(None);
        route.policy.retry = Some(own);
        let snapshot = snapshot(whole(&cluster), &[route]);
        let (mut walk, _) = Walk::begin(&Request::method(method), &snapshot, &board);
        let words: Vec<String> = inputs.iter().map(|&input| word(&walk.handle(input))).collect();
        (words.join("; "), walk.exchange.retry_denied())
    };
    let off = RouteRetry { attempts: Some(1), ..RouteRetry::default() };
    assert_eq!(steps(off, "GET", &[reset]), ("502 connection-reset".to_owned(), Some(RetryDenied::Attempts)));
    let conditions = RetryConditions { error: false, timeout: false, invalid_header: false, statuses: vec![500] };
    let own = RouteRetry { conditions: Some(conditions), ..RouteRetry::default() };
    let (words, denied) = steps(own.clone(), "GET", &[head(500), reset]);
    assert_eq!((words.as_str(), denied), ("hold, connect 1; held", Some(RetryDenied::Condition)));
    assert_eq!(steps(own, "GET", &[head(503)]).0, "forward");
    let opted = RouteRetry { non_idempotent: Some(NonIdempotent::Always), ..RouteRetry::default() };
    assert_eq!(steps(opted, "POST", &[reset]).0, "connect 1");
}

#[test]
fn an_adaptive_route_learns_its_time_and_gives_up_only_what_may_go_elsewhere() {
    let mut one = cluster(Compat::None, &["a", "b", "c"]);
    one.retry.per_try_timeout = Some(Duration::from_secs(5));
    let mut route = route(None);
    route.policy.retry = Some(RouteRetry { pace: TryPace::Adaptive, ..RouteRetry::default() });
    let (snapshot, board) = (snapshot(whole(&one), &[route]), Board::default());
    let mut worker = Worker::new(1);
    let mut now = Timestamp::from_secs(1);
    let mut limit = |method: &str, worker: &mut Worker| {
        let request = Request::method(method);
        let (mut exchange, step) = Exchange::begin(now, &request.facts(), &snapshot, worker, &board);
        let Step::Connect(attempt) = step else { panic!("{step:?}") };
        let may = |replay| exchange.may_be_cut(now, replay, &snapshot, &board);
        let may = [Replay::Possible, Replay::Lost].map(may);
        now = now + Duration::from_millis(10);
        exchange.handle(now, head(200), &snapshot, worker, &board);
        (attempt.limit, may)
    };
    for _ in 0..60 {
        assert_eq!(limit("GET", &mut worker).0, Some(TryLimit::Given(Duration::from_secs(5))), "nothing is known yet");
    }
    let _ = (0..60).map(|_| limit("GET", &mut worker)).collect::<Vec<_>>();
    let (learnt, may) = limit("GET", &mut worker);
    assert!(matches!(learnt, Some(TryLimit::Learnt(span)) if span < Duration::from_millis(400)), "{learnt:?}");
    assert_eq!(may, [true, false]);
    assert_eq!(limit("POST", &mut worker).1, [false, false]);
    board.is_broke.set(true);
    assert_eq!(limit("GET", &mut worker).1, [false, false], "the budget would refuse it");
    board.is_broke.set(false);
    board.failing.replace([1, 2].into());
    assert_eq!(limit("GET", &mut worker).1, [false, false], "nobody would do better");
}

#[test]
fn an_adaptive_route_learns_nothing_from_times_with_a_pause_of_the_proxy_in_them() {
    let mut route = route(None);
    route.policy.retry = Some(RouteRetry { pace: TryPace::Adaptive, ..RouteRetry::default() });
    let (snapshot, board) = (snapshot(whole(&cluster(Compat::None, &["a", "b"])), &[route]), Board::default());
    let mut worker = Worker::new(1);
    let mut now = Timestamp::from_secs(1);
    let mut answered = |took: u64, worker: &mut Worker, count: usize| {
        let request = Request::get();
        let begin = |worker: &mut Worker| Exchange::begin(now, &request.facts(), &snapshot, worker, &board).0;
        let mut running: Vec<Exchange> = (0..count).map(|_| begin(worker)).collect();
        now = now + Duration::from_millis(took);
        if took > 1000 {
            board.woke.set(now);
        }
        for exchange in &mut running {
            exchange.handle(now, head(200), &snapshot, worker, &board);
        }
        let (_, step) = Exchange::begin(now, &request.facts(), &snapshot, worker, &board);
        let Step::Connect(attempt) = step else { panic!("{step:?}") };
        attempt.limit
    };
    let learnt = answered(10, &mut worker, 150);
    assert!(learnt.is_some());
    assert_eq!(answered(5000, &mut worker, 50), learnt, "they lay there, however long it took to read them");
}
