//! How attempts and responses end, in the words of the machine and of the log.

use std::time::Duration;

use http1::response::Response;
use model::outcome::{AttemptEnd, FailureKind, Progress};

use crate::leg::Origin;

/// How a response came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// Whole.
    Whole,
    /// It broke off, or stood still: for want of the request's body where that is the client's doing.
    Broken(FailureKind),
    /// The client went away, or took nothing for too long.
    ClientGone,
    /// The total deadline is over.
    Deadline,
}

impl Delivered {
    /// The log's word; empty when all went well.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Broken(FailureKind::BodyTimeout) => "body-timeout",
            Self::Broken(FailureKind::ClientBody) => "request-body-timeout",
            Self::Broken(_) => "body-cut",
            Self::ClientGone => "client-gone",
            Self::Deadline => "deadline",
        }
    }
}

/// The end of an attempt whose response was forwarded.
pub(crate) fn end_of(response: &Response<'_>, delivered: Delivered, origin: Origin) -> AttemptEnd {
    let failure = match delivered {
        Delivered::Whole => None,
        Delivered::Broken(kind) => Some(kind),
        Delivered::ClientGone => Some(FailureKind::ClientGone),
        Delivered::Deadline => Some(FailureKind::Deadline),
    };
    AttemptEnd {
        progress: Progress::Forwarded,
        failure,
        status: Some(response.status()),
        call: None,
        retry_after: response.has_retry_after(),
        response_bytes_seen: true,
        client_gone: delivered == Delivered::ClientGone,
        reused: origin == Origin::Reused,
    }
}

/// An attempt that ended before anything was sent.
pub(crate) fn unsent(failure: FailureKind) -> AttemptEnd {
    AttemptEnd {
        progress: Progress::NotSent,
        failure: Some(failure),
        status: None,
        call: None,
        retry_after: false,
        response_bytes_seen: false,
        client_gone: false,
        reused: false,
    }
}

/// A response that is to be replaced gets so long to come to its end; the next attempt waits meanwhile.
pub(crate) const HOLD: Duration = Duration::from_millis(250);
/// An answer that lies ready is given up when the client does not take it within this time.
pub(crate) const SEND: Duration = Duration::from_secs(60);
