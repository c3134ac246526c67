//! The life of a tunnel: it passes on both ends, has limits of its own, ends with its hosts, its destination's health and
//! the proxy as configured, and is told of when it is over.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use model::health::{Health, HealthPair, Switch};
use model::id::{Revision, Slot};
use model::outcome::OutcomeClass;
use model::upstream::Tunnels;
use model::view::{ClusterHealth, Counter, DestinationHealth, HealthView, NodeStatus};
use support::upgrades::{switched, switching};
use support::{Proxy, setup};
use testkit::client::End;
use testkit::destination::Act;
use testkit::wait::eventually;

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
