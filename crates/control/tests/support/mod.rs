//! A process made by hand, and clients that speak to its API over real sockets.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use control::{Command, Context, Instance, Listeners, Process, Published, Vitals};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use model::active::{ActiveCheck, ActivePolicy, ProbeKind, ProbeRequest, ProbeRound, ProbeStart, StatusRange};
use model::available::{AvailablePolicy, Because};
use model::cluster::{Cluster, Compat, HealthCheck, UpstreamHost, UpstreamTls};
use model::config::{AccessLog, Config, Control, ControlSocket, Drain};
use model::destination::Destination;
use model::event::{Cause, Event, EventKind, Evidence, Seen, Transition};
use model::health::{CheckKind, Health, HealthPair, Switch};
use model::id::{DestinationKey, Revision, Slot};
use model::outcome::FailureKind;
use model::time::Timestamp;
use model::view::{ClusterHealth, Counter, DestinationHealth, HealthView, NodeStatus};
use serde_json::Value;
use telemetry::journal::Journal;
use telemetry::metrics::Metrics;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{mpsc, oneshot};

/// Nothing in a test may take longer.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What the fake process says; changed by the tests.
#[derive(Clone)]
pub struct Fake(Arc<Mutex<State>>);

struct State {
    published: Published,
    vitals: Vitals,
    core_ran_at: Option<Timestamp>,
}

impl Process for Fake {
    fn published(&self) -> Published {
        self.0.lock().unwrap().published.clone()
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_secs(100)
    }

    fn core_ran_at(&self) -> Option<Timestamp> {
        self.0.lock().unwrap().core_ran_at
    }

    fn in_flight(&self, slot: Slot) -> u32 {
        slot.0
    }

    fn vitals(&self) -> Vitals {
        self.0.lock().unwrap().vitals.clone()
    }
}

impl Fake {
    pub fn vitals_are(&self, vitals: Vitals) {
        self.0.lock().unwrap().vitals = vitals;
    }

    pub fn core_ran(&self, at: Timestamp) {
        self.0.lock().unwrap().core_ran_at = Some(at);
    }

    pub fn publish(&self, change: impl FnOnce(&mut Config, &mut HealthView)) {
        let mut state = self.0.lock().unwrap();
        let mut config = (*state.published.config).clone();
        let mut health = (*state.published.health).clone();
        change(&mut config, &mut health);
        state.published = Published { config: Arc::new(config), health: Arc::new(health) };
    }
}

/// A served API.
pub struct Served {
    pub process: Fake,
    pub journal: Arc<Journal>,
    pub context: Arc<Context>,
    pub commands: mpsc::Receiver<Command>,
    pub address: std::net::SocketAddr,
    pub socket: PathBuf,
    _folder: tempfile::TempDir,
    _stop: oneshot::Sender<()>,
}

/// Serves the API of a process with two clusters: `api` (probed) with `a` and `b`, and `cluster1` (no checks) with
/// `cluster1/destination1` at an IPv6 address.
pub fn serve() -> Served {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("run").join("control.sock");
    let control = Control {
        address: ([127, 0, 0, 1], 0).into(),
        names: vec!["lb1.test".to_owned()],
        socket: ControlSocket::Path(socket.clone()),
        users: vec![],
        token_file: Some(folder.path().join("token")),
    };
    std::fs::write(folder.path().join("token"), "s3cret\n").unwrap();
    let listeners = Listeners::bind(&control).unwrap();
    let address = listeners.tcp.local_addr().unwrap();
    let published = Published { config: Arc::new(config(control)), health: Arc::new(health()) };
    let process = Fake(Arc::new(Mutex::new(State { published, vitals: Vitals::default(), core_ran_at: None })));
    let metrics = Metrics::new();
    let journal = Journal::new(Arc::clone(&metrics));
    let (sender, commands) = mpsc::channel(1);
    let context = Context::new(process.clone(), Arc::clone(&journal), metrics, Instance::named("5eed"), sender);
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async {
        let _ = stopped.await;
    };
    tokio::spawn(control::serve(Arc::clone(&context), listeners, stopped));
    Served { process, journal, context, commands, address, socket, _folder: folder, _stop: stop }
}

impl Served {
    /// GET over TCP, body read whole.
    pub async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[]).await
    }

    /// A request over TCP, body read whole.
    pub async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        answer(self.open(method, path, headers).await).await
    }

    /// A request over TCP, body not read yet.
    pub async fn open(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Response<Incoming> {
        send(TcpStream::connect(self.address).await.unwrap(), method, path, headers).await
    }

    /// A request over the unix socket, body read whole.
    pub async fn ask_unix(&self, method: &str, path: &str) -> Answer {
        answer(send(unix(&self.socket).await, method, path, &[]).await).await
    }

    /// Appends a transition of `api/a` with this number.
    pub fn transition(&self, revision: u64) {
        self.append(Event {
            revision: Revision(revision),
            at: Timestamp::from_secs(90),
            kind: EventKind::Transition(transition()),
        });
    }

    /// Appends an event to the journal, as part of what is published now.
    pub fn append(&self, event: Event) {
        self.journal.append(event, &self.process.published().health);
    }
}

pub async fn unix(socket: &Path) -> UnixStream {
    UnixStream::connect(socket).await.unwrap()
}

