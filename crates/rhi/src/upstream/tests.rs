//! Standings and opinions of one upstream.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;
use crate::answer::PollFailure;
use model::vip::Unreachable;

fn states() -> Vec<String> {
    vec!["healthy".to_owned(), "mostly_healthy".to_owned()]
}

fn nodes(words: &[&str]) -> Answer {
    let node = |word: &&str| Node {
        address: "10.1.0.1:80".to_owned(),
        status: if word.is_empty() { None } else { Some((*word).to_owned()) },
    };
    Answer::Nodes { name: Some("/apisix/upstreams/api".to_owned()), nodes: words.iter().map(node).collect() }
}

fn api() -> UpstreamRef {
    UpstreamRef { kind: "upstreams".to_owned(), id: "api".to_owned() }
}

const WITHDRAW: FailurePolicy = FailurePolicy { control_api_unreachable: Unreachable::Withdraw, max_failed_polls: 2 };

#[test]
fn each_answer_has_its_own_opinion() {
    for (answer, expected) in [
        (nodes(&["healthy"]), Opinion::Up),
        (nodes(&["unhealthy", "mostly_healthy"]), Opinion::Up),
        (nodes(&["unhealthy", "mostly_unhealthy"]), Opinion::Down(Cause::AllUnhealthy { nodes: 2 })),
        (nodes(&["unhealthy", "unknown"]), Opinion::Hold(HeldFor::Warming)),
        (nodes(&[""]), Opinion::Hold(HeldFor::Warming)),
        (nodes(&["HEALTHY"]), Opinion::Down(Cause::AllUnhealthy { nodes: 1 })),
        (nodes(&[]), Opinion::Down(Cause::NoNodes)),
        (Answer::UnknownObject, Opinion::Down(Cause::UnknownObject)),
        (Answer::NoChecker, Opinion::Down(Cause::NoChecker)),
        (Answer::Failed(PollFailure::Refused), Opinion::Hold(HeldFor::NoAnswer)),
    ] {
        let mut upstream = Upstream::default();
        upstream.take(Timestamp::ZERO, &api(), answer.clone(), &states());
        assert_eq!(upstream.opinion(Timestamp::ZERO, WITHDRAW), expected, "{answer:?}");
    }
}

#[test]
fn the_states_that_count_can_be_narrowed() {
    let mut upstream = Upstream::default();
    upstream.take(Timestamp::ZERO, &api(), nodes(&["mostly_healthy"]), &["healthy".to_owned()]);
    assert_eq!(upstream.opinion(Timestamp::ZERO, WITHDRAW), Opinion::Down(Cause::AllUnhealthy { nodes: 1 }));
}

#[test]
fn warming_counts_from_its_first_answer_and_ends_by_itself() {
    let mut upstream = Upstream::default();
    for second in 0..30 {
        upstream.take(Timestamp::from_secs(second), &api(), nodes(&["unknown"]), &states());
        assert_eq!(upstream.opinion(Timestamp::from_secs(second), WITHDRAW), Opinion::Hold(HeldFor::Warming));
    }
    assert_eq!(upstream.warming_ends_at(), Some(Timestamp::from_secs(30)));
    assert_eq!(upstream.opinion(Timestamp::from_secs(30), WITHDRAW), Opinion::Down(Cause::WarmingTooLong));
    upstream.take(Timestamp::from_secs(31), &api(), nodes(&["unhealthy"]), &states());
    upstream.take(Timestamp::from_secs(32), &api(), nodes(&["unknown"]), &states());
    assert_eq!(upstream.warming_ends_at(), Some(Timestamp::from_secs(62)));
}

#[test]
fn failures_below_the_limit_hold_the_last_standing() {
    let mut upstream = Upstream::default();
    upstream.take(Timestamp::ZERO, &api(), nodes(&["healthy"]), &states());
    upstream.take(Timestamp::ZERO, &api(), Answer::Failed(PollFailure::Timeout), &states());
    assert_eq!(upstream.opinion(Timestamp::ZERO, WITHDRAW), Opinion::Up);
    upstream.take(Timestamp::ZERO, &api(), Answer::Failed(PollFailure::Timeout), &states());
    let down = Opinion::Down(Cause::ApiUnreachable { failed_polls: 2 });
    assert_eq!(upstream.opinion(Timestamp::ZERO, WITHDRAW), down);
}

#[test]
fn an_odd_word_is_remarked_once() {
    let mut upstream = Upstream::default();
    assert_eq!(
        upstream.take(Timestamp::ZERO, &api(), nodes(&["sleepy", "sleepy"]), &states()),
        [Remark::UnknownWord("sleepy".to_owned())]
    );
    assert!(upstream.take(Timestamp::ZERO, &api(), nodes(&["sleepy"]), &states()).is_empty());
}

#[test]
fn an_answer_about_something_else_is_a_failed_poll_whatever_it_says() {
    let mut upstream = Upstream::default();
    let named = |name: &str, words: &[&str]| match nodes(words) {
        Answer::Nodes { nodes, .. } => Answer::Nodes { name: Some(name.to_owned()), nodes },
        other @ (Answer::UnknownObject | Answer::NoChecker | Answer::Failed(_)) => other,
    };
    for name in ["/upstreams/api", "upstream#/apisix/upstreams/api", "upstreams/api"] {
        assert!(upstream.take(Timestamp::ZERO, &api(), named(name, &["healthy"]), &states()).is_empty(), "{name}");
        assert_eq!(upstream.failed_polls().in_a_row, 0, "{name}");
    }
    let other = named("/apisix/upstreams/other", &["unhealthy"]);
    let remarks = upstream.take(Timestamp::ZERO, &api(), other.clone(), &states());
    assert_eq!(remarks, [Remark::OtherName("/apisix/upstreams/other".to_owned())]);
    assert_eq!(upstream.opinion(Timestamp::ZERO, WITHDRAW), Opinion::Up, "held below the limit");
    assert!(upstream.take(Timestamp::ZERO, &api(), other, &states()).is_empty(), "remarked once");
    assert_eq!(upstream.failed_polls().last, Some(PollFailure::OtherObject));
    for name in ["/apisix/upstreams/x/api", "/apisix/routes/api", "/apisix/upstreams/xapi", "api", ""] {
        upstream.take(Timestamp::ZERO, &api(), named(name, &["healthy"]), &states());
        assert!(matches!(upstream.opinion(Timestamp::ZERO, WITHDRAW), Opinion::Down(_)), "{name}");
    }
    let slashes = UpstreamRef { kind: "upstreams".to_owned(), id: "a/b".to_owned() };
    assert!(is_named("/apisix/upstreams/a/b", &slashes));
}
