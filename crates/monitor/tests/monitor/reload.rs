//! Reloads keep what is known and never bring a burst of probes.

use std::sync::Arc;

use io::Io;
use io::sim::Sim;
use model::active::{ActiveCheck, ActivePolicy};
use model::config::Config;
use model::health::Health;
use model::outcome::FailureKind;
use model::route::{Route, RouteAction, RouteMatch};
use model::time::Timestamp;

use crate::destination::{Destination, status};
use crate::world::{check, cluster, config, millis, run, secs};

/// The same configuration with one more unrelated route.
fn with_route(mut config: Config, n: u16) -> Config {
    config.routes.push(Route {
        id: format!("r{n}").into(),
        order: 0,
        matcher: RouteMatch::default(),
        action: RouteAction::Respond { status: 200, body: n.to_string() },
        timeout: None,
        max_request_body: None,
        policy: Default::default(),
    });
    config
}

/// RELOAD-01
#[tokio::test(start_paused = true)]
async fn an_unrelated_reload_keeps_verdict_counts_and_next_probe() {
    let io = Sim::new();
    let good = Destination::start(&io, "10.0.0.1:80", status(200));
    let bad = Destination::start(&io, "10.0.0.2:80", status(500));
    let check = ActiveCheck {
        interval: secs(5),
        unhealthy_interval: secs(5),
        policy: ActivePolicy::ConsecutiveFailures { threshold: 3 },
        ..check()
    };
    let config = config(vec![cluster("a", Some(check), &[("a", "http://10.0.0.1/"), ("b", "http://10.0.0.2/")])]);
    run(io, config.clone(), async |world| {
        world.pass(secs(17)).await;
        assert_eq!(world.active("a", "b"), (Health::Unhealthy, Some(FailureKind::Status)));
        let (asked_a, asked_b) = (good.asked_at().len(), bad.asked_at().len());
        let before = world.health("a", "b");
        let cluster_before = world.board.load().clusters[0].clone();
        for n in 0..20 {
            let summary = world.handle.configure(Arc::new(with_route(config.clone(), n))).await.unwrap();
            assert!(summary.starts_with("reload: routes "), "{summary}");
            assert_eq!(world.available("a"), ["a"], "no request can reach b");
            assert_eq!(world.board.load().routes.len(), 1);
            if n == 0 {
                let after = world.health("a", "b");
                assert_eq!(
                    (after.slot, after.counter, after.next_probe_at, after.changed_at),
                    (before.slot, before.counter, before.next_probe_at, before.changed_at)
                );
                assert!(Arc::ptr_eq(&world.board.load().clusters[0], &cluster_before), "unchanged parts are shared");
            }
            world.pass(secs(1)).await;
        }
        // 20 s are four intervals.
        for (destination, asked) in [(&good, asked_a), (&bad, asked_b)] {
            let n = destination.asked_at().len() - asked;
            assert!((3..=5).contains(&n), "{n} probes");
            assert!(destination.gaps().iter().all(|gap| *gap >= millis(4750)), "{:?}", destination.gaps());
        }
    })
    .await;
}

/// RELOAD-03
#[tokio::test(start_paused = true)]
async fn after_many_reloads_every_destination_has_one_probe_per_interval() {
    let io = Sim::new();
    let names: Vec<(String, String)> = (1..=30).map(|n| (format!("d{n}"), format!("http://10.0.0.{n}/"))).collect();
    let servers: Vec<Destination> = (1..=30)
        .map(|n| Destination::start(&io, &format!("10.0.0.{n}:80"), status(if n % 3 == 0 { 500 } else { 200 })))
        .collect();
    let names: Vec<(&str, &str)> = names.iter().map(|(id, url)| (id.as_str(), url.as_str())).collect();
    let clusters = names.chunks(10).zip(["a", "b", "c"]).map(|(part, id)| cluster(id, Some(check()), part)).collect();
    let config = config(clusters);
    run(io, config.clone(), async |world| {
        let mut random = model::random::Random::new(3);
        for n in 0..30 {
            world.handle.configure(Arc::new(with_route(config.clone(), n))).await.unwrap();
            if n % 10 == 5 {
                // Two at once.
                let (one, two) = tokio::join!(
                    world.handle.configure(Arc::new(config.clone())),
                    world.handle.configure(Arc::new(with_route(config.clone(), n)))
                );
                assert!(one.is_ok() && two.is_ok());
            }
            world.pass(millis(100 + random.below(1900) as u64)).await;
        }
        let from = world.now();
        world.pass(secs(20)).await;
        let to = world.now();
        for (n, server) in (1..).zip(&servers) {
            let asked = server.asked_between(from, to);
            assert!((19..=21).contains(&asked), "d{n}: {asked} probes in 20 intervals");
            assert!(server.gaps().iter().all(|gap| (millis(940)..=millis(1060)).contains(gap)), "{:?}", server.gaps());
            let expected = if n % 3 == 0 { Health::Unhealthy } else { Health::Healthy };
            let cluster = ["a", "b", "c"][(n - 1) / 10];
            assert_eq!(world.health(cluster, &format!("d{n}")).health.active, expected, "d{n}");
        }
    })
    .await;
}

