//! Trailers: which may go on (RFC 9110 6.5.1, RFC 9113 8.1), and their two forms.

use http::{HeaderMap, HeaderValue};
use http1::body::BodyError;
use http1::fields::may_be_trailer;
use http1::forward::write_field;

use crate::fields::append;

/// Judges a client's trailers: each name must be one that may stand behind a body, and all of them together must be
/// within the limit that holds for HTTP/1.1 (`http1::body::MAX_TRAILERS`).
pub fn judge(trailers: &HeaderMap) -> Result<(), BodyError> {
    let mut length = 0;
    for (name, value) in trailers {
        let name = name.as_str().as_bytes();
        if !may_be_trailer(name) {
            return Err(BodyError::ForbiddenTrailer);
        }
        let value = value.as_bytes();
        if matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']) {
            return Err(BodyError::Trailer);
        }
        length += name.len() + value.len() + LINE;
    }
    if length > http1::body::MAX_TRAILERS { Err(BodyError::TooLong) } else { Ok(()) }
}

/// Drops from a destination's trailers those that belong in a head.
pub fn strip(trailers: HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::with_capacity(trailers.keys_len());
    for (name, value) in &trailers {
        if may_be_trailer(name.as_str().as_bytes()) {
            kept.append(name, value.clone());
        }
    }
    kept
}

/// The trailers that end a gRPC call with this status code (gRPC over HTTP/2, "Responses"). `message` is one of our own
/// words: visible ASCII without `%`.
pub fn of_call(code: u8, message: &'static str) -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(2);
    trailers.insert("grpc-status", HeaderValue::from(u16::from(code)));
    trailers.insert("grpc-message", HeaderValue::from_static(message));
    trailers
}

/// Appends the trailers as the lines of a trailer section (RFC 9112 7.1.2), without the empty line at its end.
pub fn write(out: &mut Vec<u8>, trailers: &HeaderMap) {
    for (name, value) in trailers {
        write_field(out, name.as_str().as_bytes(), value.as_bytes());
    }
}

/// The trailers of a trailer section that a body's tracker has judged, the empty line at its end included or not.
pub fn read(section: &[u8]) -> Result<HeaderMap, BodyError> {
    let mut trailers = HeaderMap::new();
    for line in section.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let colon = line.iter().position(|&byte| byte == b':').ok_or(BodyError::Trailer)?;
        let (name, value) = line.split_at(colon);
        let value = http1::syntax::trim(value.get(1..).unwrap_or_default());
        append(&mut trailers, name, value).map_err(|_| BodyError::Trailer)?;
    }
    Ok(trailers)
}

/// What a line has beside name and value.
const LINE: usize = ": \r\n".len();
