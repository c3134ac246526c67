//! The rules: from how an attempt ended to "again, elsewhere" or to the reason why not.
//!
//! | state at the end | who is sent again | where | cost |
//! |---|---|---|---|
//! | S0 nothing was sent | every method, every body | next destination | 0.25 |
//! | S0 HTTP/2: sent, and not processed by its own word | every method, every body, once an exchange (then as S0) | same destination, fresh connection | free, no attempt |
//! | S1 a reused connection ended without a byte | idempotent methods, once an exchange | same destination, fresh connection | free, no attempt |
//! | S2 sent, no complete head | GET HEAD OPTIONS TRACE (after one timeout at most); PUT DELETE when the connection ended without a response byte | next | 1, timeouts 2 |
//! | S3 head with a listed status, nothing forwarded | GET HEAD OPTIONS TRACE | next | 1 |
//! | S4 the client has seen a part | nobody | | |
//!
//! POST, PATCH and unknown methods join S1 to S3 only by `non_idempotent` (always, or with an Idempotency-Key), which
//! also lifts the narrower rule of PUT and DELETE. No changing method is sent twice when its fields make the second try
//! differ from the first. Conditions apply in nginx's words: a connection that failed or broke is `error`, time that
//! ran out `timeout`, an answer that is not HTTP `invalid_header`. Under `compat: nginx` the module `nginx` decides.
//!
//! Sources: RFC 9110 9.2.2, RFC 9112 9.3.1, nginx's documentation of proxy_next_upstream.

use std::time::Duration;

use model::cluster::Compat;
use model::outcome::{AttemptEnd, FailureKind, Progress};
use model::request::Method;
use model::retry::{NonIdempotent, RetryConditions, RetryRules};

use crate::budget::Cost;
use crate::nginx;
use crate::request::Repeatable;

/// Whether the request's body can be sent once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// There is none, nothing of it was sent, or all that was sent still lies in the buffer.
    Possible,
    /// Bytes were sent that are gone.
    Lost,
}

/// How the destinations that are available and not yet tried are doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// There is one that is worth a try.
    Good,
    /// Each of them failed more than half of its recent attempts.
    Failing,
    /// There is none.
    Empty,
}

/// Where an exchange stands when an attempt of it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Tries so far, the one that ended included, the free resend not.
    pub attempts: u8,
    /// Destinations with a weight above 0, available or not: nginx counts its tries from them.
    pub peers: u32,
    /// Retries after a timeout so far.
    pub timeouts: u8,
    /// The free resend (after a stale connection, or a request that was not processed) was used.
    pub is_stale_used: bool,
    /// Whether the body can be sent again.
    pub replay: Replay,
    /// Until the total deadline; `None`: there is none.
    pub time_left: Option<Duration>,
    /// The untried.
    pub pool: Pool,
}

/// What an attempt's end allows, from safest to least safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndState {
    /// S0.
    Unsent,
    /// S1.
    StaleReuse,
    /// S2.
    Sent,
    /// S3.
    HeadSeen,
}

/// Where the repeated request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To a destination not tried yet.
    Next,
    /// To the same one, over a fresh connection; counts as no attempt.
    SameFresh,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Repeat it, if the budget holds the price.
    Retry {
        /// What allowed it.
        state: EndState,
        /// Where to.
        target: Target,
        /// What it costs.
        cost: Cost,
    },
    /// Do not, and this is why.
    Denied(RetryDenied),
}

/// Why no further attempt was made, for the log and the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RetryDenied {
    /// All attempts are used.
    Attempts,
    /// The condition is not listed, or it is a second timeout.
    Condition,
    /// The method may not be repeated.
    Method,
    /// The body cannot be sent again.
    Body,
    /// The cluster's budget is used up.
    Budget,
    /// Not enough time is left.
    Deadline,
    /// No untried destination is available.
    Untried,
    /// The untried ones fail as well.
    Pool,
    /// A proxy before this one repeats the request.
    Hop,
}

impl RetryDenied {
    /// All of them, for the documentation and the tests.
    pub const ALL: [Self; 9] = [
        Self::Attempts,
        Self::Condition,
        Self::Method,
        Self::Body,
        Self::Budget,
        Self::Deadline,
        Self::Untried,
        Self::Pool,
        Self::Hop,
    ];

