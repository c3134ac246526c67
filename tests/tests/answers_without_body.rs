//! An answer that cannot have a body ends with its head, in milliseconds, whatever its length says; the client's
//! connection goes on, and bytes that a destination sends beyond an answer reach nobody. (h2o/h2o #276,
//! sbstp/attohttpc #201)

use std::time::{Duration, Instant};

use end_to_end::process::Lazaret;
use testkit::client::Client;
use testkit::destination::{Act, Destination, Moment};
use testkit::message::{Expect, Message};

fn start() -> (Destination, Lazaret) {
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(request) => vec![Act::Send(scripted(&request.message).into())],
    });
    let lazaret = Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters: {{app: {{destinations: {{one: {{address: \
         \"{}\"}}}}}}}}\n",
        destination.url()
    ));
    (destination, lazaret)
}

fn scripted(request: &Message) -> &'static str {
    match request.target().as_str() {
        "/head" => "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n",
        "/204-length" => "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
        "/204-chunked" => "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
        "/304" => "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 1234\r\n\r\n",
        "/empty" => "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "/204-and-more" => "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
        "/head-and-more" => "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
        "/200-and-more" => {
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
        }
        _ => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    }
}

fn exchange(client: &mut Client, method: &str, path: &str) -> Message {
    let sent = Instant::now();
    client.send(format!("{method} {path} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
    let expect = if method == "HEAD" { Expect::ResponseToHead } else { Expect::Response };
    let (response, result) = client.try_response(expect);
    assert!(result.is_ok(), "{method} {path}: {result:?} {response:?}");
    assert!(sent.elapsed() < Duration::from_secs(1), "{method} {path} took {:?}", sent.elapsed());
    response
}

#[test]
fn answers_without_a_body_follow_each_other_on_one_connection() {
    let (destination, lazaret) = start();
    let mut client = Client::connect(lazaret.proxy);
    for round in 0..3 {
        for (method, path, status, length) in [
            ("HEAD", "/head", 200, Some("1234")),
            ("GET", "/204-length", 204, None),
            ("GET", "/204-chunked", 204, None),
            ("GET", "/304", 304, Some("1234")),
            ("GET", "/empty", 200, Some("0")),
            ("GET", "/plain", 200, Some("5")),
        ] {
            let response = exchange(&mut client, method, path);
            assert_eq!(response.status(), status, "round {round} {method} {path}");
            assert_eq!(response.value("content-length").as_deref(), length, "round {round} {method} {path}");
            assert_eq!(response.value("transfer-encoding"), None, "round {round} {method} {path}");
            let body = if path == "/plain" { "hello" } else { "" };
            assert_eq!(response.text(), body, "round {round} {method} {path}");
        }
    }
    assert_eq!(destination.requests().len(), 18);
}

#[test]
fn bytes_beyond_an_answer_reach_no_client_and_end_their_connection() {
    let (destination, lazaret) = start();
    let mut client = Client::connect(lazaret.proxy);
    let mut others: Vec<_> = (0..4).map(|_| Client::connect(lazaret.proxy)).collect();
    for (method, path, status) in
        [("GET", "/204-and-more", 204), ("HEAD", "/head-and-more", 200), ("GET", "/200-and-more", 200)]
    {
        for _ in 0..5 {
            let response = exchange(&mut client, method, path);
            assert_eq!(response.status(), status, "{method} {path}");
            let poisoned = destination.requests().last().expect("it came").connection;
            for other in &mut others {
                let response = exchange(other, "GET", "/plain");
                assert_eq!((response.status(), response.text().as_str()), (200, "hello"), "after {method} {path}");
            }
            let after = destination.requests().into_iter().rev().take(others.len());
            for request in after {
                assert_ne!(request.connection, poisoned, "a connection with surplus bytes was used again: {path}");
            }
        }
    }
    assert_eq!(exchange(&mut client, "GET", "/plain").text(), "hello", "the client's own connection goes on");
}
