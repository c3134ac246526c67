//! Tables of the retry rules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::*;

const fn request(method: Method) -> Repeatable {
    Repeatable { method, is_lock: false, has_key: false, is_conditional: false, is_upgrade: false, is_repeat: false }
}

fn end(progress: Progress, failure: FailureKind) -> AttemptEnd {
    AttemptEnd {
        progress,
        failure: Some(failure),
        status: None,
        call: None,
        retry_after: false,
        response_bytes_seen: false,
        client_gone: false,
        reused: progress == Progress::StaleReuse,
    }
}

fn status(status: u16) -> AttemptEnd {
    AttemptEnd {
        progress: Progress::HeadSeen,
        failure: None,
        status: Some(status),
        call: None,
        retry_after: false,
        response_bytes_seen: true,
        client_gone: false,
        reused: false,
    }
}

const FRESH: Walk = Walk {
    attempts: 1,
    peers: 3,
    timeouts: 0,
    is_stale_used: false,
    replay: Replay::Possible,
    time_left: None,
    pool: Pool::Good,
};

fn ask(request: &Repeatable, end: &AttemptEnd, walk: &Walk) -> Verdict {
    decide(&RetryRules::native(), Compat::None, request, end, walk)
}

fn ask_nginx(rules: &RetryRules, request: &Repeatable, end: &AttemptEnd, walk: &Walk) -> Verdict {
    decide(rules, Compat::Nginx, request, end, walk)
}

/// `yes`, or why not.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Retry { target: Target::Next, .. } => "yes",
        Verdict::Retry { target: Target::SameFresh, .. } => "same",
        Verdict::Denied(denied) => denied.as_str(),
    }
}

const METHODS: [Method; 10] = [
    Method::Get,
    Method::Head,
    Method::Options,
    Method::Trace,
    Method::Put,
    Method::Delete,
    Method::Post,
    Method::Patch,
    Method::Connect,
    Method::Other,
];

#[test]
fn what_the_destination_did_not_process_is_sent_again_there_at_once_and_then_elsewhere_whatever_the_method() {
    for failure in [FailureKind::Unprocessed, FailureKind::RefusedStream] {
        for method in METHODS {
            let (request, end) = (request(method), end(Progress::NotSent, failure));
            assert_eq!(word(ask(&request, &end, &FRESH)), "same", "{failure:?} {method:?}");
            let again = Walk { is_stale_used: true, ..FRESH };
            assert_eq!(word(ask(&request, &end, &again)), "yes", "{failure:?} {method:?}");
            let gone = Walk { replay: Replay::Lost, ..FRESH };
            assert_eq!(word(ask(&request, &end, &gone)), "body", "{failure:?} {method:?}");
        }
    }
}

#[test]
fn what_was_not_sent_is_repeated_whatever_the_method() {
    for method in METHODS {
        for failure in [
            FailureKind::Dns,
            FailureKind::Refused,
            FailureKind::Unreachable,
            FailureKind::Tls,
            FailureKind::ConnectTimeout,
            FailureKind::Reset,
        ] {
            let verdict = ask(&request(method), &end(Progress::NotSent, failure), &FRESH);
            let expected = Verdict::Retry { state: EndState::Unsent, target: Target::Next, cost: Cost::UNSENT };
            assert_eq!(verdict, expected, "{method:?} {failure:?}");
        }
    }
}

#[test]
fn what_was_sent_is_repeated_by_method() {
    use FailureKind::{Closed, HeadTimeout, Protocol, Reset};
    // Reset, closed, no head in time, not HTTP (not listed), 503.
    for (method, expected) in [
        (Method::Get, ["yes", "yes", "yes", "condition", "yes"]),
        (Method::Head, ["yes", "yes", "yes", "condition", "yes"]),
        (Method::Options, ["yes", "yes", "yes", "condition", "yes"]),
        (Method::Trace, ["yes", "yes", "yes", "condition", "yes"]),
        (Method::Put, ["yes", "yes", "method", "condition", "method"]),
        (Method::Delete, ["yes", "yes", "method", "condition", "method"]),
        (Method::Post, ["method", "method", "method", "condition", "method"]),
        (Method::Patch, ["method", "method", "method", "condition", "method"]),
        (Method::Other, ["method", "method", "method", "condition", "method"]),
    ] {
        let request = request(method);
        let failed = |failure| word(ask(&request, &end(Progress::Sent, failure), &FRESH));
        let got = [
            failed(Reset),
            failed(Closed),
            failed(HeadTimeout),
            failed(Protocol),
            word(ask(&request, &status(503), &FRESH)),
        ];
        assert_eq!(got, expected, "{method:?}");
    }
}

