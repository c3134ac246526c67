//! HEAD, 204 and 304 end with their head; what comes behind them reaches nobody (RFC 9112 6.3).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use support::setup;
use testkit::destination::{Act, Destination, Moment};
use testkit::message::Expect;

#[test]
fn answers_without_a_body_end_at_once_and_surplus_bytes_reach_nobody() {
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) => {
            let text = match request.message.target().as_str() {
                "/head" => "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n",
                "/204" => "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
                "/204te" => "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
                "/304" => "HTTP/1.1 304 Not Modified\r\nContent-Length: 1234\r\n\r\n",
                "/empty" => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                "/surplus" => "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
                _ => "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood",
            };
            vec![Act::Send(text.as_bytes().to_vec())]
        }
    });
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    for (method, target, status, length, coding) in [
        ("HEAD", "/head", 200, Some("1234"), None),
        ("GET", "/204", 204, None, None),
        ("GET", "/204te", 204, None, None::<String>),
        ("GET", "/304", 304, Some("1234"), None),
        ("GET", "/empty", 200, Some("0"), None),
    ] {
        client.send(format!("{method} {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let expect = if method == "HEAD" { Expect::ResponseToHead } else { Expect::Response };
        let (response, result) = client.try_response(expect);
        result.unwrap();
        assert_eq!(response.status(), status, "{target}");
        assert_eq!(response.value("content-length").as_deref(), length, "{target}");
        assert_eq!(response.value("transfer-encoding"), coding, "{target}");
    }
    assert_eq!(destination.connections(), 1);
    client.send("GET /surplus HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response().status(), 204);
    // The same client and another one: neither gets what came too much.
    assert_eq!(client.get("/x").text(), "good");
    assert_eq!(proxy.client().get("/y").text(), "good");
    assert_eq!(destination.connections(), 2);
}