/// An answer, read whole.
pub struct Answer {
    pub status: u16,
    pub content_type: String,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

async fn send<S>(stream: S, method: &str, path: &str, headers: &[(&str, &str)]) -> Response<Incoming>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let host = headers.iter().find(|(name, _)| *name == "host").map_or("localhost", |(_, host)| host);
    let mut request = Request::builder().method(method).uri(path).header("host", host);
    for (name, value) in headers.iter().filter(|(name, _)| *name != "host") {
        request = request.header(*name, *value);
    }
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    tokio::time::timeout(PATIENCE, sender.send_request(request)).await.unwrap().unwrap()
}

async fn answer(response: Response<Incoming>) -> Answer {
    let status = response.status().as_u16();
    let content_type = response.headers().get("content-type").map_or("", |value| value.to_str().unwrap()).to_owned();
    let body = tokio::time::timeout(PATIENCE, response.into_body().collect()).await.unwrap().unwrap();
    Answer { status, content_type, text: String::from_utf8(body.to_bytes().to_vec()).unwrap() }
}

/// Reads a stream until `enough` holds; what was read.
pub async fn read_until(body: &mut Incoming, enough: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    while !enough(&text) {
        let frame = tokio::time::timeout(PATIENCE, body.frame()).await.expect("in time").expect("more").unwrap();
        text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
    text
}

pub fn transition() -> Transition {
    Transition {
        destination: DestinationKey::new("api", "a"),
        check: CheckKind::Active,
        from: Health::Healthy,
        to: Health::Unhealthy,
        cause: Cause::Probe { policy: "ConsecutiveFailures".to_owned() },
        evidence: Evidence {
            failed: Some(2),
            limit: Some(2.0),
            last: vec![Seen {
                at: Timestamp::from_secs(89),
                class: None,
                failure: Some(FailureKind::Status),
                status: Some(500),
            }],
            ..Evidence::default()
        },
    }
}

fn config(control: Control) -> Config {
    let destination = |id: &str, address: &str| Destination {
        id: id.into(),
        address: model::address::Url::parse(address).unwrap(),
        health: None,
        host: None,
        weight: 1,
        max_fails: None,
        tier: Default::default(),
        max_connections: None,
    };
    let cluster = |id: &str, active, destinations| Cluster {
        id: id.into(),
        compat: Compat::None,
        load_balancing: model::balancing::LoadBalancing::default(),
        session_affinity: None,
        health_check: HealthCheck {
            available_destinations_policy: AvailablePolicy::HealthyOrPanic,
            guards: Default::default(),
            active,
            passive: None,
        },
        retry: model::retry::RetryRules::native(),
        queue: Default::default(),
        timeouts: model::timeouts::Timeouts::NATIVE,
        tls: UpstreamTls::default(),
        host: UpstreamHost::default(),
        http: Default::default(),
        outbound: Default::default(),
        family: Default::default(),
        metadata: std::collections::BTreeMap::default(),
        destinations,
    };
    let probed = vec![destination("a", "http://10.0.0.11:8000/"), destination("b", "https://b.test/")];
    Config {
        workers: None,
        control,
        listeners: vec![],
        routes: vec![],
        clusters: vec![
            cluster("api", Some(active()), probed),
            cluster("cluster1", None, vec![destination("cluster1/destination1", "http://[fd00::1]:8080/")]),
        ],
        drain: Drain::default(),
        access_log: AccessLog::Off,
        answers: Default::default(),
        dns: Default::default(),
        recorder: None,
    }
}

fn active() -> ActiveCheck {
    ActiveCheck {
        kind: ProbeKind::Http,
        interval: Duration::from_secs(5),
        unhealthy_interval: Duration::from_secs(5),
        timeout: Duration::from_secs(2),
        policy: ActivePolicy::ConsecutiveFailures { threshold: 2 },
        confirm_interval: Duration::from_secs(1),
        start: ProbeStart::ProbeFirst,
        round: ProbeRound::Destination,
        request: ProbeRequest {
            method: "GET".to_owned(),
            path: None,
            query: None,
            host: None,
            headers: vec![],
            expect_statuses: vec![StatusRange::SUCCESS],
            expect_body: None,
            http: None,
            service: None,
            healthy_threshold: 1,
        },
    }
}

fn health() -> HealthView {
    let destination = |id: &str, slot| DestinationHealth {
        id: id.into(),
        slot: Slot(slot),
        health: HealthPair::new(Health::Unknown, Health::Unknown),
        because: Because::Health,
        is_available: true,
        status: NodeStatus::Healthy,
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
    };
    let sick = DestinationHealth {
        health: HealthPair::new(Health::Unhealthy, Health::Unknown),
        because: Because::Unhealthy,
        is_available: false,
        status: NodeStatus::MostlyUnhealthy,
        counter: Counter { success: 1, http_failure: 0, tcp_failure: 0, timeout_failure: 0 },
        probed_at: Some(Timestamp::from_secs(98)),
        probe_status: Some(200),
        next_probe_at: Some(Timestamp::from_secs(101)),
        changed_at: Some(Timestamp::from_secs(90)),
        last_transition: Some(Arc::new(transition())),
        ..destination("a", 0)
    };
    let waiting = DestinationHealth { status: NodeStatus::Unknown, ..destination("b", 1) };
    HealthView {
        revision: Revision(0),
        at: Timestamp::from_millis(99_990),
        clusters: vec![
            Arc::new(ClusterHealth {
                id: "api".into(),
                active: Switch::On,
                passive: Switch::Off,
                destinations: vec![sick, waiting],
                available: vec![1],
                is_panic: false,
            }),
            Arc::new(ClusterHealth {
                id: "cluster1".into(),
                active: Switch::Off,
                passive: Switch::Off,
                destinations: vec![destination("cluster1/destination1", 2)],
                available: vec![0],
                is_panic: false,
            }),
        ],
    }
}
