//! What operators and programs ask of a running monitor.

use std::future::{Future, pending};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use health::HealthSet;
use io::Io;
use io::sim::Sim;
use model::event::EventKind;
use model::health::{CheckKind, Health};
use model::id::DestinationKey;
use model::upstream::Family;
use model::view::NodeStatus;
use monitor::{ConfigureError, Names};
use upstream::{LookUp, LookedUp};

use crate::destination::{Destination, status};
use crate::world::{check, cluster, config, millis, run, run_before_first_turn, run_named, secs};

#[tokio::test(start_paused = true)]
async fn a_configuration_with_a_bad_ca_file_is_refused_and_changes_nothing() {
    let before = config(vec![cluster("a", None, &[("one", "http://10.0.0.1/")])]);
    let mut bad = config(vec![cluster("b", None, &[("one", "https://10.0.0.1/")])]);
    bad.clusters[0].tls.ca = Some(PathBuf::from("/nowhere/ca.pem"));
    run(Sim::new(), before, async |world| {
        let error = world.handle.configure(Arc::new(bad)).await.unwrap_err();
        assert!(matches!(&error, ConfigureError::Tls { cluster, .. } if cluster.as_str() == "b"));
        assert!(error.to_string().starts_with("cluster b: /nowhere/ca.pem: cannot read"), "{error}");
        assert_eq!(world.board.load().clusters[0].id.as_str(), "a");
        world.handle.refused("lazaret.yaml:3:1: error: unknown key".to_owned()).await.unwrap();
        let refused = |event: &EventKind| matches!(event, EventKind::Config { applied: false, .. });
        assert_eq!(world.events().iter().filter(|event| refused(event)).count(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_has_waited_for_the_beginning_finds_the_configuration_in_the_journal() {
    let destinations = [("one", "http://10.0.0.1/")];
    run_before_first_turn(config(vec![cluster("a", Some(check()), &destinations)]), async |world| {
        assert!(world.events().is_empty());
        world.handle.begun().await.unwrap();
        assert!(matches!(world.events()[..], [EventKind::Config { applied: true, .. }]));
        assert_eq!(world.health("a", "one").health.active, Health::Unknown);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_value_set_from_outside_takes_effect_before_the_call_returns() {
    let io = Sim::new();
    let _server = Destination::start(&io, "10.0.0.1:80", status(200));
    let destinations = [("one", "http://10.0.0.1/")];
    run(io, config(vec![cluster("a", Some(check()), &destinations)]), async |world| {
        world.pass(millis(500)).await;
        let set = |health| HealthSet {
            destination: DestinationKey::new("a", "one"),
            check: CheckKind::Active,
            health,
            reactivation: None,
        };
        world.handle.set_health(set(Health::Unhealthy)).await.unwrap();
        assert!(world.available("a").is_empty());
        // It stands until the policy says otherwise.
        world.pass(secs(1)).await;
        assert_eq!(world.available("a"), ["one"]);
        let nobody = HealthSet { destination: DestinationKey::new("a", "nobody"), ..set(Health::Healthy) };
        world.handle.set_health(nobody).await.unwrap();
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn draining_reports_every_node_unhealthy_while_traffic_goes_on() {
    let destinations = [("one", "http://10.0.0.1/")];
    run(Sim::new(), config(vec![cluster("a", None, &destinations)]), async |world| {
        assert_eq!(world.health("a", "one").status, NodeStatus::Healthy);
        world.handle.drain().await.unwrap();
        assert_eq!(world.health("a", "one").status, NodeStatus::Unhealthy);
        assert_eq!(world.available("a"), ["one"]);
        assert!(world.events().contains(&EventKind::Draining));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn who_hears_of_an_event_finds_its_effect_published() {
    let io = Sim::new();
    let _server = Destination::start(&io, "10.0.0.1:80", status(200));
    run(io, config(vec![cluster("a", Some(check()), &[("one", "http://10.0.0.1/")])]), async |world| {
        let mut news = world.journal.subscribe();
        // The first probe's verdict.
        news.changed().await.unwrap();
        let revision = *news.borrow_and_update();
        assert!(world.board.load().health.revision >= revision);
        assert_eq!(world.health("a", "one").health.active, Health::Healthy);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_loop_turns_ten_times_a_second_and_ends_when_told() {
    let config = config(vec![cluster("a", None, &[("one", "http://10.0.0.1/")])]);
    run(Sim::new(), config, async |world| {
        world.pass(secs(5)).await;
        assert!(world.io.now().since(world.handle.turned_at()) <= millis(100));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_suspended_monitor_probes_nobody_and_a_resumed_one_does_again() {
    let io = Sim::new();
    let _server = Destination::start(&io, "10.0.0.1:80", status(200));
    let address = "10.0.0.1:80".parse().unwrap();
    run(io, config(vec![cluster("a", Some(check()), &[("one", "http://10.0.0.1/")])]), async |world| {
        world.pass(millis(1500)).await;
        let saved = world.handle.suspend().await.unwrap();
        assert_eq!(saved.clusters[0].destinations[0].health.active, Health::Healthy);
        assert!(saved.clusters[0].destinations[0].probes.next_at.is_some());
        let before = world.io.accepted(address);
        assert!(before > 0);
        world.pass(secs(20)).await;
        assert_eq!(world.io.accepted(address), before);
        // What nobody looked at has not changed.
        assert_eq!(world.health("a", "one").health.active, Health::Healthy);
        world.handle.resume().await.unwrap();
        world.pass(millis(2500)).await;
        assert!(world.io.accepted(address) >= before + 2);
    })
    .await;
}

/// A name server that is gone.
struct Silent;

impl LookUp for Silent {
    fn look_up<'a>(&'a self, _: &'a str, _: Family) -> Pin<Box<dyn Future<Output = LookedUp> + 'a>> {
        Box::pin(pending())
    }
    fn use_servers(&self, _: &[SocketAddr]) {}
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_waits_for_its_names_holds_up_no_other_call() {
    let one = cluster("a", Some(check()), &[("one", "http://10.0.0.1/")]);
    let named = cluster("b", None, &[("two", "http://app.test/")]);
    let (before, after) = (config(vec![one.clone()]), config(vec![one, named]));
    run_named(Sim::new(), before, Names::new(7, Rc::new(Silent)), async |world| {
        let start = world.now();
        let set = HealthSet {
            destination: DestinationKey::new("a", "one"),
            check: CheckKind::Active,
            health: Health::Unhealthy,
            reactivation: None,
        };
        let configured = async {
            world.handle.configure(Arc::new(after)).await.unwrap();
            world.now()
        };
        let heard = async {
            // Behind it in the channel.
            world.pass(millis(1)).await;
            world.handle.set_health(set).await.unwrap();
            assert!(world.available("a").is_empty());
            assert_eq!(world.board.load().clusters.len(), 1, "the configuration waits");
            world.now()
        };
        let (configured, heard) = tokio::join!(configured, heard);
        assert!(heard < start + millis(100), "{heard:?}");
        assert!(configured >= start + secs(2), "{configured:?}");
        assert_eq!(world.board.load().clusters.len(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn of_two_configurations_that_wait_each_is_taken_over_in_its_turn() {
    let named = |id: &str| config(vec![cluster(id, None, &[("two", "http://app.test/")])]);
    let before = config(vec![cluster("a", None, &[("one", "http://10.0.0.1/")])]);
    run_named(Sim::new(), before, Names::new(7, Rc::new(Silent)), async |world| {
        let first = world.handle.configure(Arc::new(named("b")));
        let second = async {
            world.pass(millis(1)).await;
            world.handle.configure(Arc::new(named("c"))).await
        };
        let (first, second) = tokio::join!(first, second);
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(world.board.load().clusters[0].id.as_str(), "c");
        let applied = |event: &&EventKind| matches!(event, EventKind::Config { applied: true, .. });
        assert_eq!(world.events().iter().filter(applied).count(), 3, "the start, then both");
    })
    .await;
}
