//! What belongs to one connection does not reach the other (RFC 9110 7.6.1).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use support::setup;
use testkit::destination::{Act, Destination, Moment};

#[test]
fn nominated_and_hop_by_hop_fields_end_here_in_both_directions() {
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![Act::Send(
            b"HTTP/1.1 200 OK\r\nConnection: X-Bar\r\nX-Bar: 1\r\nKeep-Alive: timeout=9\r\nX-Baz: 2\r\n\
              Alt-Svc: h3=\":443\"\r\nContent-Length: 2\r\n\r\nok"
                .to_vec(),
        )],
    });
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    client.send(
        "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close, X-Foo, X-Forwarded-For, Host, Cookie, Content-Length\r\n\
         X-Foo: 1\r\nCookie: a=b\r\nKeep-Alive: 5\r\nTE: trailers, gzip\r\nProxy-Connection: keep-alive\r\n\
         X-Forwarded-For: 9.9.9.9\r\nX-Kept: 1\r\n\r\n",
    );
    let response = client.response();
    let names = response.field_names();
    assert_eq!(names, ["X-Baz", "Content-Length", "Date", "Connection"], "{names:?}");
    assert!(response.value("date").is_some_and(|date| date.ends_with(" GMT")), "{names:?}");
    assert_eq!(response.value("connection").as_deref(), Some("close"));
    let seen = destination.requests().pop().unwrap().message;
    let names = seen.field_names();
    let expected = ["Host", "X-Kept", "TE", "Connection", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"];
    assert_eq!(names, expected, "{names:?}");
    assert_eq!(seen.value("te").as_deref(), Some("trailers"));
    assert_eq!(seen.value("x-forwarded-for").as_deref(), Some("127.0.0.1"));
    // The client's `close` ends its own connection only.
    assert_eq!(proxy.client().get("/").status(), 200);
    assert_eq!(destination.connections(), 1);
}

#[test]
fn a_trusted_proxy_is_heard() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()])
        .listening(|listener| listener.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()])
        .start();
    let mut client = proxy.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6, 192.0.2.1\r\nX-Forwarded-Proto: https\r\n\r\n");
    assert_eq!(client.response().status(), 200);
    let seen = destination.requests().pop().unwrap().message;
    assert_eq!(seen.values("x-forwarded-for"), ["6.6.6.6, 192.0.2.1, 127.0.0.1"]);
    assert_eq!(seen.values("x-forwarded-proto"), ["https"]);
    assert!(proxy.log(1)[0].contains("\"client\":\"192.0.2.1\""));
}
