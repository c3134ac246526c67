//! Access lists, limits and split traffic of routes on the wire: what a client gets, and what is given back when it is
//! done.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use model::entry::{ConnectionLimit, RequestLimit};
use model::outcome::OutcomeClass;
use model::route::{RouteAction, Side, Split, Sticky};
use support::{cluster, setup};
use testkit::destination::{Act, Destination, Moment};

#[test]
fn a_client_of_a_trusted_proxy_is_held_back_by_its_own_address() {
    let destination = Destination::answering(200, "ok");
    let mut setup = setup(&[destination.addr()])
        .listening(|listener| listener.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()]);
    setup.routes[0].policy.limit_requests = Some(RequestLimit { rate: 0.01, burst: 2, key: Default::default() });
    setup.routes[0].policy.access.deny = vec!["192.0.2.66".parse::<std::net::IpAddr>().unwrap().into()];
    let proxy = setup.start();
    let mut client = proxy.client();
    let mut ask = |from: &str| {
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {from}\r\n\r\n"));
        client.response()
    };
    assert_eq!([ask("192.0.2.1").status(), ask("192.0.2.1").status()], [200, 200]);
    let refused = ask("192.0.2.1");
    assert_eq!(refused.status(), 429);
    assert!(refused.value("retry-after").unwrap().parse::<u32>().unwrap() > 90);
    let status = refused.value("proxy-status").unwrap();
    assert_eq!(status, "lazaret; error=http_request_denied; details=\"too-many-requests\"");
    assert_eq!(ask("192.0.2.2").status(), 200);
    assert_eq!(ask("192.0.2.66").status(), 403);
    assert_eq!(destination.requests().len(), 3);
    assert_eq!(proxy.count(0, OutcomeClass::Ok), 3, "what was refused is charged to nobody");
    assert!(proxy.log(5)[2].contains("\"reason\":\"too-many-requests\""));
}

#[test]
fn a_place_in_flight_is_given_back_when_the_exchange_is_over() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let destination = Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) => {
            if request.message.target() == "/slow" {
                // Bounded: the sender is dropped with the test.
                let _ = released.recv();
            }
            vec![Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec())]
        }
    });
    let mut setup = setup(&[destination.addr()]);
    setup.routes[0].policy.limit_connections = Some(ConnectionLimit { per_client: 1 });
    let proxy = setup.start();
    let mut slow = proxy.client();
    slow.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    testkit::wait::eventually("the first request", std::time::Duration::from_secs(5), || {
        (!destination.requests().is_empty()).then_some(())
    });
    let refused = proxy.client().get("/");
    assert_eq!((refused.status(), refused.value("retry-after").as_deref()), (429, Some("1")));
    drop(release);
    assert_eq!(slow.response().status(), 200);
    testkit::wait::eventually("a free place", std::time::Duration::from_secs(5), || {
        (proxy.client().get("/").status() == 200).then_some(())
    });
}

#[test]
fn a_cookie_keeps_a_client_on_its_side_of_a_split() {
    let (blue, green) = (Destination::answering(200, "blue"), Destination::answering(200, "green"));
    let mut setup = setup(&[blue.addr()]);
    setup.clusters.push(cluster("g", &[green.addr()]));
    setup.routes[0].action = RouteAction::Clusters(Split {
        sides: ["c", "g"].map(|id| Side { cluster: id.into(), weight: 1 }).to_vec(),
        sticky: Sticky::Cookie("side".to_owned()),
        force_header: Some("x-side".to_owned()),
        force_cookie: None,
    });
    let proxy = setup.start();
    for _ in 0..6 {
        let first = proxy.client().get("/");
        let cookie = first.value("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        for _ in 0..4 {
            let mut client = proxy.client();
            client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n"));
            let next = client.response();
            assert_eq!((next.text(), next.value("set-cookie")), (first.text(), None));
        }
    }
    let mut client = proxy.client();
    for (side, expected) in [("c", "blue"), ("g", "green")] {
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nX-Side: {side}\r\n\r\n"));
        assert_eq!(client.response().text(), expected);
    }
}
