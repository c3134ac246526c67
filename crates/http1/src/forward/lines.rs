//! Single lines of a head, as they are written: start lines, fields, and what this proxy says itself.

use crate::connection::{Persistence, Version};
use crate::syntax::write_number;

/// Appends a status line; the registered phrase where `reason` is empty.
pub fn write_status_line(out: &mut Vec<u8>, status: u16, reason: &[u8]) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_number(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(if reason.is_empty() { phrase(status).as_bytes() } else { reason });
    out.extend_from_slice(b"\r\n");
}

/// Appends one field line.
pub fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends `Content-Length`.
pub fn write_length(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"Content-Length: ");
    write_number(out, length);
    out.extend_from_slice(b"\r\n");
}

/// Appends `Connection` where the version's own rule does not say it already (RFC 9112 9.3).
pub fn write_connection(out: &mut Vec<u8>, version: Version, persistence: Persistence) {
    match (version, persistence) {
        (Version::Http11, Persistence::KeepAlive) => {}
        (Version::Http10, Persistence::KeepAlive) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        (Version::Http10 | Version::Http11, Persistence::Close) => out.extend_from_slice(b"Connection: close\r\n"),
    }
}

/// The registered reason phrase (RFC 9110 15); empty for statuses that this proxy never makes itself.
pub fn phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        410 => "Gone",
        413 => "Content Too Large",
        414 => "URI Too Long",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

/// Appends a request line.
pub(super) fn write_line(out: &mut Vec<u8>, method: &str, prefix: &str, path: &str, query: Option<&str>) {
    out.extend_from_slice(method.as_bytes());
    out.push(b' ');
    if path != "*" {
        out.extend_from_slice(prefix.strip_suffix('/').unwrap_or(prefix).as_bytes());
    }
    out.extend_from_slice(path.as_bytes());
    if let Some(query) = query {
        out.push(b'?');
        out.extend_from_slice(query.as_bytes());
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
}
