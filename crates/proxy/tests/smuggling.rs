//! What a destination sees is one request per request, in one clean framing (RFC 9112 6).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use support::setup;
use testkit::client::End;
use testkit::destination::Destination;

#[test]
fn odd_framings_are_refused_or_forwarded_clean() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).start();
    let body = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    for (fields, statuses) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", &[400][..]),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\t\r\n", &[400]),
        ("Content-Length: 5\r\nTransfer-Encoding:\tchunked\r\n", &[400]),
        ("Content-Length: 5\r\nTransfer-Encoding: Chunked\r\n", &[400]),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked, identity\r\n", &[400]),
        ("Content-Length: 5\r\nTransfer-Encoding: identity, chunked\r\n", &[400, 501]),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked, chunked\r\n", &[400]),
        ("Content-Length: 5\r\nTransfer-Encoding: x\r\n", &[400, 501]),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", &[400]),
        ("Transfer-Encoding : chunked\r\n", &[400]),
        ("Transfer-Encoding:\r\n chunked\r\n", &[400]),
        ("X: y\nTransfer-Encoding: chunked\r\n", &[400]),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", &[400]),
        ("Content-Length: 5, 6\r\n", &[400]),
        ("Content-Length: +5\r\n", &[400]),
    ] {
        let mut client = proxy.client();
        client.send(format!("POST /x HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}"));
        let response = client.response();
        assert!(statuses.contains(&response.status()), "{fields:?}: {}", response.first_line());
        assert_eq!(response.value("connection").as_deref(), Some("close"), "{fields:?}");
        let (rest, end) = client.rest();
        assert_eq!((rest.as_slice(), end), (&b""[..], End::Closed), "{fields:?}");
    }
    let mut client = proxy.client();
    client.send(format!("POST /x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{body}"));
    assert_eq!(client.response().status(), 400);
    assert_eq!(destination.requests().len(), 0);
}

#[test]
fn a_blank_around_chunked_is_forwarded_as_the_one_clean_word() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).start();
    for coding in ["chunked\t", "\tchunked", "CHUNKED"] {
        let mut client = proxy.client();
        client.send(format!("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: {coding}\r\n\r\n3\r\nabc\r\n0\r\n\r\n"));
        assert_eq!(client.response().status(), 200);
        let seen = destination.requests().pop().unwrap().message;
        assert_eq!(seen.values("transfer-encoding"), ["chunked"]);
        assert_eq!((seen.values("content-length").len(), seen.text().as_str()), (0, "abc"));
    }
}

#[test]
fn bytes_behind_a_request_are_the_next_request() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    client.send(
        "GET /1 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n\
         POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\
         GET /3 HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    for _ in 0..3 {
        assert_eq!(client.response().status(), 200);
    }
    let targets: Vec<String> = destination.requests().iter().map(|request| request.message.target()).collect();
    assert_eq!(targets, ["/1", "/2", "/3"]);
    assert_eq!(destination.requests()[0].message.value("upgrade").as_deref(), Some("foo"));
}

#[test]
fn trailers_pass_when_they_are_harmless_and_are_refused_otherwise() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).start();
    let post = |trailers: &str| {
        let mut client = proxy.client();
        client.send(format!(
            "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n{trailers}\r\n"
        ));
        client.response().status()
    };
    assert_eq!(post("X-Checksum: abc\r\n"), 200);
    let raw = destination.requests().pop().unwrap().message.raw_body;
    assert!(String::from_utf8(raw).unwrap().ends_with("0\r\nX-Checksum: abc\r\n\r\n"));
    let long = format!("x: {}\r\n", "y".repeat(100_000));
    for trailers in [
        "Content-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Host: b\r\n",
        "Authorization: x\r\n",
        "X-Forwarded-For: 1.1.1.1\r\n",
        ":path: /\r\n",
        "a b: c\r\n",
        "nocolon\r\n",
        &long,
    ] {
        assert_eq!(post(trailers), 400, "{}", trailers.get(..20).unwrap_or(trailers));
    }
}
