//! nginx 1.22's decision to pass a request to the next server (proxy_next_upstream), for `compat: nginx`.
//!
//! Signal: the condition of the ended attempt. Trip condition: it is listed, tries are left, and either nothing was
//! sent yet or the method is none of POST, LOCK, PATCH (unless `non_idempotent`); PUT and DELETE count as repeatable
//! after anything. Statistic: none; no budget, no gate, no limit on timeouts. Cold start: none.
//! Tries are counted from the configured servers, cut by `attempts`; whether one of them can still be picked shows only
//! at the pick, which may end with "no live upstreams" (502) although a real answer was at hand.
//! One difference is kept on purpose: a stale reused connection gets the free resend on the same server, where nginx
//! moves on to the next one.

use model::outcome::{AttemptEnd, Progress};
use model::request::Method;
use model::retry::{NonIdempotent, RetryRules};

use crate::budget::Cost;
use crate::decision::{Condition, EndState, Replay, RetryDenied, Target, Verdict, Walk, is_listed};
use crate::request::Repeatable;

pub(crate) fn decide(
    rules: &RetryRules,
    request: &Repeatable,
    end: &AttemptEnd,
    walk: &Walk,
    condition: Condition,
) -> Verdict {
    let tries = u32::from(rules.attempts).min(walk.peers);
    if u32::from(walk.attempts) >= tries {
        return Verdict::Denied(RetryDenied::Attempts);
    }
    if !is_listed(&rules.conditions, condition) {
        return Verdict::Denied(RetryDenied::Condition);
    }
    let is_sent = end.progress != Progress::NotSent;
    let is_fragile = request.is_lock || matches!(request.method, Method::Post | Method::Patch);
    let is_opted_in = match rules.non_idempotent {
        NonIdempotent::Never => false,
        NonIdempotent::WithKey => request.has_key,
        NonIdempotent::Always => true,
    };
    if is_sent && (request.is_upgrade || (is_fragile && !is_opted_in)) {
        return Verdict::Denied(RetryDenied::Method);
    }
    if walk.replay == Replay::Lost {
        return Verdict::Denied(RetryDenied::Body);
    }
    if walk.time_left.is_some_and(|left| left.is_zero()) {
        return Verdict::Denied(RetryDenied::Deadline);
    }
    let state = match end.progress {
        Progress::NotSent => EndState::Unsent,
        Progress::StaleReuse | Progress::Sent => EndState::Sent,
        Progress::HeadSeen | Progress::Forwarded => EndState::HeadSeen,
    };
    Verdict::Retry { state, target: Target::Next, cost: Cost::FREE }
}
