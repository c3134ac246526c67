//! Upgrades (RFC 9110 7.8): a tunnel begins with the destination's 101 and not before, carries both directions and both
//! ends, and is told of when it is over.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use model::health::{Health, HealthPair, Switch};
use model::id::{Revision, Slot};
use model::outcome::OutcomeClass;
use model::upstream::Tunnels;
use model::view::{ClusterHealth, Counter, DestinationHealth, HealthView, NodeStatus};
use support::{Proxy, setup};
use testkit::client::{Client, End};
use testkit::destination::{Act, Destination, Moment};
use testkit::wait::eventually;

const OFFER: &str = "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-A: b\r\n\r\n";
const SWITCH: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-B: c\r\n\r\n";

/// Switches every request, then does this.
fn switching(acts: Vec<Act>) -> Destination {
    Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => [vec![Act::Send(SWITCH.to_vec())], acts.clone()].concat(),
    })
}

/// A client with a tunnel.
fn switched(proxy: &Proxy) -> Client {
    let mut client = proxy.client();
    client.send(OFFER);
    let response = client.response();
    assert_eq!(response.status(), 101);
    client
}

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
fn the_end_of_one_direction_is_passed_on_and_the_other_goes_on() {
    let large = vec![b'x'; 1 << 20];
    let destination =
        switching(vec![Act::ReadToEnd, Act::Pause(Duration::from_millis(300)), Act::Send(large.clone()), Act::Close]);
    let proxy = setup(&[destination.addr()]).start();
    let mut client = switched(&proxy);
    client.send("question");
    client.finish();
    let (bytes, end) = client.rest();
    assert_eq!((bytes == large, end), (true, End::Closed));
    assert_eq!(destination.requests()[0].message.text(), "question");
    eventually("both are gone", Duration::from_secs(1), || (proxy.board.in_flight(Slot(0)) == 0).then_some(()));

    // The mirror case: the destination ends first.
    let destination = switching(vec![Act::Send(b"bye".to_vec()), Act::HalfClose, Act::ReadToEnd, Act::Close]);
    let proxy = setup(&[destination.addr()]).start();
    let mut client = switched(&proxy);
    assert_eq!(client.rest(), (b"bye".to_vec(), End::Closed));
    client.send(&large);
    client.finish();
    eventually("all of it arrives", Duration::from_secs(5), || {
        (destination.requests()[0].message.body == large).then_some(())
    });
    eventually("both are gone", Duration::from_secs(1), || (proxy.board.in_flight(Slot(0)) == 0).then_some(()));
    assert!(proxy.log(1)[0].contains("\"reason\":\"\""));
}

#[test]
fn a_tunnel_in_which_nothing_moves_ends_after_its_idle_time() {
    for half_closed in [false, true] {
        let destination = switching(vec![Act::ReadToEnd, Act::Pause(Duration::from_secs(5))]);
        let proxy = setup(&[destination.addr()])
            .with(|cluster| {
                cluster.timeouts.tunnel_idle = Duration::from_millis(300);
                // Not what bounds a tunnel.
                cluster.timeouts.idle = Duration::from_secs(30);
            })
            .start();
        let mut client = switched(&proxy);
        let started = std::time::Instant::now();
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(100));
            client.send("x");
        }
        if half_closed {
            client.finish();
        }
        let (_, end) = client.rest();
        assert_ne!(end, End::Open);
        assert!(started.elapsed() >= Duration::from_millis(600), "each byte prolongs it");
        assert!(proxy.log(1)[0].contains("\"reason\":\"tunnel-idle\""));
        assert_eq!(proxy.count(0, OutcomeClass::Ok), 1);
    }
}

#[test]
fn a_tunnel_outlives_the_limits_of_its_exchange() {
    let destination = switching(vec![Act::Echo]);
    let mut setup = setup(&[destination.addr()]).with(|cluster| cluster.timeouts.idle = Duration::from_millis(200));
    setup.routes[0].timeout = Some(Duration::from_millis(300));
    let proxy = setup.start();
    let mut client = switched(&proxy);
    std::thread::sleep(Duration::from_millis(600));
    client.send("still here");
    assert_eq!(client.exactly(10), b"still here");
}

#[test]
fn a_side_that_breaks_off_is_a_reset_on_the_other_and_the_destination_is_charged_for_its_own() {
    let destination = switching(vec![Act::Reset]);
    let proxy = setup(&[destination.addr()]).start();
    let mut client = switched(&proxy);
    assert_eq!(client.rest().1, End::Reset);
    assert!(proxy.log(1)[0].contains("\"reason\":\"tunnel-cut\""));
    let destination = switching(vec![Act::ReadToEnd, Act::Stall]);
    let proxy = setup(&[destination.addr()]).start();
    switched(&proxy).reset();
    let line = proxy.log(1).remove(0);
    assert!(line.contains("\"reason\":\"client-gone\"") && line.contains("\"status\":101"), "{line}");
    assert_eq!((proxy.count(0, OutcomeClass::Ok), proxy.count(0, OutcomeClass::Cut)), (1, 0));
}