    /// Snake-case word, as in the access log and the metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Attempts => "attempts",
            Self::Condition => "condition",
            Self::Method => "method",
            Self::Body => "body",
            Self::Budget => "budget",
            Self::Deadline => "deadline",
            Self::Untried => "untried",
            Self::Pool => "pool",
            Self::Hop => "hop",
        }
    }
}

/// What kind of condition an end is, in nginx's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Error,
    Timeout,
    InvalidHeader,
    Status(u16),
    /// Nothing that could be listed: a good answer, our own limit, the client's fault, the deadline.
    Other,
}

/// Decides on one ended attempt (also on one that ended well: then the condition is not listed).
pub fn decide(rules: &RetryRules, compat: Compat, request: &Repeatable, end: &AttemptEnd, walk: &Walk) -> Verdict {
    let condition = condition_of(end);
    if end.progress == Progress::Forwarded || end.client_gone {
        return Verdict::Denied(RetryDenied::Condition);
    }
    if end.progress == Progress::StaleReuse && !walk.is_stale_used {
        return stale(rules, request, walk);
    }
    let is_turned_away = matches!(end.failure, Some(FailureKind::Unprocessed | FailureKind::RefusedStream));
    if is_turned_away && end.progress == Progress::NotSent && !walk.is_stale_used {
        return unprocessed(walk);
    }
    match compat {
        Compat::Nginx => nginx::decide(rules, request, end, walk, condition),
        Compat::None | Compat::Yarp => native(rules, request, end, walk, condition),
    }
}

/// S1: the destination closed an idle connection just as the request went out on it. Works with retry off, too: the
/// resend is part of using a pool at all.
fn stale(rules: &RetryRules, request: &Repeatable, walk: &Walk) -> Verdict {
    let is_allowed = request.method.is_safe()
        || (!request.is_conditional && (request.method.is_idempotent() || is_opted_in(rules, request)));
    if request.is_upgrade || !is_allowed {
        return Verdict::Denied(RetryDenied::Method);
    }
    if walk.replay == Replay::Lost {
        return Verdict::Denied(RetryDenied::Body);
    }
    if !has_time(walk) {
        return Verdict::Denied(RetryDenied::Deadline);
    }
    Verdict::Retry { state: EndState::StaleReuse, target: Target::SameFresh, cost: Cost::FREE }
}

/// The destination itself said that it did not take the request, over a connection that it closes or has no room on. Works
/// with retry off, too, and for every method (RFC 9113 8.7).
fn unprocessed(walk: &Walk) -> Verdict {
    if walk.replay == Replay::Lost {
        return Verdict::Denied(RetryDenied::Body);
    }
    if !has_time(walk) {
        return Verdict::Denied(RetryDenied::Deadline);
    }
    Verdict::Retry { state: EndState::Unsent, target: Target::SameFresh, cost: Cost::FREE }
}

fn native(rules: &RetryRules, request: &Repeatable, end: &AttemptEnd, walk: &Walk, condition: Condition) -> Verdict {
    let denied = Verdict::Denied;
    if !is_listed(&rules.conditions, condition) {
        let is_deadline = end.failure == Some(FailureKind::Deadline);
        return denied(if is_deadline { RetryDenied::Deadline } else { RetryDenied::Condition });
    }
    let state = match end.progress {
        Progress::NotSent => EndState::Unsent,
        Progress::StaleReuse | Progress::Sent => EndState::Sent,
        Progress::HeadSeen | Progress::Forwarded => EndState::HeadSeen,
    };
    if state != EndState::Unsent {
        if condition == Condition::Timeout && walk.timeouts > 0 {
            return denied(RetryDenied::Condition);
        }
        if !may_repeat(rules, request, end, condition) {
            return denied(RetryDenied::Method);
        }
        if request.is_repeat {
            return denied(RetryDenied::Hop);
        }
    }
    if walk.replay == Replay::Lost {
        return denied(RetryDenied::Body);
    }
    if walk.attempts >= rules.attempts {
        return denied(RetryDenied::Attempts);
    }
    if !has_time(walk) {
        return denied(RetryDenied::Deadline);
    }
    match (walk.pool, state) {
        (Pool::Empty, _) => return denied(RetryDenied::Untried),
        (Pool::Failing, EndState::StaleReuse | EndState::Sent | EndState::HeadSeen) => {
            return denied(RetryDenied::Pool);
        }
        (Pool::Failing, EndState::Unsent) | (Pool::Good, _) => {}
    }
    // Unsent comes first: a connect timeout has cost the destination nothing.
    let cost = match (state, condition) {
        (EndState::Unsent, _) => Cost::UNSENT,
        (_, Condition::Timeout) => Cost::TIMEOUT,
        (_, Condition::Error | Condition::InvalidHeader | Condition::Status(_) | Condition::Other) => Cost::SENT,
    };
    Verdict::Retry { state, target: Target::Next, cost }
}

