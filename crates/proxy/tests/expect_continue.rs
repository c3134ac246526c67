//! A client that waits for a 100 sees exactly one, or a final answer (RFC 9110 10.1.1).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::{Duration, Instant};

use support::{Proxy, setup};
use testkit::client::{Client, End};
use testkit::destination::{Act, Destination, Moment};

const HEAD: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";

fn waiting(acts: Vec<Act>) -> (Destination, Proxy, Client) {
    let destination = Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => acts.clone(),
    });
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    client.send(HEAD);
    (destination, proxy, client)
}

fn sees_one_100_then_200(client: &mut Client) {
    let started = Instant::now();
    assert_eq!(client.response().status(), 100);
    assert!(started.elapsed() < Duration::from_secs(2));
    client.send("body");
    assert_eq!(client.response().status(), 200);
    // The connection goes on.
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(client.response().status(), 200);
    assert_eq!(client.rest().1, End::Closed);
}

#[test]
fn a_100_of_the_destination_is_passed_on_once() {
    let (_destination, _proxy, mut client) = waiting(vec![
        Act::Send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n".to_vec()),
        Act::ReadBody,
        Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()),
    ]);
    sees_one_100_then_200(&mut client);
}

#[test]
fn a_silent_destination_makes_us_send_the_100() {
    let (destination, _proxy, mut client) = waiting(vec![
        Act::ReadBody,
        Act::Send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()),
    ]);
    sees_one_100_then_200(&mut client);
    assert_eq!(destination.requests()[0].message.text(), "body");
}

#[test]
fn a_final_answer_takes_the_place_of_the_100() {
    let (_destination, proxy, mut client) =
        waiting(vec![Act::Send(b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno".to_vec())]);
    let response = client.response();
    assert_eq!((response.status(), response.text().as_str()), (401, "no"));
    assert_eq!(response.value("connection").as_deref(), Some("close"));
    assert_eq!(proxy.log(1).len(), 1);
}

#[test]
fn early_hints_are_passed_on() {
    let (_destination, _proxy, mut client) = waiting(vec![Act::Send(
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec(),
    )]);
    let hints = client.response();
    assert_eq!((hints.status(), hints.value("link").as_deref()), (103, Some("</a>")));
    assert_eq!(client.response().status(), 200);
}

#[test]
fn a_destination_of_http_1_0_that_waits_for_the_body_gets_it() {
    let answer = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec();
    let (_destination, _proxy, mut client) = waiting(vec![Act::ReadBody, Act::Send(answer), Act::Close]);
    sees_one_100_then_200(&mut client);
}
