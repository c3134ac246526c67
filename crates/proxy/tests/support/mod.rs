//! A real proxy in this process, over loopback: snapshots made by hand, one worker, an access log in a temporary file.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod http2;
pub mod origin;
pub mod places;
pub mod raw;
pub mod tls;
pub mod upgrades;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use balance::{Picker, Policies, affinity};
use board::Board;
use exchange::snapshot::{ClusterView, DestinationView, Endpoint, Needs, RouteView, Snapshot};
use io::real::Real;
use model::address::Url;
use model::available::{AvailablePolicy, Because};
use model::balancing::LoadBalancing;
use model::cluster::{Cluster, Compat, HealthCheck, UpstreamHost, UpstreamTls};
use model::config::{AccessLog, Answers, Config, Control, ControlSocket, Drain};
use model::destination::Destination;
use model::health::Switch;
use model::id::{ListenerId, Revision, Slot};
use model::listener::{Listener, SelfCheck};
use model::outcome::OutcomeClass;
use model::retry::RetryRules;
use model::route::{HostKind, HostPattern, Route, RouteAction, RouteMatch};
use model::timeouts::{ClientLimits, Timeouts};
use model::view::{ClusterHealth, HealthView};
use proxy::{Context, ServerTls, Workers};
use telemetry::metrics::{Format, Metrics, ScrapeView};
use telemetry::reopen::ReopenFile;
use testkit::client::Client;
use upstream::{SystemResolver, Tls};

/// What runs; changed before [`Setup::start`].
pub struct Setup {
    pub listener: Listener,
    pub routes: Vec<Route>,
    pub clusters: Vec<Cluster>,
    pub answers: Answers,
}

/// A running proxy.
pub struct Proxy {
    pub addr: SocketAddr,
    pub board: Arc<Board<Snapshot>>,
    pub workers: Workers<Real>,
    pub server_tls: ServerTls,
    listener: Listener,
    pub metrics: Arc<Metrics>,
    log: ReopenFile,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

/// One route to one cluster of these destinations, tried in this order; retry off.
pub fn setup(destinations: &[SocketAddr]) -> Setup {
    Setup {
        listener: Listener {
            id: ListenerId::from("web"),
            address: "127.0.0.1:0".parse().unwrap(),
            limits: ClientLimits::NATIVE,
            trusted_proxies: Vec::new(),
            self_check: SelfCheck::Off,
            entry: Default::default(),
            tls: None,
            http2: Default::default(),
        },
        routes: vec![route("all", RouteAction::Cluster(Some("c".into())))],
        clusters: vec![cluster("c", destinations)],
        answers: Answers::default(),
    }
}

/// The same with a destination that refuses connections.
pub fn refusing_setup() -> Setup {
    setup(&[testkit::destination::refusing()])
}

/// A route for everything.
pub fn route(id: &str, action: RouteAction) -> Route {
    Route {
        id: id.into(),
        order: 0,
        matcher: RouteMatch::default(),
        action,
        timeout: None,
        max_request_body: None,
        policy: Default::default(),
    }
}

/// The same for one host only.
pub fn host_route(host: &str, cluster: &str) -> Route {
    let mut route = route(host, RouteAction::Cluster(Some(cluster.into())));
    route.matcher.hosts = vec![HostPattern { name: host.to_owned(), kind: HostKind::Exact, port: None }];
    route
}

/// Destinations d1, d2, … in this order; retry off.
pub fn cluster(id: &str, destinations: &[SocketAddr]) -> Cluster {
    let destination = |(number, addr): (u32, &SocketAddr)| Destination {
        id: format!("d{number}").as_str().into(),
        address: Url::parse(&format!("http://{addr}/")).unwrap(),
        health: None,
        host: None,
        weight: 1,
        max_fails: None,
        tier: Default::default(),
        max_connections: None,
    };
    Cluster {
        id: id.into(),
        compat: Compat::None,
        load_balancing: LoadBalancing::FirstAlphabetical,
        session_affinity: None,
        health_check: HealthCheck {
            available_destinations_policy: AvailablePolicy::HealthyOrPanic,
            guards: Default::default(),
            active: None,
            passive: None,
        },
        retry: RetryRules::off(),
        queue: Default::default(),
        timeouts: Timeouts::NATIVE,
        tls: UpstreamTls::default(),
        host: UpstreamHost::Destination,
        http: Default::default(),
        outbound: Default::default(),
        family: Default::default(),
        metadata: BTreeMap::new(),
        destinations: (1..).zip(destinations).map(destination).collect(),
    }
}

impl Setup {
    /// Changes the first cluster.
    pub fn with(mut self, change: impl FnOnce(&mut Cluster)) -> Self {
        change(&mut self.clusters[0]);
        self
    }

    /// Changes the listener.
    pub fn listening(mut self, change: impl FnOnce(&mut Listener)) -> Self {
        change(&mut self.listener);
        self
    }

    /// The default retry rules.
    pub fn retrying(self) -> Self {
        self.with(|cluster| cluster.retry = RetryRules::native())
    }

    pub fn start(self) -> Proxy {
        self.start_with(1)
    }

