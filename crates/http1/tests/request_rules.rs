//! Tables of RFC 9112 rules for request heads: what is refused with which status, what is read how.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use http1::connection::{Persistence, Version};
use http1::error::RequestError;
use http1::framing::RequestFraming;
use http1::limits::HeadLimits;
use http1::request::{Parsed, Request, RequestHead};
use model::address::Scheme;

const LIMITS: HeadLimits = HeadLimits { line: 8192, bytes: 32768, fields: 100 };

fn refused(head: &str) -> u16 {
    match RequestHead::default().parse(head.as_bytes(), &LIMITS) {
        Err(error) => error.status(),
        Ok(parsed) => panic!("{parsed:?}: {head:?}"),
    }
}

fn read<T>(text: &str, facts: impl FnOnce(Request<'_>) -> T) -> T {
    let mut head = RequestHead::default();
    assert_eq!(head.parse(text.as_bytes(), &LIMITS), Ok(Parsed::Complete), "{text:?}");
    facts(head.view(text.as_bytes()))
}

#[test]
fn malformed_heads_are_refused_with_their_status() {
    for (rule, head, status) in [
        ("9112 2.2 lone LF after the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", 400),
        ("9112 2.2 lone LF after a field", "GET / HTTP/1.1\r\nHost: a\n\r\n", 400),
        ("9112 2.2 lone LF as the end", "GET / HTTP/1.1\r\nHost: a\r\n\n", 400),
        ("9112 2.2 lone CR within a line", "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 400),
        ("9112 2.2 blank before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400),
        ("9112 5.2 folded line", "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n", 400),
        ("9112 5.2 folded by tab", "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\t2\r\n\r\n", 400),
        ("9112 5.1 blank before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        ("9112 5.1 tab before the colon", "GET / HTTP/1.1\r\nHost\t: a\r\n\r\n", 400),
        ("9112 5 no colon", "GET / HTTP/1.1\r\nHost: a\r\nfoo\r\n\r\n", 400),
        ("9112 5 empty name", "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", 400),
        ("9110 5.1 name is no token", "GET / HTTP/1.1\r\nHost: a\r\nx(y): x\r\n\r\n", 400),
        ("9110 5.5 NUL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", 400),
        ("9110 5.5 control in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a\x07b\r\n\r\n", 400),
        ("9110 5.5 DEL in a value", "GET / HTTP/1.1\r\nHost: a\r\nX: a\x7fb\r\n\r\n", 400),
        ("9112 3 no version", "GET /\r\nHost: a\r\n\r\n", 400),
        ("9112 3 two blanks", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("9112 3 blank at the end", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400),
        ("9112 3 tab as separator", "GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("9112 3 blank in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("9112 3.1 method is no token", "G@T / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("9112 3.1 no method", " / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("9112 2.3 version in lower case", "GET / http/1.1\r\nHost: a\r\n\r\n", 400),
        ("9112 2.3 version with more digits", "GET / HTTP/1.11\r\nHost: a\r\n\r\n", 400),
        ("9112 2.3 HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505),
        ("9112 2.3 HTTP/2.0", "PRI * HTTP/2.0\r\n\r\n", 505),
        ("9112 3.2 asterisk for GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("9112 3.2 no form", "GET a.test HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("9112 3.2 fragment", "GET /x#f HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("9112 3.2 backslash", "GET /a\\b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("9112 3.2 non-ASCII target", "GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("9110 7.4 another scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("9110 4.2.4 user information", "GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("9110 4.2.1 empty authority", "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("9110 4.2.1 empty authority with a port", "GET http://:80/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("9110 9.3.6 CONNECT", "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", 501),
        ("9112 3.2 no Host", "GET / HTTP/1.1\r\n\r\n", 400),
        ("9112 3.2 no Host with an absolute target", "GET http://a/ HTTP/1.1\r\n\r\n", 400),
        ("9112 3.2 two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("9112 3.2 two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("9112 3.2 empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400),
        ("9112 3.2 list in Host", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400),
        ("9112 3.2 bad Host beside an absolute target", "GET http://a/ HTTP/1.1\r\nHost: x@y\r\n\r\n", 400),
        (
            "9112 6.1 both framings",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        ("9112 6.1 coding in HTTP/1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (
            "9112 6.1 chunked is not last",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
            400,
        ),
        ("9112 6.1 chunked twice", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", 400),
        (
            "9112 6.1 chunked in two lines",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        ("9112 6.1 empty coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n", 400),
        ("9112 6.1 empty element", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked,\r\n\r\n", 400),
        (
            "9112 7 identity before chunked",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity, chunked\r\n\r\n",
            501,
        ),
        ("9112 7 gzip", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        ("9112 7 unknown coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n", 501),
        ("9112 7 parameter", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n", 501),
        (
            "9112 6.3 lengths differ",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            400,
        ),
        ("9112 6.3 list of lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 6\r\n\r\n", 400),
        ("9110 8.6 signed length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n", 400),
        ("9110 8.6 negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n", 400),
        ("9110 8.6 empty length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400),
        (
            "9110 8.6 length beyond 64 bits",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n",
            400,
        ),
        ("9110 10.1.1 other expectation", "POST / HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n", 417),
    ] {
        assert_eq!(refused(head), status, "{rule}");
    }
}

#[test]
fn limits_hold_to_the_byte() {
    let limits = HeadLimits { line: 20, bytes: 30, fields: 2 };
    let parse = |head: &str| RequestHead::default().parse(head.as_bytes(), &limits).map_err(RequestError::status);
    let line = |n: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(n - 14));
    assert_eq!(parse(&line(20)), Ok(Parsed::Complete));
    assert_eq!(parse(&line(21)), Err(414));
    // `Host: a`, `X: …` and the empty line take 16 bytes and the value.
    let bytes = |n: usize| format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(n - 16));
    assert_eq!(parse(&bytes(30)), Ok(Parsed::Complete));
    assert_eq!(parse(&bytes(31)), Err(431));
    assert_eq!(parse("GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\nY: 2\r\n\r\n"), Err(431));
    assert_eq!(parse("GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\n"), Ok(Parsed::Complete));
    // What cannot end within the limit any more is refused before it ends.
    assert_eq!(parse(&"x".repeat(22)), Err(414));
    assert_eq!(parse(&format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(27))), Err(431));
    assert_eq!(parse(&format!("GET / HTTP/1.1\r\n{}", "y".repeat(29))), Ok(Parsed::Partial));
}

#[test]
fn the_target_authority_wins_over_host() {
    for (target, host, path, query, authority) in [
        ("/x?y=1", "h.test", "/x", Some("y=1"), "H.test:81"),
        ("/?", "h.test", "/", Some(""), "H.test:81"),
        ("//x", "h.test", "//x", None, "H.test:81"),
        ("http://b.TEST/x", "b.test", "/x", None, "b.TEST"),
        ("HTTP://b.test:80/", "b.test", "/", None, "b.test:80"),
        ("http://b.test", "b.test", "/", None, "b.test"),
        ("http://b.test?q", "b.test", "/", Some("q"), "b.test"),
        ("http://[::1]:8080/x", "[::1]", "/x", None, "[::1]:8080"),
    ] {
        let head = format!("GET {target} HTTP/1.1\r\nHost: H.test:81\r\n\r\n");
        read(&head, |request| {
            assert_eq!(
                (request.host(), request.path(), request.query(), request.authority()),
                (host, path, query, authority),
                "{target}"
            );
        });
    }
}

#[test]
fn an_absolute_target_names_its_scheme() {
    for (target, scheme) in [
        ("/https://a/", None),
        ("http://a.test/x", Some(Scheme::Http)),
        ("https://a.test/x", Some(Scheme::Https)),
        ("HTTPS://a.test:8443?q", Some(Scheme::Https)),
    ] {
        let head = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert_eq!(read(&head, |request| request.scheme()), scheme, "{target}");
    }
    let head = "GET https://a.test:8443?q HTTP/1.1\r\nHost: b.test\r\n\r\n";
    let parts = |r: &Request<'_>| (r.authority().to_owned(), r.path().to_owned(), r.query().map(str::to_owned));
    assert_eq!(read(head, |request| parts(&request)), ("a.test:8443".to_owned(), "/".to_owned(), Some("q".to_owned())));
}

#[test]
fn options_without_a_path_is_an_asterisk() {
    for target in ["*", "http://a.test"] {
        let path = read(&format!("OPTIONS {target} HTTP/1.1\r\nHost: a\r\n\r\n"), |r| r.path().to_owned());
        assert_eq!(path, "*");
    }
    assert_eq!(read("OPTIONS http://a.test/ HTTP/1.1\r\nHost: a\r\n\r\n", |r| r.path().to_owned()), "/");
}

#[test]
fn framing_is_read_from_clean_fields() {
    for (fields, framing) in [
        ("", RequestFraming::None),
        ("Content-Length: 0\r\n", RequestFraming::Length(0)),
        ("Content-Length: 12\r\n", RequestFraming::Length(12)),
        ("content-length:\t12 \r\n", RequestFraming::Length(12)),
        ("Content-Length: 12\r\nContent-Length: 12\r\n", RequestFraming::Length(12)),
        ("Content-Length: 12, 12\r\n", RequestFraming::Length(12)),
        ("Transfer-Encoding: chunked\r\n", RequestFraming::Chunked),
        ("Transfer-Encoding: Chunked\t\r\n", RequestFraming::Chunked),
        ("transfer-encoding:\tchunked\r\n", RequestFraming::Chunked),
    ] {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        assert_eq!(read(&head, |request| request.framing()), framing, "{fields}");
    }
}

#[test]
fn persistence_follows_version_and_options() {
    for (version, connection, persistence) in [
        ("1.1", "", Persistence::KeepAlive),
        ("1.1", "Connection: close\r\n", Persistence::Close),
        ("1.1", "Connection: x, CLOSE\r\n", Persistence::Close),
        ("1.1", "Connection: keep-alive, close\r\n", Persistence::Close),
        ("1.0", "", Persistence::Close),
        ("1.0", "Connection: Keep-Alive\r\n", Persistence::KeepAlive),
        ("1.0", "Connection: keep-alive\r\nConnection: close\r\n", Persistence::Close),
    ] {
        let head = format!("GET / HTTP/{version}\r\nHost: a\r\n{connection}\r\n");
        assert_eq!(read(&head, |request| request.persistence()), persistence, "{version} {connection}");
    }
}

#[test]
fn expectations_count_for_http_1_1_with_a_body_only() {
    let expects = |version: &str, length: u32| {
        let head =
            format!("POST / HTTP/{version}\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: {length}\r\n\r\n");
        read(&head, |request| request.expects_continue())
    };
    assert!(expects("1.1", 5));
    assert!(!expects("1.1", 0));
    assert!(!expects("1.0", 5));
}

#[test]
fn http_1_0_needs_no_host_and_one_empty_line_may_come_first() {
    read("\r\nGET /x HTTP/1.0\r\n\r\n", |request| {
        assert_eq!((request.version(), request.host(), request.path()), (Version::Http10, "", "/x"));
    });
    assert_eq!(refused("\r\n\r\nGET /x HTTP/1.0\r\n\r\n"), 400);
}
