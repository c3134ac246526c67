//! Tables of RFC 9112 rules for response heads: where the body ends, what is no HTTP, what may be reused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use http1::connection::Persistence;
use http1::framing::ResponseFraming;
use http1::limits::HeadLimits;
use http1::request::Parsed;
use http1::response::{RequestKind, ResponseHead};

fn parse(text: &str, kind: RequestKind) -> ResponseHead {
    let mut head = ResponseHead::default();
    assert_eq!(head.parse(text.as_bytes(), &HeadLimits::RESPONSE, kind), Ok(Parsed::Complete), "{text:?}");
    head
}

#[test]
fn the_body_ends_where_rfc_9112_6_3_says() {
    use ResponseFraming::{Chunked, Close, Length, None};
    for (kind, status, fields, framing) in [
        (RequestKind::Other, 200, "Content-Length: 5\r\n", Length(5)),
        (RequestKind::Other, 200, "Content-Length: 5, 5\r\n", Length(5)),
        (RequestKind::Other, 200, "Content-Length: 0\r\n", Length(0)),
        (RequestKind::Other, 200, "Transfer-Encoding: chunked\r\n", Chunked),
        (RequestKind::Other, 200, "", Close),
        (RequestKind::Other, 500, "", Close),
        (RequestKind::Head, 200, "Content-Length: 1234\r\n", None),
        (RequestKind::Head, 200, "Transfer-Encoding: chunked\r\n", None),
        (RequestKind::Head, 200, "", None),
        (RequestKind::Other, 100, "", None),
        (RequestKind::Other, 103, "Content-Length: 5\r\n", None),
        (RequestKind::Other, 204, "Content-Length: 5\r\n", None),
        (RequestKind::Other, 204, "Transfer-Encoding: chunked\r\n", None),
        (RequestKind::Other, 204, "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", None),
        (RequestKind::Other, 304, "Content-Length: 1234\r\n", None),
        (RequestKind::Other, 304, "Transfer-Encoding: chunked\r\n", None),
    ] {
        let head = parse(&format!("HTTP/1.1 {status} X\r\n{fields}\r\n"), kind);
        assert_eq!(head.framing(), framing, "{kind:?} {status} {fields}");
    }
}

#[test]
fn what_is_not_clean_http_is_an_error() {
    for text in [
        "HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX : a\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\0\r\n\r\n",
        "HTTP/1.1 200 O\x01K\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/2 200\r\n\r\n",
        "HTTP/1.2 200 OK\r\n\r\n",
        "HTTP/0.9 200 OK\r\n\r\n",
        "http/1.1 200 OK\r\n\r\n",
        "<html>hello</html>",
        "SSH-2.0-x\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ] {
        let parsed = ResponseHead::default().parse(text.as_bytes(), &HeadLimits::RESPONSE, RequestKind::Other);
        assert!(parsed.is_err(), "{text:?}: {parsed:?}");
    }
}

#[test]
fn a_head_that_is_too_large_is_told_apart_from_garbage() {
    let limits = HeadLimits { line: 64, bytes: 64, fields: 2 };
    for text in [
        format!("HTTP/1.1 200 {}\r\n\r\n", "x".repeat(64)),
        format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(64)),
        "HTTP/1.1 200 OK\r\nA: 1\r\nB: 1\r\nC: 1\r\n\r\n".to_owned(),
    ] {
        let error = ResponseHead::default().parse(text.as_bytes(), &limits, RequestKind::Other).unwrap_err();
        assert!(error.is_size(), "{error}");
    }
    // To the byte: the field and the empty line take 7 bytes and the value.
    let bytes = |n: usize| format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(n - 7));
    let is_taken = |n: usize| ResponseHead::default().parse(bytes(n).as_bytes(), &limits, RequestKind::Other).is_ok();
    assert!(is_taken(64) && !is_taken(65));
}

#[test]
fn a_reason_phrase_may_be_missing() {
    for text in ["HTTP/1.1 200\r\n\r\n", "HTTP/1.1 200 \r\n\r\n", "HTTP/1.0 200 Gut gemacht\r\n\r\n"] {
        assert_eq!(parse(text, RequestKind::Other).status(), 200);
    }
}

#[test]
fn reuse_follows_version_options_and_framing() {
    for (version, fields, persistence) in [
        ("1.1", "Content-Length: 0\r\n", Persistence::KeepAlive),
        ("1.1", "Content-Length: 0\r\nConnection: close\r\n", Persistence::Close),
        ("1.1", "", Persistence::Close),
        ("1.0", "Content-Length: 0\r\n", Persistence::Close),
        ("1.0", "Content-Length: 0\r\nConnection: keep-alive\r\n", Persistence::KeepAlive),
    ] {
        let head = parse(&format!("HTTP/{version} 200 OK\r\n{fields}\r\n"), RequestKind::Other);
        assert_eq!(head.persistence(), persistence, "{version} {fields}");
    }
}

#[test]
fn keep_alive_timeouts_are_read() {
    for (value, timeout) in [("timeout=5, max=100", Some(5)), ("max=1, Timeout=7", Some(7)), ("5", None), ("", None)] {
        let head = parse(&format!("HTTP/1.1 200 OK\r\nKeep-Alive: {value}\r\n\r\n"), RequestKind::Other);
        assert_eq!(head.keep_alive_timeout(), timeout.map(Duration::from_secs), "{value}");
    }
}
