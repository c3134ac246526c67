//! Clusters, snapshots and a driver's shared side for tests of the machine.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod words;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use balance::{Picker, Policies};
use exchange::limit::{Buckets, ClientKey, InFlight, Pace, Rule};
use exchange::snapshot::{ClusterView, DestinationView, Endpoint, Needs, RouteView, Snapshot};
use exchange::step::{Cost, Places, Refused};
use exchange::{Exchange, Input, Shared, Step, Worker};
use model::address::{Scheme, Url};
use model::available::{AvailablePolicy, Because};
use model::balancing::LoadBalancing;
use model::cluster::{Cluster, Compat, HealthCheck, UpstreamHost, UpstreamTls};
use model::config::{AccessLog, Config, Control, ControlSocket, Drain};
use model::destination::Destination;
use model::id::{Revision, RouteId, Slot};
use model::outcome::{AttemptEnd, FailureKind, Progress};
use model::request::{BodyFacts, Fields, Method, NoFields, RequestFacts};
use model::retry::RetryRules;
use model::route::{Route, RouteAction, RouteMatch};
use model::time::Timestamp;
use model::timeouts::Timeouts;
use model::view::{ClusterHealth, HealthView};

/// A cluster of destinations with these ids, each of weight 1; RoundRobin, so that the order is known under nginx.
pub fn cluster(compat: Compat, ids: &[&str]) -> Cluster {
    Cluster {
        id: "c".into(),
        compat,
        load_balancing: LoadBalancing::FirstAlphabetical,
        session_affinity: None,
        health_check: HealthCheck {
            available_destinations_policy: AvailablePolicy::HealthyAndUnknown,
            guards: Default::default(),
            active: None,
            passive: None,
        },
        retry: RetryRules::native(),
        queue: Default::default(),
        timeouts: Timeouts::NATIVE,
        tls: UpstreamTls::default(),
        host: UpstreamHost::Destination,
        http: Default::default(),
        outbound: Default::default(),
        family: Default::default(),
        metadata: BTreeMap::new(),
        destinations: ids
            .iter()
            .map(|id| Destination {
                id: (*id).into(),
                address: Url::parse("http://127.0.0.1:1/").unwrap(),
                health: None,
                host: None,
                weight: 1,
                max_fails: None,
                tier: Default::default(),
                max_connections: None,
            })
            .collect(),
    }
}

/// A route that sends everything to the cluster.
pub fn route(timeout: Option<Duration>) -> Route {
    Route {
        id: RouteId::from("all"),
        order: 0,
        matcher: RouteMatch::default(),
        action: RouteAction::Cluster(Some("c".into())),
        timeout,
        max_request_body: None,
        policy: Default::default(),
    }
}

/// What of a destination's health matters to the machine.
#[derive(Clone, Copy, Debug)]
pub struct State {
    pub slot: Slot,
    pub because: Because,
    pub is_gated: bool,
}

/// A view of the cluster with these destinations available.
pub fn view(cluster: &Cluster, states: &[State], available: Vec<u32>) -> ClusterView {
    ClusterView {
        id: cluster.id.clone(),
        config: Arc::new(cluster.clone()),
        compat: cluster.compat,
        destinations: cluster
            .destinations
            .iter()
            .zip(states)
            .map(|(destination, state)| DestinationView {
                id: destination.id.clone(),
                slot: state.slot,
                address: destination.address.clone(),
                host: destination.address.authority().into(),
                endpoint: Endpoint::Address(destination.address.literal().unwrap()),
                weight: destination.weight,
                affinity_key: balance::affinity::key(destination.id.as_str()).into(),
                because: state.because,
                is_gated: state.is_gated,
                share: model::ratio::Ratio::ONE,
                max_connections: destination.max_connections,
            })
            .collect(),
        available,
        picker: Picker::new(cluster, &Policies::new()),
        affinity: cluster.session_affinity.clone(),
        retry: cluster.retry.clone(),
        queue: ClusterView::queue_of(cluster),
        timeouts: cluster.timeouts,
        host: cluster.host,
        http: cluster.traffic_http(),
        needs: Needs::Failures,
        budget: 0,
    }
}

