//! Which fields go on to the next hop, and which end here.

use super::{Expectation, RequestRewrite, Trust};
use crate::fields::{Fate, Field, Known};

/// Whether a request's field goes on.
pub(super) fn goes_to_destination(field: &Field, rewrite: &RequestRewrite<'_>) -> bool {
    if field.fate == Fate::Nominated {
        return false;
    }
    match field.known {
        Known::Other | Known::AltSvc | Known::RetryAfter | Known::Date => true,
        Known::Attempt => rewrite.attempt.is_none(),
        Known::Expect => rewrite.expectation == Expectation::Forward,
        Known::ForwardedProto | Known::ForwardedHost | Known::ForwardedPrefix => rewrite.trust == Trust::Trusted,
        Known::Host
        | Known::Connection
        | Known::ContentLength
        | Known::TransferEncoding
        | Known::Te
        | Known::Upgrade
        | Known::KeepAlive
        | Known::Hop
        | Known::Forwarded
        | Known::ForwardedFor => false,
    }
}

/// Whether a response's field goes on.
pub(super) fn goes_to_client(field: &Field) -> bool {
    if field.fate == Fate::Nominated {
        return false;
    }
    match field.known {
        Known::Other
        | Known::Host
        | Known::Expect
        | Known::Forwarded
        | Known::ForwardedFor
        | Known::ForwardedProto
        | Known::ForwardedHost
        | Known::ForwardedPrefix
        | Known::RetryAfter
        | Known::Attempt
        | Known::Date => true,
        Known::Connection
        | Known::ContentLength
        | Known::TransferEncoding
        | Known::Te
        | Known::Upgrade
        | Known::KeepAlive
        | Known::Hop
        | Known::AltSvc => false,
    }
}
