//! Fields, one by one: which of them HTTP/2 does not know, and how a line becomes a field.

use http::{HeaderMap, HeaderName, HeaderValue, header};
use http1::fields::Known;

use crate::error::Malformed;

/// Whether a message goes on behind its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It is over with its head (END_STREAM).
    Nothing,
    /// DATA or trailers may follow.
    Follows,
}

/// What a good field of HTTP/2 is to HTTP/1.1 text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A line like any other.
    Line,
    /// Written with start line or framing.
    Elsewhere,
}

/// Refuses a field that no HTTP/2 message may have (RFC 9113 8.2.1, 8.2.2).
pub(crate) fn judge(name: &HeaderName, value: &HeaderValue) -> Result<Place, Malformed> {
    let bytes = value.as_bytes();
    if matches!(bytes, [b' ' | b'\t', ..] | [.., b' ' | b'\t']) {
        return Err(Malformed::Value);
    }
    match Known::of(name.as_str().as_bytes()) {
        Known::Connection | Known::KeepAlive | Known::TransferEncoding | Known::Upgrade => {
            Err(Malformed::ConnectionField)
        }
        Known::Hop if name == "proxy-connection" => Err(Malformed::ConnectionField),
        Known::Te if !bytes.eq_ignore_ascii_case(b"trailers") => Err(Malformed::Te),
        Known::Host | Known::ContentLength => Ok(Place::Elsewhere),
        Known::Te
        | Known::Hop
        | Known::Other
        | Known::Expect
        | Known::Forwarded
        | Known::ForwardedFor
        | Known::ForwardedProto
        | Known::ForwardedHost
        | Known::ForwardedPrefix
        | Known::AltSvc
        | Known::RetryAfter
        | Known::Attempt
        | Known::GrpcTimeout
        | Known::Date => Ok(Place::Line),
    }
}

/// Whether a field of HTTP/1.1 text has a place in HTTP/2 under its own name.
pub(crate) fn is_end_to_end(name: &[u8]) -> bool {
    match Known::of(name) {
        Known::Connection | Known::KeepAlive | Known::Te | Known::TransferEncoding | Known::Upgrade | Known::Hop => {
            false
        }
        Known::Other
        | Known::Host
        | Known::ContentLength
        | Known::Expect
        | Known::Forwarded
        | Known::ForwardedFor
        | Known::ForwardedProto
        | Known::ForwardedHost
        | Known::ForwardedPrefix
        | Known::AltSvc
        | Known::RetryAfter
        | Known::Attempt
        | Known::GrpcTimeout
        | Known::Date => true,
    }
}

/// The one `Content-Length`; several, also of the same number, are refused: in HTTP/2 nothing needs them.
pub(crate) fn content_length(fields: &HeaderMap) -> Result<Option<u64>, Malformed> {
    let mut values = fields.get_all(header::CONTENT_LENGTH).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Malformed::ContentLength);
    }
    http1::syntax::digits(value.as_bytes()).map(Some).ok_or(Malformed::ContentLength)
}

/// Adds a field of HTTP/1.1 text.
pub(crate) fn append(fields: &mut HeaderMap, name: &[u8], value: &[u8]) -> Result<(), Malformed> {
    let name = HeaderName::from_bytes(name).map_err(|_| Malformed::Text)?;
    let value = HeaderValue::from_bytes(value).map_err(|_| Malformed::Text)?;
    fields.try_append(name, value).map(|_| ()).map_err(|_| Malformed::Text)
}