/// A view of the cluster with all destinations available.
pub fn whole(cluster: &Cluster) -> ClusterView {
    let n = u32::try_from(cluster.destinations.len()).unwrap();
    let states: Vec<State> =
        (0..n).map(|slot| State { slot: Slot(slot), because: Because::Health, is_gated: false }).collect();
    view(cluster, &states, (0..n).collect())
}

/// A view built from what the health core says.
pub fn of_health(cluster: &Cluster, health: &ClusterHealth) -> ClusterView {
    let states: Vec<State> =
        health.destinations.iter().map(|d| State { slot: d.slot, because: d.because, is_gated: d.is_gated }).collect();
    view(cluster, &states, health.available.clone())
}

/// A snapshot of one cluster behind these routes.
pub fn snapshot(view: ClusterView, routes: &[Route]) -> Snapshot {
    snapshot_of(vec![view], routes)
}

/// A snapshot of these clusters behind these routes.
pub fn snapshot_of(views: Vec<ClusterView>, routes: &[Route]) -> Snapshot {
    let config = Config {
        workers: None,
        control: Control {
            address: ([127, 0, 0, 1], 9090).into(),
            names: Vec::new(),
            socket: ControlSocket::Off,
            users: vec![],
            token_file: None,
        },
        listeners: vec![],
        routes: routes.to_vec(),
        clusters: views.iter().map(|view| (*view.config).clone()).collect(),
        drain: Drain::default(),
        access_log: AccessLog::Off,
        answers: Default::default(),
        dns: Default::default(),
        recorder: None,
    };
    Snapshot {
        revision: Revision(1),
        health: Arc::new(HealthView::default()),
        table: Arc::new(::route::Table::new(routes)),
        routes: routes.iter().map(|route| RouteView::of(route, &config)).collect(),
        clusters: views.into_iter().map(Arc::new).collect(),
        config: Arc::new(config),
    }
}

/// The shared side: a budget that can be emptied, gates that can be taken.
#[derive(Debug, Default)]
pub struct Board {
    pub spent: Cell<u32>,
    pub is_broke: Cell<bool>,
    pub taken: RefCell<BTreeSet<u32>>,
    pub failing: RefCell<BTreeSet<u32>>,
    pub now: Cell<Timestamp>,
    pub buckets: RefCell<Option<Buckets>>,
    pub in_flight: RefCell<InFlight>,
    pub places: RefCell<BTreeMap<u32, u32>>,
    pub is_queued: Cell<bool>,
    /// Requests in flight and times to first byte, by slot.
    pub loads: RefCell<BTreeMap<u32, u32>>,
    pub latencies: RefCell<BTreeMap<u32, Duration>>,
    /// Somebody else is always quicker to take a place.
    pub is_overtaken: Cell<bool>,
    /// When the worker went on after it had stood still.
    pub woke: Cell<Timestamp>,
    /// How often a place was asked for.
    pub asked: Cell<u32>,
}

impl Shared for Board {
    fn in_flight(&self, slot: Slot) -> u32 {
        self.loads.borrow().get(&slot.0).copied().unwrap_or(0)
    }

    fn latency(&self, slot: Slot) -> Option<Duration> {
        self.latencies.borrow().get(&slot.0).copied()
    }

    fn withdraw(&self, _: u32, cost: Cost) -> bool {
        assert_ne!(cost.0, 0);
        self.spent.set(self.spent.get() + cost.0);
        !self.is_broke.get()
    }

    fn refund(&self, _: u32, cost: Cost) {
        self.spent.set(self.spent.get() - cost.0);
    }

    fn can_pay(&self, _: u32, _: Cost) -> bool {
        !self.is_broke.get()
    }

    fn claim(&self, slot: Slot, places: Option<Places>) -> Result<(), Refused> {
        if self.taken.borrow().contains(&slot.0) {
            return Err(Refused::Gate);
        }
        if places.is_some_and(|places| !self.occupy(slot, places)) {
            return Err(Refused::Place);
        }
        self.taken.borrow_mut().insert(slot.0);
        Ok(())
    }

