//! Requests: from HTTP/2 to HTTP/1.1 text for `http1` to judge, and from rewritten text to HTTP/2.

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, Method, Request, Uri, Version, header, request::Parts};
use http1::forward::{write_field, write_length};
use http1::limits::HeadLimits;
use http1::request::{Parsed, RequestHead};

use crate::error::Malformed;
pub use crate::fields::Rest;
use crate::fields::{Place, append, content_length, is_end_to_end, judge};

/// Appends the request as HTTP/1.1 text, the empty line included.
///
/// - `Host` comes first and is `:authority`, else the `Host` field; both must say the same (RFC 9113 8.3.1).
/// - Cookie crumbs are joined by `; ` into one line, where the first of them stood (RFC 9113 8.2.3).
/// - A body without length becomes chunked; POST, PUT and PATCH that are over with their head say so by a length of 0
///   (RFC 9110 8.6), as some servers ask for it.
///
/// Limits are not looked at: the parser of `http1` does that on the text. It grows by the fields of `parts` and no more
/// than 100 bytes.
pub fn write(out: &mut Vec<u8>, parts: &Parts, rest: Rest) -> Result<(), Malformed> {
    if parts.method == Method::CONNECT {
        return Err(Malformed::Connect);
    }
    let length = content_length(&parts.headers)?;
    if rest == Rest::Nothing && length.is_some_and(|length| length > 0) {
        return Err(Malformed::ContentLength);
    }
    write_start(out, parts.method.as_str(), parts)?;
    write_fields(out, &parts.headers)?;
    match (length, rest) {
        (Some(length), _) => write_length(out, length),
        (None, Rest::Follows) => write_field(out, b"Transfer-Encoding", b"chunked"),
        (None, Rest::Nothing) if [Method::POST, Method::PUT, Method::PATCH].contains(&parts.method) => {
            write_length(out, 0);
        }
        (None, Rest::Nothing) => {}
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// The request for HTTP/2, from the text that `http1::forward::request` wrote. `parser` is memory to parse with;
/// `scheme` is the one of the destination's address.
///
/// Fields that an HTTP/2 message may not have are left out; `TE: trailers` stays (RFC 9113 8.2.2).
pub fn read(head: &[u8], parser: &mut RequestHead, scheme: Scheme) -> Result<Request<()>, Malformed> {
    if parser.parse(head, &WIDE) != Ok(Parsed::Complete) {
        return Err(Malformed::Text);
    }
    let view = parser.view(head);
    let mut fields = HeaderMap::with_capacity(view.fields().count());
    for (_, name, value) in view.fields() {
        if is_end_to_end(name) && !name.eq_ignore_ascii_case(b"host") {
            append(&mut fields, name, value)?;
        }
    }
    if view.wants_trailers() {
        append(&mut fields, b"te", b"trailers")?;
    }
    let target = match view.query() {
        Some(query) => format!("{}?{query}", view.path()),
        None => view.path().to_owned(),
    };
    let authority = Authority::try_from(view.authority()).map_err(|_| Malformed::Authority)?;
    let target = PathAndQuery::try_from(target).map_err(|_| Malformed::Path)?;
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(target).build();
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(view.method_name().as_bytes()).map_err(|_| Malformed::Text)?;
    *request.uri_mut() = uri.map_err(|_| Malformed::Authority)?;
    *request.version_mut() = Version::HTTP_2;
    *request.headers_mut() = fields;
    Ok(request)
}

/// Start line and `Host`.
pub(crate) fn write_start(out: &mut Vec<u8>, method: &str, parts: &Parts) -> Result<(), Malformed> {
    let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
    match target {
        "*" if parts.method == Method::OPTIONS => {}
        // In HTTP/1.1 anything else could name another host.
        _ if target.starts_with('/') => {}
        _ => return Err(Malformed::Path),
    }
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    let mut hosts = parts.headers.get_all(header::HOST).iter();
    let host = hosts.next().map(|host| host.as_bytes());
    let differs = matches!((authority, host), (Some(one), Some(other)) if !one.eq_ignore_ascii_case(other));
    if differs || hosts.next().is_some() {
        return Err(Malformed::Authority);
    }
    out.extend_from_slice(method.as_bytes());
    out.push(b' ');
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    if let Some(host) = authority.or(host) {
        write_field(out, b"Host", host);
    }
    Ok(())
}

/// All fields but those that are written elsewhere.
pub(crate) fn write_fields(out: &mut Vec<u8>, fields: &HeaderMap) -> Result<(), Malformed> {
    let mut has_cookies = false;
    // Fields of one name stand together.
    for (name, value) in fields {
        if name == header::COOKIE {
            if !has_cookies {
                write_cookies(out, fields)?;
                has_cookies = true;
            }
            continue;
        }
        match judge(name, value)? {
            Place::Line => write_field(out, name.as_str().as_bytes(), value.as_bytes()),
            Place::Elsewhere => {}
        }
    }
    Ok(())
}

/// RFC 9113 8.2.3.
fn write_cookies(out: &mut Vec<u8>, fields: &HeaderMap) -> Result<(), Malformed> {
    out.extend_from_slice(b"cookie: ");
    for (at, crumb) in fields.get_all(header::COOKIE).iter().enumerate() {
        judge(&COOKIE, crumb)?;
        if at > 0 {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(crumb.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

const COOKIE: HeaderName = header::COOKIE;
/// The text is our own: it was within its limits before fields were added to it.
pub(crate) const WIDE: HeadLimits = HeadLimits { line: usize::MAX / 4, bytes: usize::MAX / 4, fields: 4096 };
