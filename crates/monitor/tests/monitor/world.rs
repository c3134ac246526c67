//! One monitor over the simulated network, and configurations for it.

use std::sync::Arc;
use std::time::Duration;

use board::Board;
use exchange::snapshot::Snapshot;
use io::Io;
use io::sim::Sim;
use model::active::{ActiveCheck, ActivePolicy, ProbeKind, ProbeRequest, ProbeRound, ProbeStart, StatusRange};
use model::address::Url;
use model::available::AvailablePolicy;
use model::balancing::LoadBalancing;
use model::cluster::{Cluster, Compat, HealthCheck, UpstreamHost, UpstreamTls};
use model::config::{AccessLog, Config, Control, ControlSocket, Drain};
use model::destination::Destination;
use model::event::EventKind;
use model::health::Health;
use model::id::Revision;
use model::outcome::FailureKind;
use model::passive::{MaxFails, PassiveCheck, PassivePolicy};
use model::retry::RetryRules;
use model::time::Timestamp;
use model::timeouts::Timeouts;
use model::view::DestinationHealth;
use monitor::{Context, Extensions, Handle, Monitor, Names};
use telemetry::journal::{After, Journal};
use telemetry::metrics::Metrics;
use upstream::resolve::TableResolver;
use upstream::{Connector, Tls};

/// A running monitor and what is around it.
pub struct World {
    pub io: Sim,
    pub handle: Handle,
    pub board: Arc<Board<Snapshot>>,
    pub journal: Arc<Journal>,
}

/// Runs `test` beside a monitor of `config`.
pub async fn run(io: Sim, config: Config, test: impl AsyncFnOnce(World)) {
    run_with(io, config, Extensions::default(), test).await;
}

/// The same with parts written by others.
pub async fn run_with(io: Sim, config: Config, extensions: Extensions, test: impl AsyncFnOnce(World)) {
    run_among(io, config, extensions, Names::off(), test).await;
}

/// The same with names that are looked up.
pub async fn run_named(io: Sim, config: Config, names: Names, test: impl AsyncFnOnce(World)) {
    run_among(io, config, Extensions::default(), names, test).await;
}

/// The same with a test that is asked before the monitor, which else has its first turn before the test begins.
pub async fn run_before_first_turn(config: Config, test: impl AsyncFnOnce(World)) {
    let (monitor, world) = made(Sim::new(), config, Extensions::default(), Names::off());
    tokio::select! {
        biased;
        () = test(world) => {}
        () = monitor.run() => panic!("the monitor ended"),
    }
}

async fn run_among(io: Sim, config: Config, extensions: Extensions, names: Names, test: impl AsyncFnOnce(World)) {
    let (monitor, world) = made(io, config, extensions, names);
    tokio::select! {
        biased;
        () = monitor.run() => panic!("the monitor ended"),
        () = test(world) => {}
    }
}

fn made(io: Sim, config: Config, extensions: Extensions, names: Names) -> (Monitor<Sim, TableResolver>, World) {
    let journal = Journal::new(Metrics::new());
    let context = Context {
        connector: Connector::new(io.clone(), TableResolver::default(), Tls::new()),
        journal: Arc::clone(&journal),
        metrics: Metrics::new(),
        workers: 1,
        seed: 7,
        names,
        spool: None,
        extensions,
    };
    let monitor = Monitor::new(context, Arc::new(config)).unwrap();
    let world = World { io, handle: monitor.handle().unwrap(), board: monitor.board(), journal };
    (monitor, world)
}

impl World {
    /// Lets time pass.
    pub async fn pass(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }

    /// What is published of a destination, by its ids.
    pub fn health(&self, cluster: &str, destination: &str) -> DestinationHealth {
        let snapshot = self.board.load();
        let cluster = snapshot.health.clusters.iter().find(|one| one.id.as_str() == cluster).unwrap();
        cluster.destinations.iter().find(|one| one.id.as_str() == destination).unwrap().clone()
    }