    fn is_held(&self, slot: Slot, _: Timestamp) -> bool {
        self.taken.borrow().contains(&slot.0)
    }

    fn is_full(&self, slot: Slot, places: Places) -> bool {
        self.places.borrow().get(&slot.0).is_some_and(|taken| *taken >= places.most.get())
    }

    fn occupy(&self, slot: Slot, places: Places) -> bool {
        self.asked.set(self.asked.get() + 1);
        if self.is_overtaken.get() {
            return false;
        }
        let mut taken = self.places.borrow_mut();
        let taken = taken.entry(slot.0).or_default();
        let is_free = *taken < places.most.get();
        *taken += u32::from(is_free);
        is_free
    }

    fn is_queued(&self, _: u32) -> bool {
        self.is_queued.get()
    }

    fn is_failing(&self, slot: Slot) -> bool {
        self.failing.borrow().contains(&slot.0)
    }

    fn take(&self, rule: Rule, client: ClientKey, pace: Pace) -> Result<(), Duration> {
        let mut buckets = self.buckets.borrow_mut();
        buckets.get_or_insert_with(|| Buckets::new(100)).take(self.now.get(), rule, client, pace)
    }

    fn is_awake_since(&self, since: Timestamp) -> bool {
        since >= self.woke.get()
    }

    fn enter(&self, rule: Rule, client: ClientKey, most: u32) -> bool {
        self.in_flight.borrow_mut().enter(rule, client, most)
    }
}

/// A request with this method and path, and a Cookie line.
pub struct Request<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub cookie: Option<&'a str>,
}

impl Fields for Request<'_> {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        if let Some(cookie) = self.cookie
            && name == "cookie"
        {
            visit(cookie.as_bytes());
        }
    }
}

impl<'a> Request<'a> {
    pub fn get() -> Self {
        Self { method: "GET", path: "/", cookie: None }
    }

    pub fn method(method: &'a str) -> Self {
        Self { method, ..Self::get() }
    }

    pub fn facts(&'a self) -> RequestFacts<'a> {
        RequestFacts {
            method: Method::from_bytes(self.method.as_bytes()),
            method_name: self.method,
            scheme: Scheme::Http,
            host: "h",
            port: 80,
            path: self.path,
            query: None,
            fields: if self.cookie.is_some() { self } else { &NoFields },
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
            body: BodyFacts::None,
            is_upgrade: false,
            attempt: 1,
        }
    }
}

/// A machine with all that it is called with.
pub struct Walk<'s> {
    pub exchange: Exchange,
    pub now: Timestamp,
    pub snapshot: &'s Snapshot,
    pub worker: Worker,
    pub board: &'s Board,
}

impl<'s> Walk<'s> {
    pub fn begin(request: &Request<'_>, snapshot: &'s Snapshot, board: &'s Board) -> (Self, Step) {
        let now = Timestamp::from_secs(1);
        let mut worker = Worker::new(1);
        let (exchange, step) = Exchange::begin(now, &request.facts(), snapshot, &mut worker, board);
        (Self { exchange, now, snapshot, worker, board }, step)
    }

    pub fn handle(&mut self, input: Input) -> Step {
        self.exchange.handle(self.now, input, self.snapshot, &mut self.worker, self.board)
    }
}

pub fn failed(progress: Progress, failure: FailureKind) -> AttemptEnd {
    AttemptEnd {
        progress,
        failure: Some(failure),
        status: None,
        call: None,
        retry_after: false,
        response_bytes_seen: false,
        client_gone: false,
        reused: progress == Progress::StaleReuse,
    }
}

pub fn came(status: u16) -> AttemptEnd {
    AttemptEnd {
        progress: Progress::Forwarded,
        failure: None,
        status: Some(status),
        call: None,
        retry_after: false,
        response_bytes_seen: true,
        client_gone: false,
        reused: false,
    }
}
