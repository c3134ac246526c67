//! The outcome table: the one place that says whom an attempt's end is held against.
//!
//! | end | class |
//! |---|---|
//! | complete response, status below 500 except 429 | Ok |
//! | 429, 529, 503 with Retry-After | Overload |
//! | 500, 502, 503, 504 | AppFail |
//! | 501, 505 and other 5xx | Ok (the request is at fault, or it is not listed) |
//! | refused, unreachable, name not found, TLS, connect timeout | ConnFail |
//! | no head in time; the total deadline cut a running attempt | Timeout |
//! | reset, closed or garbage before a complete head; request body refused by the destination | AppFail |
//! | body broke off or stood still after the head | Cut |
//! | a reused connection ended without a byte | Neutral |
//! | the destination said that it did not process the request (HTTP/2) | Neutral |
//! | client gone, client's body at fault, our own limit, no descriptor or port | Neutral |
//!
//! Source: docs/outcomes.md, which a test compares row by row.

use crate::outcome::{AttemptEnd, FailureKind, OutcomeClass, Progress};

/// Classifies one attempt's end. `deadline` cuts count as [`OutcomeClass::Timeout`] only when no head had come.
pub fn classify(end: &AttemptEnd) -> OutcomeClass {
    if end.client_gone {
        return OutcomeClass::Neutral;
    }
    match end.failure {
        None => status_class(end.status, end.retry_after),
        Some(failure) => failure_class(failure, end),
    }
}

/// The class of a complete response by its status.
pub fn status_class(status: Option<u16>, retry_after: bool) -> OutcomeClass {
    match status {
        Some(429 | 529) => OutcomeClass::Overload,
        Some(503) if retry_after => OutcomeClass::Overload,
        Some(500 | 502 | 503 | 504) => OutcomeClass::AppFail,
        _ => OutcomeClass::Ok,
    }
}

fn failure_class(failure: FailureKind, end: &AttemptEnd) -> OutcomeClass {
    match failure {
        FailureKind::Dns
        | FailureKind::Refused
        | FailureKind::Unreachable
        | FailureKind::ConnectTimeout
        | FailureKind::Tls => OutcomeClass::ConnFail,
        FailureKind::Reset | FailureKind::Closed if end.progress == Progress::StaleReuse => OutcomeClass::Neutral,
        FailureKind::Reset | FailureKind::Closed if end.progress == Progress::NotSent => OutcomeClass::ConnFail,
        FailureKind::Reset | FailureKind::Closed | FailureKind::Protocol | FailureKind::RequestBody => {
            OutcomeClass::AppFail
        }
        FailureKind::HeadTimeout => OutcomeClass::Timeout,
        FailureKind::Deadline if end.status.is_none() => OutcomeClass::Timeout,
        FailureKind::BodyCut | FailureKind::BodyTimeout => OutcomeClass::Cut,
        FailureKind::Status | FailureKind::Body => OutcomeClass::AppFail,
        FailureKind::Deadline
        | FailureKind::HeadTooLarge
        | FailureKind::Local
        | FailureKind::ClientGone
        | FailureKind::ClientBody
        | FailureKind::Unprocessed
        | FailureKind::Cancelled => OutcomeClass::Neutral,
    }
}
