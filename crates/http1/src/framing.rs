//! Where a message ends (RFC 9112 6): the rules over `Transfer-Encoding` and `Content-Length`.
//!
//! Anything that two recipients could read in two ways is refused: both fields at once, a coding list, a coding in
//! HTTP/1.0, lengths that differ.

use crate::connection::Version;
use crate::fields::{Known, Section};
use crate::syntax::{digits, list};

/// How a request's body ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestFraming {
    /// There is none.
    #[default]
    None,
    /// After so many bytes.
    Length(u64),
    /// With its last chunk.
    Chunked,
}

/// How a response's body ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseFraming {
    /// There is none: HEAD, 1xx, 204, 304.
    #[default]
    None,
    /// After so many bytes.
    Length(u64),
    /// With its last chunk.
    Chunked,
    /// With the connection.
    Close,
}

/// What both fields declare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declared {
    Nothing,
    Length(u64),
    Chunked,
}

/// Why the two fields do not say where the message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FramingError {
    ContentLength,
    TransferEncoding,
    UnknownCoding,
}

/// Reads both fields.
pub(crate) fn declared(fields: &Section, bytes: &[u8], version: Version) -> Result<Declared, FramingError> {
    let length = content_length(fields, bytes)?;
    let codings = fields.values(bytes, Known::TransferEncoding);
    if !fields.has(Known::TransferEncoding) {
        return Ok(length.map_or(Declared::Nothing, Declared::Length));
    }
    if length.is_some() || version == Version::Http10 {
        return Err(FramingError::TransferEncoding);
    }
    let mut chunked = 0;
    let mut unknown = 0;
    let mut is_last_chunked = false;
    for coding in codings.flat_map(list) {
        is_last_chunked = coding.eq_ignore_ascii_case(b"chunked");
        if is_last_chunked {
            chunked += 1;
        } else if coding.is_empty() {
            return Err(FramingError::TransferEncoding);
        } else {
            unknown += 1;
        }
    }
    match (chunked, unknown, is_last_chunked) {
        (1, 0, true) => Ok(Declared::Chunked),
        (1, _, true) | (0, _, _) => Err(FramingError::UnknownCoding),
        _ => Err(FramingError::TransferEncoding),
    }
}

/// All lengths must be the same number; the same number twice is one (RFC 9112 6.3).
fn content_length(fields: &Section, bytes: &[u8]) -> Result<Option<u64>, FramingError> {
    // Nearly all heads have none, or one with one number.
    if !fields.has(Known::ContentLength) {
        return Ok(None);
    }
    if let Some(length) = fields.only(Known::ContentLength).and_then(|field| digits(field.value.of(bytes))) {
        return Ok(Some(length));
    }
    let mut found = None;
    for text in fields.values(bytes, Known::ContentLength).flat_map(list) {
        let length = digits(text).ok_or(FramingError::ContentLength)?;
        if found.is_some_and(|earlier| earlier != length) {
            return Err(FramingError::ContentLength);
        }
        found = Some(length);
    }
    Ok(found)
}
