//! What our own policies count as a failure: two readings of the outcome table.

use model::outcome::{FailureKind, Outcome, OutcomeClass};

/// Whether the transport failed: no connection, no head in time, a response that broke off, or an exchange that the
/// destination broke before its head was complete. A status never is.
pub(crate) fn is_transport_failure(outcome: &Outcome) -> bool {
    match outcome.class {
        OutcomeClass::ConnFail | OutcomeClass::Cut => true,
        // gRPC's status for what took too long.
        OutcomeClass::Timeout => outcome.failure != Some(FailureKind::Status),
        OutcomeClass::AppFail => outcome.failure.is_some_and(breaks_transport),
        OutcomeClass::Ok | OutcomeClass::Overload | OutcomeClass::Slow | OutcomeClass::Neutral => false,
    }
}

/// Whether the attempt failed, by its transport or by its status.
pub(crate) fn is_failed_attempt(outcome: &Outcome) -> bool {
    match outcome.class {
        OutcomeClass::ConnFail | OutcomeClass::Timeout | OutcomeClass::Cut | OutcomeClass::AppFail => true,
        OutcomeClass::Ok | OutcomeClass::Overload | OutcomeClass::Slow | OutcomeClass::Neutral => false,
    }
}

fn breaks_transport(failure: FailureKind) -> bool {
    match failure {
        FailureKind::Dns
        | FailureKind::Refused
        | FailureKind::Unreachable
        | FailureKind::ConnectTimeout
        | FailureKind::Tls
        | FailureKind::Reset
        | FailureKind::Closed
        | FailureKind::HeadTimeout
        | FailureKind::TryTimeout
        | FailureKind::Protocol
        | FailureKind::RequestBody
        | FailureKind::BodyCut
        | FailureKind::BodyTimeout => true,
        FailureKind::HeadTooLarge
        | FailureKind::Status
        | FailureKind::Body
        | FailureKind::Local
        | FailureKind::ClientGone
        | FailureKind::ClientBody
        | FailureKind::Deadline
        | FailureKind::Unprocessed
        | FailureKind::RefusedStream
        | FailureKind::ClientDeadline
        | FailureKind::ShortDeadline
        | FailureKind::Cancelled => false,
    }
}