#[test]
fn a_byte_of_a_response_binds_put_and_delete_but_not_get() {
    let cut = AttemptEnd { response_bytes_seen: true, ..end(Progress::Sent, FailureKind::Reset) };
    assert_eq!(word(ask(&request(Method::Get), &cut, &FRESH)), "yes");
    assert_eq!(word(ask(&request(Method::Put), &cut, &FRESH)), "method");
    assert_eq!(word(ask(&request(Method::Delete), &cut, &FRESH)), "method");
}

#[test]
fn conditional_fields_forbid_a_second_try_of_changing_methods_once_sent() {
    for method in [Method::Put, Method::Delete, Method::Post] {
        let conditional = Repeatable { is_conditional: true, ..request(method) };
        let rules = RetryRules { non_idempotent: NonIdempotent::Always, ..RetryRules::native() };
        let reset = end(Progress::Sent, FailureKind::Reset);
        assert_eq!(word(decide(&rules, Compat::None, &conditional, &reset, &FRESH)), "method", "{method:?}");
        let refused = end(Progress::NotSent, FailureKind::Refused);
        assert_eq!(word(ask(&conditional, &refused, &FRESH)), "yes", "{method:?}");
        assert_eq!(word(ask(&conditional, &end(Progress::StaleReuse, FailureKind::Closed), &FRESH)), "method");
    }
}

#[test]
fn non_idempotent_lets_the_others_in() {
    let reset = end(Progress::Sent, FailureKind::Reset);
    let keyed = Repeatable { has_key: true, ..request(Method::Post) };
    for (opt_in, plain, with_key) in [
        (NonIdempotent::Never, "method", "method"),
        (NonIdempotent::WithKey, "method", "yes"),
        (NonIdempotent::Always, "yes", "yes"),
    ] {
        let rules = RetryRules { non_idempotent: opt_in, ..RetryRules::native() };
        assert_eq!(word(decide(&rules, Compat::None, &request(Method::Post), &reset, &FRESH)), plain, "{opt_in:?}");
        assert_eq!(word(decide(&rules, Compat::None, &keyed, &reset, &FRESH)), with_key, "{opt_in:?}");
    }
}

#[test]
fn a_stale_connection_is_replaced_once_and_for_free_with_retry_off_too() {
    let closed = end(Progress::StaleReuse, FailureKind::Closed);
    let off = RetryRules::off();
    for (method, expected) in [
        (Method::Get, "same"),
        (Method::Head, "same"),
        (Method::Put, "same"),
        (Method::Delete, "same"),
        (Method::Post, "method"),
        (Method::Other, "method"),
    ] {
        for compat in [Compat::None, Compat::Yarp, Compat::Nginx] {
            assert_eq!(
                word(decide(&off, compat, &request(method), &closed, &FRESH)),
                expected,
                "{method:?} {compat:?}"
            );
        }
    }
    let verdict = ask(&request(Method::Get), &closed, &FRESH);
    assert_eq!(verdict, Verdict::Retry { state: EndState::StaleReuse, target: Target::SameFresh, cost: Cost::FREE });
    let used = Walk { is_stale_used: true, ..FRESH };
    assert_eq!(word(ask(&request(Method::Get), &closed, &used)), "yes");
    assert_eq!(word(decide(&off, Compat::None, &request(Method::Get), &closed, &used)), "attempts");
    let lost = Walk { replay: Replay::Lost, ..FRESH };
    assert_eq!(word(ask(&request(Method::Put), &closed, &lost)), "body");
}