    /// With so many workers.
    pub fn start_with(self, workers: usize) -> Proxy {
        let listener = self.listener.clone();
        let board = Board::new(workers, Arc::new(snapshot(self)));
        for budget in 0..4 {
            board.deposit(budget, 1_000_000, 1_000_000);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let log = ReopenFile::open(&path).unwrap();
        let (server_tls, metrics) = (ServerTls::new(), Metrics::new());
        server_tls.commit(server_tls.prepare(std::slice::from_ref(&listener)).expect("good files"));
        let context = Context {
            io: Real::new(),
            resolver: SystemResolver::new(),
            tls: Tls::new(),
            server_tls: server_tls.clone(),
            board: Arc::clone(&board),
            metrics: Arc::clone(&metrics),
            access_log: Some(log.clone()),
            instance: "test-instance".into(),
            seed: 1,
        };
        let workers = Workers::start(context, std::slice::from_ref(&listener)).unwrap();
        let addr = workers.addresses().next().unwrap().1;
        Proxy { addr, board, workers, server_tls, listener, metrics, log, path, _folder: folder }
    }
}

impl Proxy {
    pub fn client(&self) -> Client {
        Client::connect(self.addr)
    }

    /// The lines of the access log, once there are this many.
    pub fn log(&self, lines: usize) -> Vec<String> {
        testkit::wait::eventually("lines in the access log", Duration::from_secs(5), || {
            assert!(self.log.flush(Duration::from_secs(5)));
            let text = std::fs::read_to_string(&self.path).unwrap();
            let found: Vec<String> = text.lines().map(str::to_owned).collect();
            (found.len() >= lines).then_some(found)
        })
    }

    /// The access log as far as it is written.
    pub fn log_text(&self) -> String {
        assert!(self.log.flush(Duration::from_secs(5)));
        std::fs::read_to_string(&self.path).unwrap()
    }

    /// The listener as it was configured.
    pub fn listener(&self) -> Listener {
        self.listener.clone()
    }

    /// Waits until a scrape has this line.
    pub fn counts(&self, line: &str) {
        testkit::wait::eventually(line, Duration::from_secs(5), || {
            self.scrape().lines().any(|one| one == line).then_some(())
        });
    }

    /// The metrics as text, of the clusters too.
    pub fn scrape(&self) -> String {
        let known = |cluster: &Arc<ClusterView>| {
            Arc::new(ClusterHealth {
                id: cluster.id.clone(),
                active: Switch::Off,
                passive: Switch::Off,
                destinations: Vec::new(),
                available: Vec::new(),
                is_panic: false,
            })
        };
        let clusters = self.board.load().clusters.iter().map(known).collect();
        let health = HealthView { clusters, ..HealthView::default() };
        let core_age = Duration::ZERO;
        let view = ScrapeView { health: &health, in_flight: &|_| 0, core_age, is_draining: false };
        self.metrics.scrape(&view, Format::Classic)
    }

    /// Attempts at a destination (from 0) that ended with this class.
    pub fn count(&self, destination: u32, class: OutcomeClass) -> u64 {
        self.board.count(Slot(destination), class)
    }
}

/// A snapshot in which everything is available.
pub fn snapshot(setup: Setup) -> Snapshot {
    let config = Config {
        workers: None,
        control: Control {
            address: "127.0.0.1:9090".parse().unwrap(),
            names: Vec::new(),
            socket: ControlSocket::Off,
            users: Vec::new(),
            token_file: None,
        },
        listeners: vec![setup.listener],
        routes: setup.routes,
        clusters: setup.clusters,
        drain: Drain::default(),
        access_log: AccessLog::Off,
        answers: setup.answers,
        dns: Default::default(),
        recorder: None,
    };
    let mut slots = (0..).map(Slot);
    Snapshot {
        revision: Revision(1),
        health: Arc::new(HealthView::default()),
        table: Arc::new(route::Table::new(&config.routes)),
        routes: config.routes.iter().map(|route| RouteView::of(route, &config)).collect(),
        clusters: (0..).zip(&config.clusters).map(|(at, c)| Arc::new(cluster_view(c, at, &mut slots))).collect(),
        config: Arc::new(config),
    }
}

fn cluster_view(cluster: &Cluster, budget: u32, slots: &mut impl Iterator<Item = Slot>) -> ClusterView {
    let destination = |d: &Destination| DestinationView {
        id: d.id.clone(),
        slot: slots.next().unwrap(),
        address: d.address.clone(),
        host: d.host.clone().unwrap_or_else(|| d.address.authority()).into(),
        endpoint: Endpoint::Address(d.address.literal().unwrap()),
        weight: d.weight,
        affinity_key: affinity::key(d.id.as_str()).into(),
        because: Because::Health,
        is_gated: false,
        share: model::ratio::Ratio::ONE,
        max_connections: d.max_connections,
    };
    ClusterView {
        id: cluster.id.clone(),
        config: Arc::new(cluster.clone()),
        compat: cluster.compat,
        destinations: cluster.destinations.iter().map(destination).collect(),
        available: (0..u32::try_from(cluster.destinations.len()).unwrap()).collect(),
        picker: Picker::new(cluster, &Policies::new()),
        affinity: cluster.session_affinity.clone(),
        retry: cluster.retry.clone(),
        queue: ClusterView::queue_of(cluster),
        timeouts: cluster.timeouts,
        host: cluster.host,
        http: cluster.traffic_http(),
        needs: Needs::Failures,
        budget,
    }
}
