//! Upgrades (RFC 9110 7.8): a tunnel begins with the destination's 101 and not before, behind the heads and bodies of its
//! exchange, and loses no byte that came with them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use model::id::Slot;
use model::outcome::OutcomeClass;
use support::setup;
use support::upgrades::{OFFER, SWITCH, switched, switching};
use testkit::client::End;
use testkit::destination::{Act, Destination, Moment};
use testkit::wait::eventually;

#[test]
fn a_tunnel_carries_both_directions_after_the_101_of_the_destination() {
    let destination = switching(vec![Act::Echo]);
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    client.send(OFFER);
    let response = client.response();
    assert_eq!(response.status(), 101);
    assert_eq!(response.value("upgrade").as_deref(), Some("websocket"));
    assert_eq!(response.values("connection"), ["upgrade"]);
    assert_eq!(response.value("x-b").as_deref(), Some("c"));
    let request = &destination.requests()[0].message;
    assert_eq!(
        (request.values("upgrade"), request.values("connection")),
        (vec!["websocket".into()], vec!["upgrade".into()])
    );
    assert_eq!(request.value("x-a").as_deref(), Some("b"));
    for text in ["hello", "GET /admin HTTP/1.1\r\n\r\n", "\0\r\n"] {
        client.send(text);
        assert_eq!(client.exactly(text.len()), text.as_bytes());
    }
    // Ok when it began, not when it ends.
    assert_eq!(proxy.count(0, OutcomeClass::Ok), 1);
    assert_eq!(proxy.board.in_flight(Slot(0)), 1);
    client.finish();
    assert_eq!(client.rest(), (vec![], End::Closed));
    let line = proxy.log(1).remove(0);
    for part in ["\"status\":101", "\"reason\":\"\"", "\"path\":\"/chat\"", "\"bytes_in\":31", "\"outcome\":\"ok\""] {
        assert!(line.contains(part), "{part} in {line}");
    }
    eventually("the leg is gone", Duration::from_secs(5), || (proxy.board.in_flight(Slot(0)) == 0).then_some(()));
    assert_eq!(destination.connections(), 1);
}

#[test]
fn bytes_that_came_with_either_head_are_not_lost() {
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => {
            vec![Act::Send([SWITCH, b"first"].concat()), Act::ReadToEnd, Act::Send(b"last".to_vec()), Act::Close]
        }
    });
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    client.send(format!("{OFFER}early"));
    assert_eq!(client.response().status(), 101);
    assert_eq!(client.exactly(5), b"first");
    client.send(" late");
    client.finish();
    assert_eq!(client.rest(), (b"last".to_vec(), End::Closed));
    assert_eq!(destination.requests()[0].message.text(), "early late");
}

#[test]
fn without_a_101_the_next_bytes_are_the_next_request() {
    let destination = Destination::answering(200, "plain");
    let mut setup = setup(&[destination.addr()]);
    let mut admin = support::route("admin", model::route::RouteAction::Deny(403));
    admin.matcher.path = Some(model::pattern::PathPattern::parse("/admin").unwrap());
    admin.order = -1;
    setup.routes.push(admin);
    let proxy = setup.start();
    let mut client = proxy.client();
    client.send(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    assert_eq!(client.response().text(), "plain");
    assert_eq!(client.response().status(), 403);
    assert_eq!(destination.requests().len(), 1);
    assert_eq!(destination.requests()[0].message.value("upgrade").as_deref(), Some("foo"));
    // Both connections go on.
    assert_eq!(client.get("/").status(), 200);
    assert_eq!(destination.connections(), 1);
}

#[test]
fn a_101_that_nobody_asked_for_is_a_502() {
    let plain = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let other = OFFER.replace("websocket", "foo");
    let h2c = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n";
    let unnamed = OFFER.replace("Connection: Upgrade\r\n", "");
    for (request, offered) in [(plain, None), (&other, Some("foo")), (h2c, None), (&unnamed, None)] {
        let destination = switching(vec![Act::Echo]);
        let proxy = setup(&[destination.addr()]).start();
        let mut client = proxy.client();
        client.send(request);
        let response = client.response();
        assert_eq!(response.status(), 502, "{request:?}");
        assert!(response.value("proxy-status").unwrap().contains("not-http"), "{request:?}");
        assert_eq!(proxy.count(0, OutcomeClass::AppFail), 1);
        let request = &destination.requests()[0].message;
        assert_eq!(request.value("upgrade").as_deref(), offered);
        assert_eq!(request.value("http2-settings"), None);
    }
}

#[test]
fn a_101_before_the_request_is_over_is_a_502() {
    let destination = switching(vec![Act::Stall]);
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    client.send(OFFER.replace("GET", "POST").replace("X-A: b", "Content-Length: 5"));
    assert_eq!(client.response().status(), 502);
}

#[test]
fn an_upgrade_after_a_body_begins_behind_it() {
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![Act::ReadBody, Act::Send(SWITCH.to_vec()), Act::Echo],
    });
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    client.send(OFFER.replace("GET", "POST").replace("X-A: b", "Content-Length: 4") + "bodytunnel");
    assert_eq!(client.response().status(), 101);
    assert_eq!(client.exactly(6), b"tunnel");
    assert_eq!(destination.requests()[0].message.text(), "body");
}

#[test]
fn a_426_tells_the_client_which_protocol_is_wanted() {
    let answer = b"HTTP/1.1 426 Upgrade Required\r\nConnection: upgrade\r\nUpgrade: foo/2\r\nContent-Length: 0\r\n\r\n";
    let destination = Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![Act::Send(answer.to_vec())],
    });
    let proxy = setup(&[destination.addr()]).start();
    let response = proxy.client().get("/");
    assert_eq!((response.status(), response.value("upgrade").as_deref()), (426, Some("foo/2")));
}

#[test]
fn an_upgrade_is_tried_elsewhere_only_when_nothing_was_sent() {
    let good = switching(vec![Act::Echo]);
    let proxy = setup(&[testkit::destination::refusing(), good.addr()]).retrying().start();
    switched(&proxy);
    let silent = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => vec![Act::Close],
    });
    let proxy = setup(&[silent.addr(), good.addr()]).retrying().start();
    let mut client = proxy.client();
    client.send(OFFER);
    assert_eq!(client.response().status(), 502);
    assert!(proxy.log(1)[0].contains("\"retry_denied\":\""));
}

#[test]
fn connect_is_refused_by_name() {
    let destination = Destination::answering(200, "ok");
    let proxy = setup(&[destination.addr()]).start();
    let mut client = proxy.client();
    client.send("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\nGET /admin HTTP/1.1\r\nHost: a\r\n\r\n");
    let response = client.response();
    assert_eq!(response.status(), 501);
    assert!(response.value("proxy-status").unwrap().contains("connect"));
    assert_eq!(client.rest().0, b"");
    assert_eq!(destination.requests().len(), 0);
}
