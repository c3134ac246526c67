//! HTTP/2 clients by prior knowledge, HTTP/1.1 destinations.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use model::outcome::OutcomeClass;
use support::http2::{H2, run};
use support::setup;
use testkit::destination::Destination;

#[test]
fn a_get_over_http2_is_answered_by_an_http1_destination() {
    let destination = Destination::answering(200, "hello");
    let proxy = setup(&[destination.addr()]).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        for _ in 0..3 {
            let answer = client.get("/a?b=c").await;
            assert_eq!((answer.status.as_u16(), answer.text().as_str()), (200, "hello"));
            assert_eq!(answer.value("content-length"), Some("5"));
            assert!(answer.value("date").is_some() && answer.reset.is_none());
        }
    });
    let requests = destination.requests();
    let head = &requests[0].message;
    assert_eq!(head.target(), "/a?b=c");
    assert_eq!(head.value("x-forwarded-for").as_deref(), Some("127.0.0.1"));
    assert_eq!(head.value("x-forwarded-host").as_deref(), Some("a.test"));
    assert_eq!(destination.connections(), 1, "the connection is pooled");
    assert_eq!(proxy.count(0, OutcomeClass::Ok), 3);
    assert!(proxy.log(3)[0].contains("\"status\":200"));
}

#[test]
fn a_post_over_http2_is_framed_for_http1() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).start();
    run(async {
        let client = H2::connect(proxy.addr).await;
        assert_eq!(client.post("/", "some body").await.text(), "ok");
    });
    let request = &destination.requests()[0].message;
    assert_eq!(request.value("transfer-encoding").as_deref(), Some("chunked"));
    assert_eq!(request.text(), "some body");
}