/// The proxy's snapshot once more, with this verdict on its only destination.
fn judge(proxy: &Proxy, revision: u64, active: Health, setup: support::Setup) {
    let mut snapshot = support::snapshot(setup);
    snapshot.revision = Revision(revision);
    snapshot.health = Arc::new(HealthView {
        clusters: vec![Arc::new(ClusterHealth {
            id: "c".into(),
            active: Switch::On,
            passive: Switch::Off,
            destinations: vec![DestinationHealth {
                id: "d1".into(),
                slot: Slot(0),
                health: HealthPair::new(active, Health::Unknown),
                because: model::available::Because::Health,
                is_available: true,
                status: NodeStatus::Unknown,
                counter: Counter::default(),
                probed_at: None,
                probe_failure: None,
                probe_status: None,
                next_probe_at: None,
                reactivation_at: None,
                changed_at: None,
                is_gated: false,
                share: model::ratio::Ratio::ONE,
                would_eject: Vec::new(),
                last_transition: None,
            }],
            available: vec![0],
            is_panic: false,
        })],
        ..HealthView::default()
    });
    proxy.board.publish(Arc::new(snapshot));
}

#[test]
fn tunnels_of_a_destination_that_turns_unhealthy_go_on_or_are_closed_as_configured() {
    for tunnels in [Tunnels::Keep, Tunnels::CloseOnUnhealthy] {
        let destination = switching(vec![Act::Echo]);
        let make = || setup(&[destination.addr()]).with(|cluster| cluster.outbound.tunnels = tunnels);
        let proxy = make().start();
        let mut clients: Vec<_> = (0..50).map(|_| switched(&proxy)).collect();
        judge(&proxy, 2, Health::Healthy, make());
        std::thread::sleep(Duration::from_millis(1200));
        for client in &mut clients {
            client.send("x");
            assert_eq!(client.exactly(1), b"x");
        }
        judge(&proxy, 3, Health::Unhealthy, make());
        match tunnels {
            Tunnels::Keep => {
                std::thread::sleep(Duration::from_millis(1200));
                for client in &mut clients {
                    client.send("x");
                    assert_eq!(client.exactly(1), b"x");
                }
            }
            Tunnels::CloseOnUnhealthy => {
                for client in &mut clients {
                    assert_eq!(client.within(Duration::from_secs(3)).rest(), (vec![], End::Closed));
                }
                assert!(proxy.log(50).iter().all(|line| line.contains("\"reason\":\"tunnel-unhealthy\"")));
            }
        }
    }
}

#[test]
fn a_break_is_charged_as_a_cut_beside_the_ok() {
    let destination = switching(vec![Act::Pause(Duration::from_millis(200)), Act::Reset]);
    let make = || setup(&[destination.addr()]);
    let proxy = make().start();
    judge(&proxy, 2, Health::Healthy, make());
    let mut client = switched(&proxy);
    assert_eq!(client.rest().1, End::Reset);
    eventually("the cut is counted", Duration::from_secs(5), || (proxy.count(0, OutcomeClass::Cut) == 1).then_some(()));
    assert_eq!(proxy.count(0, OutcomeClass::Ok), 1);
}

#[test]
fn a_planned_stop_lets_tunnels_live_until_the_grace_is_over() {
    let destination = switching(vec![Act::Echo]);
    let mut proxy = setup(&[destination.addr()]).start();
    let mut client = switched(&proxy);
    proxy.workers.drain(proxy::Drain::within(Duration::from_millis(800)));
    std::thread::sleep(Duration::from_millis(300));
    client.send("x");
    assert_eq!(client.exactly(1), b"x");
    assert_ne!(client.rest().1, End::Open);
    let line = proxy.log(1).remove(0);
    assert!(line.contains("\"reason\":\"tunnel-stopped\"") && line.contains("\"bytes_in\":1"), "{line}");
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
fn a_slow_reader_holds_up_the_destination_and_not_the_memory() {
    let destination = switching(vec![Act::Send(vec![b'y'; 64 << 20]), Act::Close]);
    let proxy = setup(&[destination.addr()]).start();
    let mut client = switched(&proxy);
    std::thread::sleep(Duration::from_millis(300));
    let (bytes, end) = client.rest();
    assert_eq!((bytes.len(), end), (64 << 20, End::Closed));
    // The destination has ended its side; the client's is still open.
    client.finish();
    let line = proxy.log(1).remove(0);
    assert!(line.contains("\"reason\":\"\"") && line.contains("\"bytes_out\":67108"), "{line}");
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

#[cfg(target_os = "linux")]
#[test]
fn both_hosts_of_a_tunnel_are_asked_whether_they_are_still_there() {
    let destination = switching(vec![Act::Echo]);
    let proxy = setup(&[destination.addr()]).start();
    let client = switched(&proxy);
    // Column 6 of the kernel's table: 02 is the timer of keepalive.
    let is_watched = |remote: u16| {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        table.lines().any(|line| {
            let columns: Vec<_> = line.split_whitespace().collect();
            columns.get(2).is_some_and(|address| address.ends_with(&format!(":{remote:04X}")))
                && columns.get(5).is_some_and(|timer| timer.starts_with("02:"))
        })
    };
    for remote in [client.local_addr().port(), destination.addr().port()] {
        eventually("the end is watched", Duration::from_secs(5), || is_watched(remote).then_some(()));
    }
}