/// Whether a request whose bytes went out may go out once more.
fn may_repeat(rules: &RetryRules, request: &Repeatable, end: &AttemptEnd, condition: Condition) -> bool {
    if request.is_upgrade {
        return false;
    }
    if request.method.is_safe() {
        return true;
    }
    if request.is_conditional {
        return false;
    }
    if is_opted_in(rules, request) {
        return true;
    }
    match request.method {
        Method::Put | Method::Delete => condition == Condition::Error && !end.response_bytes_seen,
        Method::Get
        | Method::Head
        | Method::Options
        | Method::Trace
        | Method::Post
        | Method::Patch
        | Method::Connect
        | Method::Other => false,
    }
}

/// Whether an attempt that has sent its request and waits for a head may be given up in favour of another destination.
pub fn may_be_cut(rules: &RetryRules, request: &Repeatable, walk: &Walk) -> bool {
    let end = AttemptEnd {
        progress: Progress::Sent,
        failure: Some(FailureKind::TryTimeout),
        status: None,
        call: None,
        retry_after: false,
        response_bytes_seen: false,
        client_gone: false,
        reused: false,
    };
    matches!(native(rules, request, &end, walk, Condition::Timeout), Verdict::Retry { .. })
}

/// Whether a request may be the trial of a destination that is on its way back: when that fails, nobody notices.
pub fn may_be_trial(rules: &RetryRules, request: &Repeatable) -> bool {
    let is_repeatable = request.method.is_safe() || (!request.is_conditional && is_opted_in(rules, request));
    is_repeatable && rules.attempts > 1 && !request.is_upgrade && !request.is_repeat
}

fn is_opted_in(rules: &RetryRules, request: &Repeatable) -> bool {
    match rules.non_idempotent {
        NonIdempotent::Never => false,
        NonIdempotent::WithKey => request.has_key,
        NonIdempotent::Always => true,
    }
}

fn has_time(walk: &Walk) -> bool {
    walk.time_left.is_none_or(|left| left >= LEAST_TIME)
}

pub(crate) fn is_listed(conditions: &RetryConditions, condition: Condition) -> bool {
    match condition {
        Condition::Error => conditions.error,
        Condition::Timeout => conditions.timeout,
        Condition::InvalidHeader => conditions.invalid_header,
        Condition::Status(status) => conditions.statuses.contains(&status),
        Condition::Other => false,
    }
}

fn condition_of(end: &AttemptEnd) -> Condition {
    let Some(failure) = end.failure else {
        return end.status.map_or(Condition::Other, Condition::Status);
    };
    match failure {
        FailureKind::Dns
        | FailureKind::Refused
        | FailureKind::Unreachable
        | FailureKind::Tls
        | FailureKind::Reset
        | FailureKind::Closed
        | FailureKind::RequestBody
        | FailureKind::Unprocessed
        | FailureKind::RefusedStream => Condition::Error,
        FailureKind::ConnectTimeout | FailureKind::HeadTimeout | FailureKind::TryTimeout => Condition::Timeout,
        FailureKind::Protocol => Condition::InvalidHeader,
        FailureKind::HeadTooLarge
        | FailureKind::BodyCut
        | FailureKind::BodyTimeout
        | FailureKind::Status
        | FailureKind::Body
        | FailureKind::Local
        | FailureKind::ClientGone
        | FailureKind::ClientBody
        | FailureKind::Deadline
        | FailureKind::ClientDeadline
        | FailureKind::ShortDeadline
        | FailureKind::Cancelled => Condition::Other,
    }
}

/// With less time than this left a further attempt only adds load.
const LEAST_TIME: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests;
