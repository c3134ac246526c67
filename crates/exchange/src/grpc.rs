//! What the machine and its drivers know of gRPC: which requests are calls, how long a call's client waits, and with
//! which code a failure of our own is told.
//!
//! Clients of gRPC read the status code of HTTP as a last resort only, so they are answered in their own words
//! (gRPC over HTTP/2, "Responses": Trailers-Only; the codes stand in gRPC's statuscodes.md).

use std::time::Duration;

use model::request::{Fields, Method, RequestFacts};

/// A gRPC status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(u8);

impl Code {
    /// Something that fits no other code.
    pub const UNKNOWN: Self = Self(2);
    /// Too late.
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    /// The caller may not.
    pub const PERMISSION_DENIED: Self = Self(7);
    /// A limit is reached.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    /// There is no such method here.
    pub const UNIMPLEMENTED: Self = Self(12);
    /// A side broke the protocol.
    pub const INTERNAL: Self = Self(13);
    /// Nobody could serve the call; another try may do.
    pub const UNAVAILABLE: Self = Self(14);
    /// The caller did not say who it is.
    pub const UNAUTHENTICATED: Self = Self(16);

    /// The code of an answer of our own: by its word where that says more than the status, else by the status.
    pub fn of(status: u16, details: &str) -> Self {
        match (status, details) {
            // No byte of the call has left.
            (_, "connect-timeout") => Self::UNAVAILABLE,
            // Another try would meet the same.
            (_, "response-head-too-large") => Self::RESOURCE_EXHAUSTED,
            (_, "not-http") => Self::INTERNAL,
            (401, _) => Self::UNAUTHENTICATED,
            (403, _) => Self::PERMISSION_DENIED,
            (404 | 405 | 501, _) => Self::UNIMPLEMENTED,
            (408 | 504, _) => Self::DEADLINE_EXCEEDED,
            (413 | 414 | 429 | 431, _) => Self::RESOURCE_EXHAUSTED,
            (502 | 503, _) => Self::UNAVAILABLE,
            (400..=499, _) => Self::INTERNAL,
            (_, _) => Self::UNKNOWN,
        }
    }

    /// The number that stands in `grpc-status`.
    pub fn number(self) -> u8 {
        self.0
    }
}

/// Whether this value of `Content-Type` is gRPC's: `application/grpc`, alone or before `+` or `;`. gRPC-Web is not.
pub fn is_content_type(value: &[u8]) -> bool {
    let Some((kind, rest)) = value.split_at_checked(KIND.len()) else { return false };
    kind.eq_ignore_ascii_case(KIND) && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
}

/// Whether a request with these fields is a call.
pub fn is_call(fields: &(impl Fields + ?Sized)) -> bool {
    let mut is_call = false;
    fields.each("content-type", &mut |value| is_call |= is_content_type(value));
    is_call
}

/// How long the caller waits in all: the value of `grpc-timeout`. `None` where the request is no call, says nothing, says
/// it twice, or says it in another form than one to eight digits and a unit.
pub(crate) fn timeout(facts: &RequestFacts<'_>) -> Option<Duration> {
    // All calls are POSTs; the others need no look.
    if facts.method != Method::Post || !is_call(facts.fields) {
        return None;
    }
    let (mut count, mut timeout) = (0, None);
    facts.fields.each("grpc-timeout", &mut |value| {
        count += 1;
        timeout = span(value);
    });
    timeout.filter(|_| count == 1)
}

fn span(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if !(1..=8).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(match unit {
        // Eight digits of hours are far within u64 seconds.
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

const KIND: &[u8] = b"application/grpc";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_by_their_content_type() {
        for value in ["application/grpc", "application/grpc+proto", "Application/gRPC;charset=utf-8"] {
            assert!(is_content_type(value.as_bytes()), "{value}");
        }
        for value in ["application/grpc-web", "application/grpc-web+proto", "application/json", "", "application/grp"] {
            assert!(!is_content_type(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn timeouts_have_digits_and_a_unit() {
        let known = [
            ("1S", Duration::from_secs(1)),
            ("2M", Duration::from_secs(120)),
            ("99999999H", Duration::from_secs(359_999_996_400)),
            ("250m", Duration::from_millis(250)),
            ("7u", Duration::from_micros(7)),
            ("00000000n", Duration::ZERO),
        ];
        for (value, expected) in known {
            assert_eq!(span(value.as_bytes()), Some(expected), "{value}");
        }
        for value in ["", "S", "1", "1s", "1 S", "-1S", "+1S", "1.5S", "123456789m", "1Sm", "\u{661}S"] {
            assert_eq!(span(value.as_bytes()), None, "{value}");
        }
    }

    #[test]
    fn codes_follow_the_word_before_the_status() {
        let codes = [
            (503, "none-available", Code::UNAVAILABLE),
            (502, "connection-refused", Code::UNAVAILABLE),
            (502, "not-http", Code::INTERNAL),
            (502, "response-head-too-large", Code::RESOURCE_EXHAUSTED),
            (504, "deadline", Code::DEADLINE_EXCEEDED),
            (504, "connect-timeout", Code::UNAVAILABLE),
            (413, "request-body-too-large", Code::RESOURCE_EXHAUSTED),
            (429, "too-many-requests", Code::RESOURCE_EXHAUSTED),
            (404, "no-route", Code::UNIMPLEMENTED),
            (403, "denied", Code::PERMISSION_DENIED),
            (401, "denied", Code::UNAUTHENTICATED),
            (400, "ambiguous-path", Code::INTERNAL),
            (500, "denied", Code::UNKNOWN),
        ];
        for (status, details, code) in codes {
            assert_eq!(Code::of(status, details), code, "{status} {details}");
        }
    }
}
