//! Responses: from HTTP/1.1 text as a client of that version would get it, and from HTTP/2 to text.

use http::{HeaderMap, HeaderValue, Response, StatusCode, Version, header, response::Parts};
use http1::fields::Known;
use http1::forward::{ResponseRewrite, write_field, write_length, write_status_line};
use http1::framing::ResponseFraming;
use http1::request::Parsed;
use http1::response::{RequestKind, ResponseHead};

use crate::error::Malformed;
use crate::fields::{Place, Rest, append, content_length, is_end_to_end, judge};
use crate::request::WIDE;

/// The response for HTTP/2, from the text that `http1::forward::response` (or `interim`) wrote. `parser` is memory to
/// parse with.
///
/// Fields that an HTTP/2 message may not have are left out (RFC 9113 8.2.2); the reason phrase has no form there.
pub fn read(head: &[u8], parser: &mut ResponseHead, kind: RequestKind) -> Result<Response<()>, Malformed> {
    if parser.parse(head, &WIDE, kind) != Ok(Parsed::Complete) {
        return Err(Malformed::Text);
    }
    let view = parser.view(head);
    let mut fields = HeaderMap::with_capacity(view.fields().count());
    for (_, name, value) in view.fields() {
        if is_end_to_end(name) {
            append(&mut fields, name, value)?;
        }
    }
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(view.status()).map_err(|_| Malformed::Text)?;
    *response.version_mut() = Version::HTTP_2;
    *response.headers_mut() = fields;
    Ok(response)
}

/// The response for HTTP/2, straight from a destination's: the same as [`read`] makes of what `http1::forward::response`
/// writes. `None`: the route changes it, which is done in text.
pub fn forward(from: &http1::response::Response<'_>, rewrite: &ResponseRewrite<'_>) -> Option<Response<()>> {
    if rewrite.changes.is_some() {
        return None;
    }
    let own = 2 + rewrite.cookies.len();
    let mut fields = HeaderMap::with_capacity(http1::forward::passing(from).count() + own);
    let mut is_dated = from.status() < 200;
    for (known, name, value) in http1::forward::passing(from) {
        is_dated |= known == Known::Date;
        append(&mut fields, name, value).ok()?;
    }
    if !is_dated {
        fields.insert(header::DATE, HeaderValue::from_str(rewrite.date).ok()?);
    }
    for cookie in rewrite.cookies {
        fields.append(header::SET_COOKIE, HeaderValue::from_str(cookie).ok()?);
    }
    let length = match from.framing() {
        ResponseFraming::Length(length) => Some(length),
        ResponseFraming::None => from.declared_length(),
        ResponseFraming::Chunked | ResponseFraming::Close => None,
    };
    if let Some(length) = length {
        fields.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(from.status()).ok()?;
    *response.version_mut() = Version::HTTP_2;
    *response.headers_mut() = fields;
    Some(response)
}

/// Appends the response as HTTP/1.1 text, the empty line included.
///
/// A body without length becomes chunked, so that trailers have a place. A response that is over with its head and
/// declares no length is written the same way when a body could have followed: nothing is said of it that the
/// destination did not say. A length on a 1xx or 204 is refused by nobody and left out (RFC 9110 8.6).
pub fn write(out: &mut Vec<u8>, parts: &Parts, rest: Rest, kind: RequestKind) -> Result<(), Malformed> {
    let status = parts.status.as_u16();
    let is_bodyless = status < 200 || status == 204;
    let length = if is_bodyless { None } else { content_length(&parts.headers)? };
    let may_have_body = !is_bodyless && status != 304 && kind == RequestKind::Other;
    if may_have_body && rest == Rest::Nothing && length.is_some_and(|length| length > 0) {
        return Err(Malformed::ContentLength);
    }
    write_status_line(out, status, b"");
    for (name, value) in &parts.headers {
        match judge(name, value)? {
            Place::Line => write_field(out, name.as_str().as_bytes(), value.as_bytes()),
            Place::Elsewhere => {}
        }
    }
    match length {
        Some(length) => write_length(out, length),
        None if may_have_body => write_field(out, b"Transfer-Encoding", b"chunked"),
        None => {}
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}
