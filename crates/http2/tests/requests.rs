//! Requests of HTTP/2 as HTTP/1.1 text: what they become and which are refused, with the section that says so.
#![allow(clippy::unwrap_used)]

use http::request::Parts;
use http::uri::Scheme;
use http::{Request, Version};
use http1::framing::RequestFraming;
use http1::limits::HeadLimits;
use http1::request::{Parsed, RequestHead};
use http2::error::Malformed;
use http2::request::{Rest, read, write};
use model::request::Fields;

const LIMITS: HeadLimits = HeadLimits { line: 8192, bytes: 32768, fields: 100 };

fn parts(method: &str, uri: &str, fields: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(method).uri(uri).version(Version::HTTP_2);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn text(parts: &Parts, rest: Rest) -> Result<String, Malformed> {
    let mut out = Vec::new();
    write(&mut out, parts, rest)?;
    Ok(String::from_utf8(out).unwrap())
}

fn refusal(method: &str, uri: &str, fields: &[(&str, &str)], rest: Rest) -> Option<Malformed> {
    text(&parts(method, uri, fields), rest).err()
}

#[test]
fn a_request_becomes_lines_with_the_authority_as_its_host() {
    let fields = [("accept", "*/*"), ("x-a", "1"), ("x-a", "2"), ("te", "trailers")];
    let text = text(&parts("GET", "https://a.test:8443/p?q=1", &fields), Rest::Nothing).unwrap();
    let expected =
        "GET /p?q=1 HTTP/1.1\r\nHost: a.test:8443\r\naccept: */*\r\nx-a: 1\r\nx-a: 2\r\nte: trailers\r\n\r\n";
    assert_eq!(text, expected);
}

#[test]
fn cookie_crumbs_are_joined_in_order() {
    // RFC 9113 8.2.3
    let fields = [("cookie", "a=1"), ("accept", "*/*"), ("cookie", "b=2; c=3"), ("cookie", "lz=x")];
    let text = text(&parts("GET", "http://a/", &fields), Rest::Nothing).unwrap();
    assert!(text.contains("\r\ncookie: a=1; b=2; c=3; lz=x\r\n"), "{text}");
    assert_eq!(text.matches("cookie").count(), 1);
}

#[test]
fn the_framing_follows_from_length_and_end_of_stream() {
    for (method, fields, rest, framing) in [
        ("GET", &[][..], Rest::Nothing, RequestFraming::None),
        ("POST", &[], Rest::Nothing, RequestFraming::Length(0)),
        ("POST", &[], Rest::Follows, RequestFraming::Chunked),
        ("GET", &[], Rest::Follows, RequestFraming::Chunked),
        ("POST", &[("content-length", "7")], Rest::Follows, RequestFraming::Length(7)),
        ("POST", &[("content-length", "0")], Rest::Nothing, RequestFraming::Length(0)),
    ] {
        let text = text(&parts(method, "http://a/", fields), rest).unwrap();
        let mut head = RequestHead::default();
        assert_eq!(head.parse(text.as_bytes(), &LIMITS), Ok(Parsed::Complete), "{text}");
        assert_eq!(head.view(text.as_bytes()).framing(), framing, "{text}");
    }
}

#[test]
fn fields_of_a_connection_are_refused() {
    // RFC 9113 8.2.2
    for name in ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"] {
        let found = refusal("GET", "http://a/", &[(name, "x")], Rest::Nothing);
        assert_eq!(found, Some(Malformed::ConnectionField), "{name}");
    }
    for value in ["gzip", "trailers, gzip", ""] {
        assert_eq!(refusal("GET", "http://a/", &[("te", value)], Rest::Nothing), Some(Malformed::Te), "{value}");
    }
}

#[test]
fn values_that_begin_or_end_with_a_blank_are_refused() {
    // RFC 9113 8.2.1
    for (name, value) in [("x", " a"), ("x", "a "), ("x", "\ta"), ("cookie", "a=1 "), ("x", " ")] {
        assert_eq!(refusal("GET", "http://a/", &[(name, value)], Rest::Nothing), Some(Malformed::Value), "{value:?}");
    }
}