/// RELOAD-07
#[tokio::test(start_paused = true)]
async fn switching_checks_and_changing_them_leaves_one_stream_of_probes() {
    let io = Sim::new();
    let server = Destination::start(&io, "10.0.0.1:80", status(200));
    let of = |check: Option<ActiveCheck>| Arc::new(config(vec![cluster("a", check, &[("one", "http://10.0.0.1/")])]));
    let slow = ActiveCheck { interval: secs(10), unhealthy_interval: secs(10), ..check() };
    run(io, (*of(None)).clone(), async |world| {
        world.pass(secs(30)).await;
        assert!(server.asked_at().is_empty());

        // On: a probe at once, then one per interval.
        world.handle.configure(of(Some(slow.clone()))).await.unwrap();
        world.pass(secs(1)).await;
        assert_eq!(server.asked_at().len(), 1);
        world.pass(secs(20)).await;
        assert_eq!(server.asked_at().len(), 3);

        // A shorter interval: within the shorter one of both.
        let changed_at = world.now();
        world.handle.configure(of(Some(check()))).await.unwrap();
        world.pass(secs(10)).await;
        let next = server.asked_at().into_iter().find(|at| *at >= changed_at).unwrap();
        assert!(next.since(changed_at) <= millis(1050), "{next}");
        let n = server.asked_between(changed_at, world.now());
        assert!((9..=11).contains(&n), "{n}");

        // Path and timeout: no burst, and in use from the next probe on.
        let mut other = check();
        other.request.path = Some("/other".to_owned());
        other.timeout = millis(300);
        let (changed_at, asked) = (world.now(), server.heads().len());
        world.handle.configure(of(Some(other.clone()))).await.unwrap();
        world.pass(secs(5)).await;
        assert!((4..=6).contains(&server.asked_between(changed_at, world.now())));
        assert!(server.heads()[asked..].iter().all(|head| head.starts_with("GET /other ")));

        // Fifty switches by two who do not know of each other.
        for n in 0_u64..50 {
            let (on, off) = (world.handle.configure(of(Some(other.clone()))), world.handle.configure(of(None)));
            let (one, two) = if n % 2 == 0 { tokio::join!(on, off) } else { tokio::join!(off, on) };
            assert!(one.is_ok() && two.is_ok());
            world.pass(millis(n)).await;
        }
        world.handle.configure(of(Some(other.clone()))).await.unwrap();
        world.pass(secs(2)).await;
        let from = world.now();
        world.pass(secs(20)).await;
        let asked = server.asked_between(from, world.now());
        assert!((19..=21).contains(&asked), "{asked} probes in 20 intervals");
        assert_eq!(server.open().1, 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lower_threshold_is_judged_against_the_kept_count_at_the_next_probe() {
    let io = Sim::new();
    let _server = Destination::start(&io, "10.0.0.1:80", status(500));
    let of = |threshold| {
        let check = ActiveCheck { policy: ActivePolicy::ConsecutiveFailures { threshold }, ..check() };
        config(vec![cluster("a", Some(check), &[("one", "http://10.0.0.1/")])])
    };
    run(io, of(50), async |world| {
        world.pass(secs(10)).await;
        assert_eq!(world.health("a", "one").health.active, Health::Unknown);
        let lowered_at = world.now();
        world.handle.configure(Arc::new(of(3))).await.unwrap();
        world.pass(secs(2)).await;
        let at = world.became("one", Health::Unhealthy).unwrap();
        assert!(at.since(lowered_at) <= millis(1050), "{at}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn another_address_is_another_server() {
    let io = Sim::new();
    let _old = Destination::start(&io, "10.0.0.1:80", status(500));
    let new = Destination::start(&io, "10.0.0.2:80", status(200));
    let of = |url| config(vec![cluster("a", Some(check()), &[("one", url)])]);
    run(io, of("http://10.0.0.1/"), async |world| {
        world.pass(secs(5)).await;
        let before = world.health("a", "one");
        assert_eq!(before.health.active, Health::Unhealthy);
        let moved_at = world.now();
        world.handle.configure(Arc::new(of("http://10.0.0.2/"))).await.unwrap();
        let after = world.health("a", "one");
        assert_eq!(after.health.active, Health::Unknown);
        assert_ne!(after.slot, before.slot);
        world.pass(millis(50)).await;
        assert_eq!(new.asked_between(moved_at, Timestamp::MAX), 1);
        assert_eq!(world.io.now().since(moved_at), millis(50));
        world.pass(millis(200)).await;
        assert_eq!(world.health("a", "one").health.active, Health::Healthy);
    })
    .await;
}
