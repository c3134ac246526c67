//! Responses and trailers in both forms.
#![allow(clippy::unwrap_used)]

use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http1::body::BodyError;
use http1::framing::ResponseFraming;
use http1::limits::HeadLimits;
use http1::request::Parsed;
use http1::response::{RequestKind, ResponseHead};
use http2::error::Malformed;
use http2::request::Rest;
use http2::{response, trailers};

fn from_text(text: &str, kind: RequestKind) -> Response<()> {
    response::read(text.as_bytes(), &mut ResponseHead::default(), kind).unwrap()
}

fn to_text(status: u16, fields: &[(&str, &str)], rest: Rest, kind: RequestKind) -> Result<String, Malformed> {
    let mut response = Response::builder().status(status);
    for (name, value) in fields {
        response = response.header(*name, *value);
    }
    let parts = response.body(()).unwrap().into_parts().0;
    let mut out = Vec::new();
    response::write(&mut out, &parts, rest, kind)?;
    Ok(String::from_utf8(out).unwrap())
}

fn map(fields: &[(&str, &str)]) -> HeaderMap {
    let field = |(name, value): &(&str, &str)| {
        (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap())
    };
    fields.iter().map(field).collect()
}

#[test]
fn a_response_loses_what_belongs_to_its_connection() {
    // RFC 9113 8.2.2
    let response = from_text(
        "HTTP/1.1 200 Fine\r\nContent-Type: a/b\r\nConnection: close, X\r\nKeep-Alive: timeout=5\r\n\
         Transfer-Encoding: chunked\r\nUpgrade: h2c\r\nProxy-Connection: x\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n\r\n",
        RequestKind::Other,
    );
    let fields: Vec<_> = response.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    assert_eq!(fields, [("content-type", &b"a/b"[..]), ("set-cookie", b"a=1"), ("set-cookie", b"b=2")]);
}

#[test]
fn a_length_is_kept_also_where_no_body_follows() {
    for (text, kind, length) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", RequestKind::Other, Some("5")),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", RequestKind::Head, Some("5")),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", RequestKind::Other, Some("5")),
        ("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", RequestKind::Other, None),
    ] {
        let response = from_text(text, kind);
        let found = response.headers().get("content-length").map(|value| value.to_str().unwrap());
        assert_eq!(found, length, "{text}");
    }
    assert!(response::read(b"HTTP/1.1 200", &mut ResponseHead::default(), RequestKind::Other).is_err());
}

#[test]
fn a_response_of_http2_is_framed_for_http1() {
    let other = RequestKind::Other;
    for (status, fields, rest, kind, framing) in [
        (200, &[][..], Rest::Follows, other, ResponseFraming::Chunked),
        // A gRPC answer without a body: trailers may be all there is.
        (200, &[("grpc-status", "5")], Rest::Nothing, other, ResponseFraming::Chunked),
        (200, &[("content-length", "3")], Rest::Follows, other, ResponseFraming::Length(3)),
        (200, &[("content-length", "3")], Rest::Nothing, RequestKind::Head, ResponseFraming::None),
        (204, &[], Rest::Nothing, other, ResponseFraming::None),
        (204, &[("content-length", "3")], Rest::Nothing, other, ResponseFraming::None),
        (304, &[("content-length", "3")], Rest::Nothing, other, ResponseFraming::None),
        (103, &[("link", "x")], Rest::Follows, other, ResponseFraming::None),
    ] {
        let text = to_text(status, fields, rest, kind).unwrap();
        let mut head = ResponseHead::default();
        assert_eq!(head.parse(text.as_bytes(), &HeadLimits::RESPONSE, kind), Ok(Parsed::Complete), "{text}");
        assert_eq!(head.framing(), framing, "{text}");
    }
    assert_eq!(to_text(200, &[("content-length", "3")], Rest::Nothing, other), Err(Malformed::ContentLength));
    assert_eq!(to_text(200, &[("connection", "close")], Rest::Nothing, other), Err(Malformed::ConnectionField));
}

#[test]
fn trailers_that_belong_in_a_head_are_refused_from_clients_and_dropped_from_destinations() {
    // RFC 9110 6.5.1, RFC 9113 8.1
    for name in [
        "content-length",
        "transfer-encoding",
        "host",
        "authorization",
        "x-forwarded-for",
        "cookie",
        "te",
        "connection",
    ] {
        let fields = map(&[("x-sum", "1"), (name, "2")]);
        assert_eq!(trailers::judge(&fields), Err(BodyError::ForbiddenTrailer), "{name}");
        assert_eq!(trailers::strip(fields), map(&[("x-sum", "1")]), "{name}");
    }
    let good = map(&[("grpc-status", "0"), ("grpc-message", ""), ("x-sum", "1"), ("x-sum", "2")]);
    assert_eq!(trailers::judge(&good), Ok(()));
    assert_eq!(trailers::judge(&map(&[("x", "a ")])), Err(BodyError::Trailer));
}

#[test]
fn trailers_count_against_a_limit() {
    let line = "x: \r\n".len();
    let of = |length: usize| map(&[("x", "y".repeat(length).as_str())]);
    assert_eq!(trailers::judge(&of(http1::body::MAX_TRAILERS - line)), Ok(()));
    assert_eq!(trailers::judge(&of(http1::body::MAX_TRAILERS - line + 1)), Err(BodyError::TooLong));
}

#[test]
fn trailers_are_the_same_in_both_forms() {
    let fields = map(&[("grpc-status", "0"), ("x-sum", "1"), ("x-sum", "2"), ("x-empty", "")]);
    let mut section = Vec::new();
    trailers::write(&mut section, &fields);
    assert_eq!(trailers::read(&section).unwrap(), fields);
    section.extend_from_slice(b"\r\n");
    assert_eq!(trailers::read(&section).unwrap(), fields);
    assert_eq!(trailers::read(b"X-Sum:  1 \r\n\r\n").unwrap(), map(&[("x-sum", "1")]));
    assert_eq!(trailers::read(b"no colon\r\n"), Err(BodyError::Trailer));
}
