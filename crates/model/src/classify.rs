//! The outcome table: the one place that says whom an attempt's end is held against.
//!
//! | end | class |
//! |---|---|
//! | complete response, status below 500 except 429 | Ok |
//! | 429, 529, 503 with Retry-After | Overload |
//! | 500, 502, 503, 504 | AppFail |
//! | 501, 505 and other 5xx | Ok (the request is at fault, or it is not listed) |
//! | gRPC: INTERNAL, UNAVAILABLE, DATA_LOSS | AppFail |
//! | gRPC: RESOURCE_EXHAUSTED | Overload |
//! | gRPC: DEADLINE_EXCEEDED | Timeout |
//! | gRPC: any other status | Ok (it is the application's own answer) |
//! | refused, unreachable, name not found, TLS, connect timeout | ConnFail |
//! | no head in time, by idle or per try; the total deadline cut a running attempt | Timeout |
//! | reset, closed or garbage before a complete head; request body refused by the destination | AppFail |
//! | body broke off or stood still after the head | Cut |
//! | a reused connection ended without a byte | Neutral |
//! | the destination refused the stream (HTTP/2) | Overload |
//! | it did not process the request and is going away (HTTP/2's GOAWAY) | Neutral |
//! | the client's own deadline was over, and it was shorter than every limit of ours | Neutral |
//! | the total deadline cut an attempt that had got only a part of the time that a first one may have | Neutral |
//! | client gone, client's body at fault, our own limit, no descriptor or port | Neutral |
//!
//! Source: docs/outcomes.md, which a test compares row by row.

use crate::outcome::{AttemptEnd, CallStatus, FailureKind, OutcomeClass, Progress};

/// Classifies one attempt's end. `deadline` cuts count as [`OutcomeClass::Timeout`] only when no head had come.
pub fn classify(end: &AttemptEnd) -> OutcomeClass {
    if end.client_gone {
        return OutcomeClass::Neutral;
    }
    match (end.failure, end.call) {
        (Some(failure), _) => failure_class(failure, end),
        (None, Some(call)) if end.status == Some(200) => call_class(call),
        (None, _) if end.status == Some(503) && end.retry_after => OutcomeClass::Overload,
        (None, _) => status_class(end.status),
    }
}

/// The class of a complete response by its status alone.
pub fn status_class(status: Option<u16>) -> OutcomeClass {
    match status {
        Some(429 | 529) => OutcomeClass::Overload,
        Some(500 | 502 | 503 | 504) => OutcomeClass::AppFail,
        Some(_) | None => OutcomeClass::Ok,
    }
}

/// The class of a whole call by what the server said of it.
fn call_class(call: CallStatus) -> OutcomeClass {
    match call {
        CallStatus::INTERNAL | CallStatus::UNAVAILABLE | CallStatus::DATA_LOSS => OutcomeClass::AppFail,
        CallStatus::RESOURCE_EXHAUSTED => OutcomeClass::Overload,
        CallStatus::DEADLINE_EXCEEDED => OutcomeClass::Timeout,
        CallStatus(_) => OutcomeClass::Ok,
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
        FailureKind::RefusedStream => OutcomeClass::Overload,
        FailureKind::HeadTimeout | FailureKind::TryTimeout => OutcomeClass::Timeout,
        FailureKind::Deadline if end.status.is_none() => OutcomeClass::Timeout,
        FailureKind::BodyCut | FailureKind::BodyTimeout => OutcomeClass::Cut,
        FailureKind::Status | FailureKind::Body => OutcomeClass::AppFail,
        FailureKind::Deadline
        | FailureKind::HeadTooLarge
        | FailureKind::Local
        | FailureKind::ClientGone
        | FailureKind::ClientBody
        | FailureKind::Unprocessed
        | FailureKind::ClientDeadline
        | FailureKind::ShortDeadline
        | FailureKind::Cancelled => OutcomeClass::Neutral,
    }
}