#[test]
fn authority_and_host_must_say_the_same() {
    // RFC 9113 8.3.1
    for (uri, fields, is_good) in [
        ("http://a.test/", &[("host", "a.test")][..], true),
        ("http://a.test/", &[("host", "A.test")], true),
        ("/", &[("host", "a.test")], true),
        ("http://a.test/", &[("host", "b.test")], false),
        ("http://a.test/", &[("host", "a.test"), ("host", "a.test")], false),
        ("/", &[("host", "a.test"), ("host", "b.test")], false),
    ] {
        let found = refusal("GET", uri, fields, Rest::Nothing);
        assert_eq!(found, (!is_good).then_some(Malformed::Authority), "{uri} {fields:?}");
    }
}

#[test]
fn what_has_no_authority_is_left_to_the_rule_on_host() {
    let text = text(&parts("GET", "/", &[]), Rest::Nothing).unwrap();
    let mut head = RequestHead::default();
    assert_eq!(head.parse(text.as_bytes(), &LIMITS).unwrap_err().as_str(), "host-count");
}

#[test]
fn a_path_cannot_name_another_host() {
    // RFC 9113 8.3.1: a path begins with a slash, or is * for OPTIONS.
    for (method, path, is_good) in [("OPTIONS", "*", true), ("GET", "*", false), ("GET", "/*", true)] {
        let mut parts = parts(method, "/", &[("host", "a")]);
        parts.uri = path.parse().unwrap();
        assert_eq!(text(&parts, Rest::Nothing).is_ok(), is_good, "{method} {path}");
    }
}

#[test]
fn lengths_that_contradict_the_stream_are_refused() {
    // RFC 9113 8.1.1
    for (fields, rest) in [
        (&[("content-length", "5")][..], Rest::Nothing),
        (&[("content-length", "x")], Rest::Follows),
        (&[("content-length", "-1")], Rest::Follows),
        (&[("content-length", "5"), ("content-length", "5")], Rest::Follows),
        (&[("content-length", "5, 5")], Rest::Follows),
    ] {
        assert_eq!(refusal("POST", "http://a/", fields, rest), Some(Malformed::ContentLength), "{fields:?}");
    }
    assert_eq!(refusal("CONNECT", "a.test:443", &[], Rest::Follows), Some(Malformed::Connect));
}

#[test]
fn rewritten_text_becomes_a_request_again() {
    let text = b"POST /p?q HTTP/1.1\r\nHost: d.test:8080\r\nAccept: */*\r\nContent-Length: 3\r\n\
        TE: trailers\r\nConnection: TE\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n";
    let request = read(text, &mut RequestHead::default(), Scheme::HTTP).unwrap();
    assert_eq!(request.uri(), "http://d.test:8080/p?q");
    assert_eq!(request.method(), "POST");
    let names: Vec<_> = request.headers().keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["accept", "content-length", "x-forwarded-for", "te"]);
    assert_eq!(request.headers()["te"], "trailers");
    let chunked = b"POST / HTTP/1.1\r\nHost: d\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(read(chunked, &mut RequestHead::default(), Scheme::HTTPS).unwrap().headers().is_empty());
    assert!(read(b"GET / HTTP/1.1\r\nHost: d\r\n", &mut RequestHead::default(), Scheme::HTTP).is_err());
}

#[test]
fn the_text_has_every_field_that_decides() {
    let fields = [("cookie", "a=1"), ("cookie", "lz=x"), ("x-session", "7")];
    let text = text(&parts("GET", "http://a/", &fields), Rest::Nothing).unwrap();
    let mut head = RequestHead::default();
    head.parse(text.as_bytes(), &LIMITS).unwrap();
    let view = head.view(text.as_bytes());
    assert_eq!(view.first("cookie").as_deref(), Some("a=1; lz=x"));
    assert_eq!(view.first("x-session").as_deref(), Some("7"));
}