#[test]
fn each_limit_names_itself() {
    let get = request(Method::Get);
    let reset = end(Progress::Sent, FailureKind::Reset);
    let refused = end(Progress::NotSent, FailureKind::Refused);
    for (walk, sent, unsent) in [
        (Walk { attempts: 3, ..FRESH }, "attempts", "attempts"),
        (Walk { attempts: 2, ..FRESH }, "yes", "yes"),
        (Walk { replay: Replay::Lost, ..FRESH }, "body", "body"),
        (Walk { time_left: Some(Duration::from_millis(4)), ..FRESH }, "deadline", "deadline"),
        (Walk { time_left: Some(Duration::from_millis(5)), ..FRESH }, "yes", "yes"),
        (Walk { pool: Pool::Empty, ..FRESH }, "untried", "untried"),
        (Walk { pool: Pool::Failing, ..FRESH }, "pool", "yes"),
    ] {
        assert_eq!(word(ask(&get, &reset, &walk)), sent, "{walk:?}");
        assert_eq!(word(ask(&get, &refused, &walk)), unsent, "{walk:?}");
    }
}

#[test]
fn one_timeout_is_repeated_and_costs_double() {
    let timeout = end(Progress::Sent, FailureKind::HeadTimeout);
    let verdict = ask(&request(Method::Get), &timeout, &FRESH);
    assert_eq!(verdict, Verdict::Retry { state: EndState::Sent, target: Target::Next, cost: Cost::TIMEOUT });
    let second = Walk { attempts: 2, timeouts: 1, ..FRESH };
    assert_eq!(word(ask(&request(Method::Get), &timeout, &second)), "condition");
    assert_eq!(word(ask(&request(Method::Get), &end(Progress::Sent, FailureKind::Reset), &second)), "yes");
    // A connection that did not come up in time held nobody's resources.
    assert_eq!(word(ask(&request(Method::Get), &end(Progress::NotSent, FailureKind::ConnectTimeout), &second)), "yes");
}

#[test]
fn conditions_are_asked_for_unsent_requests_too() {
    let get = request(Method::Get);
    let mut rules = RetryRules::native();
    rules.conditions.error = false;
    let ask =
        |rules: &RetryRules, failure| word(decide(rules, Compat::None, &get, &end(Progress::NotSent, failure), &FRESH));
    assert_eq!(ask(&rules, FailureKind::Refused), "condition");
    assert_eq!(ask(&rules, FailureKind::ConnectTimeout), "yes");
    rules.conditions.timeout = false;
    assert_eq!(ask(&rules, FailureKind::ConnectTimeout), "condition");
    rules.conditions.invalid_header = true;
    assert_eq!(word(decide(&rules, Compat::None, &get, &end(Progress::Sent, FailureKind::Protocol), &FRESH)), "yes");
    assert_eq!(word(decide(&rules, Compat::None, &get, &status(500), &FRESH)), "condition");
    rules.conditions.statuses.push(500);
    assert_eq!(word(decide(&rules, Compat::None, &get, &status(500), &FRESH)), "yes");
}

#[test]
fn nothing_is_repeated_after_forwarding_or_for_faults_of_ours_or_the_client() {
    let get = request(Method::Get);
    for (progress, failure) in [
        (Progress::Forwarded, FailureKind::BodyCut),
        (Progress::Sent, FailureKind::ClientGone),
        (Progress::Sent, FailureKind::ClientBody),
        (Progress::NotSent, FailureKind::Local),
        (Progress::Sent, FailureKind::HeadTooLarge),
        (Progress::HeadSeen, FailureKind::BodyTimeout),
    ] {
        for compat in [Compat::None, Compat::Nginx] {
            let verdict = decide(&RetryRules::native(), compat, &get, &end(progress, failure), &FRESH);
            assert_eq!(word(verdict), "condition", "{progress:?} {failure:?}");
        }
    }
    let gone = AttemptEnd { client_gone: true, ..end(Progress::Sent, FailureKind::Reset) };
    assert_eq!(word(ask(&get, &gone, &FRESH)), "condition");
    assert_eq!(word(ask(&get, &end(Progress::Sent, FailureKind::Deadline), &FRESH)), "deadline");
}

#[test]
fn upgrades_are_repeated_only_unsent() {
    let upgrade = Repeatable { is_upgrade: true, ..request(Method::Get) };
    assert_eq!(word(ask(&upgrade, &end(Progress::NotSent, FailureKind::Refused), &FRESH)), "yes");
    assert_eq!(word(ask(&upgrade, &end(Progress::Sent, FailureKind::Reset), &FRESH)), "method");
    assert_eq!(word(ask(&upgrade, &end(Progress::StaleReuse, FailureKind::Closed), &FRESH)), "method");
}