    /// Its active value and how its last probe failed.
    pub fn active(&self, cluster: &str, destination: &str) -> (Health, Option<FailureKind>) {
        let health = self.health(cluster, destination);
        (health.health.active, health.probe_failure)
    }

    /// Ids of a cluster's available destinations.
    pub fn available(&self, cluster: &str) -> Vec<String> {
        let snapshot = self.board.load();
        let view = snapshot.clusters.iter().find(|view| view.id.as_str() == cluster).unwrap();
        view.available.iter().map(|&at| view.destinations[at as usize].id.to_string()).collect()
    }

    /// When a destination's value last became `to`.
    pub fn became(&self, destination: &str, to: Health) -> Option<Timestamp> {
        let entries = self.journal.last(1, |event| {
            matches!(&event.kind, EventKind::Transition(one)
                if one.destination.destination.as_str() == destination && one.to == to)
        });
        entries.first().map(|entry| entry.event.at)
    }

    /// All events so far.
    pub fn events(&self) -> Vec<EventKind> {
        match self.journal.after(Revision(0), usize::MAX) {
            After::Events(entries) => entries.iter().map(|entry| entry.event.kind.clone()).collect(),
            After::Lost => panic!("lost"),
        }
    }

    pub fn now(&self) -> Timestamp {
        self.io.now()
    }
}

pub fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Probes each second for half a second; two failures in a row; confirmed after a second, so that the cadence is even.
pub fn check() -> ActiveCheck {
    ActiveCheck {
        kind: ProbeKind::Http,
        interval: secs(1),
        unhealthy_interval: secs(1),
        timeout: millis(500),
        policy: ActivePolicy::ConsecutiveFailures { threshold: 2 },
        confirm_interval: secs(3600),
        start: ProbeStart::Eligible,
        round: ProbeRound::Destination,
        request: ProbeRequest {
            method: "GET".to_owned(),
            path: Some("/health".to_owned()),
            query: None,
            host: None,
            headers: Vec::new(),
            expect_statuses: vec![StatusRange::SUCCESS],
            expect_body: None,
            http: None,
            service: None,
            healthy_threshold: 1,
        },
    }
}

/// Three failures within ten seconds eject.
pub fn max_fails() -> PassiveCheck {
    let rule = MaxFails { max_fails: 3, fail_timeout: secs(10) };
    PassiveCheck::of(vec![PassivePolicy::MaxFails(rule)])
}

/// A cluster of destinations `id` at `url`.
pub fn cluster(id: &str, active: Option<ActiveCheck>, destinations: &[(&str, &str)]) -> Cluster {
    Cluster {
        id: id.into(),
        compat: Compat::None,
        load_balancing: LoadBalancing::default(),
        session_affinity: None,
        health_check: HealthCheck {
            available_destinations_policy: AvailablePolicy::HealthyAndUnknown,
            guards: Default::default(),
            active,
            passive: None,
        },
        retry: RetryRules::native(),
        queue: Default::default(),
        timeouts: Timeouts::NATIVE,
        tls: UpstreamTls::default(),
        host: UpstreamHost::default(),
        http: Default::default(),
        outbound: Default::default(),
        family: Default::default(),
        metadata: Default::default(),
        destinations: destinations.iter().map(|(id, url)| destination(id, url)).collect(),
    }
}

pub fn destination(id: &str, url: &str) -> Destination {
    Destination {
        id: id.into(),
        address: Url::parse(url).unwrap(),
        health: None,
        host: None,
        weight: 1,
        max_fails: None,
        tier: Default::default(),
        max_connections: None,
    }
}

pub fn config(clusters: Vec<Cluster>) -> Config {
    Config {
        workers: None,
        control: Control {
            address: "127.0.0.1:0".parse().unwrap(),
            names: Vec::new(),
            socket: ControlSocket::Off,
            users: Vec::new(),
            token_file: None,
        },
        listeners: Vec::new(),
        routes: Vec::new(),
        clusters,
        drain: Drain::default(),
        access_log: AccessLog::Off,
        answers: Default::default(),
        dns: Default::default(),
        recorder: None,
    }
}