#[test]
fn under_nginx_post_patch_and_lock_stay_and_all_others_go_on() {
    let rules = RetryRules {
        conditions: RetryConditions { statuses: vec![500], ..RetryRules::native().conditions },
        ..RetryRules::native()
    };
    let lock = Repeatable { is_lock: true, ..request(Method::Other) };
    for (request, sent, unsent) in [
        (request(Method::Get), "yes", "yes"),
        (request(Method::Put), "yes", "yes"),
        (request(Method::Delete), "yes", "yes"),
        (request(Method::Other), "yes", "yes"),
        (lock, "method", "yes"),
        (request(Method::Post), "method", "yes"),
        (request(Method::Patch), "method", "yes"),
    ] {
        for end in [end(Progress::Sent, FailureKind::Reset), end(Progress::Sent, FailureKind::HeadTimeout), status(500)]
        {
            assert_eq!(word(ask_nginx(&rules, &request, &end, &FRESH)), sent, "{request:?} {end:?}");
        }
        let refused = end(Progress::NotSent, FailureKind::Refused);
        assert_eq!(word(ask_nginx(&rules, &request, &refused, &FRESH)), unsent, "{request:?}");
    }
    let always = RetryRules { non_idempotent: NonIdempotent::Always, ..rules };
    assert_eq!(word(ask_nginx(&always, &request(Method::Post), &status(500), &FRESH)), "yes");
}

#[test]
fn under_nginx_tries_are_the_servers_cut_by_attempts() {
    let get = request(Method::Get);
    let reset = end(Progress::Sent, FailureKind::Reset);
    for (attempts, peers, used, expected) in [
        (1, 2, 1, "attempts"),
        (2, 2, 1, "yes"),
        (2, 2, 2, "attempts"),
        (9, 2, 1, "yes"),
        (9, 2, 2, "attempts"),
        (2, 1, 1, "attempts"),
    ] {
        let rules = RetryRules { attempts, ..RetryRules::native() };
        // Whether anyone is left shows only at the pick.
        let walk = Walk { attempts: used, peers, pool: Pool::Empty, ..FRESH };
        assert_eq!(word(ask_nginx(&rules, &get, &reset, &walk)), expected, "{attempts} {peers} {used}");
    }
}

#[test]
fn what_a_proxy_before_repeats_is_repeated_here_only_when_nothing_was_sent() {
    let repeat = Repeatable { is_repeat: true, ..request(Method::Get) };
    let verdict = |progress, failure| ask(&repeat, &end(progress, failure), &FRESH);
    assert_eq!(verdict(Progress::Sent, FailureKind::Reset), Verdict::Denied(RetryDenied::Hop));
    assert!(matches!(verdict(Progress::NotSent, FailureKind::Refused), Verdict::Retry { .. }));
}

#[test]
fn a_trial_is_what_may_be_repeated_wherever_it_ends() {
    let rules = RetryRules::native();
    let opted = RetryRules { non_idempotent: NonIdempotent::Always, ..RetryRules::native() };
    assert!(may_be_trial(&rules, &request(Method::Get)));
    for method in [Method::Post, Method::Put, Method::Delete] {
        assert!(!may_be_trial(&rules, &request(method)), "{method:?}");
        assert!(may_be_trial(&opted, &request(method)), "{method:?}");
    }
    assert!(!may_be_trial(&opted, &Repeatable { is_conditional: true, ..request(Method::Put) }));
    assert!(!may_be_trial(&rules, &Repeatable { is_upgrade: true, ..request(Method::Get) }));
    assert!(!may_be_trial(&rules, &Repeatable { is_repeat: true, ..request(Method::Get) }));
    assert!(!may_be_trial(&RetryRules::off(), &request(Method::Get)));
}

#[test]
fn every_reason_to_deny_stands_in_the_documentation() {
    const DOCS: &str = include_str!("../../../../docs/retry.md");
    for denied in RetryDenied::ALL {
        assert!(DOCS.contains(&format!("| `{}` |", denied.as_str())), "{denied:?}");
    }
}
