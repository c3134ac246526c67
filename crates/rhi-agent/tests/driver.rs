//! The driver with a fake kernel and a small control API: what goes in by signals, polls and the status socket comes out
//! as addresses and answers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::vip::{Condition, FailurePolicy, OnExit, RhiConfig, Unreachable, UpstreamRef, Vip};
use rhi::AddressKey;
use rhi_agent::driver::{self, Hooks, Signal};
use rhi_agent::lock::LockError;
use rhi_agent::netlink::fake::Fake;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A running driver and everything around it.
struct Rig {
    kernel: Fake,
    state: Arc<Mutex<&'static str>>,
    signals: mpsc::Sender<Signal>,
    changed: mpsc::Sender<()>,
    file: Arc<Mutex<Result<RhiConfig, String>>>,
    config: RhiConfig,
    folder: PathBuf,
    driver: JoinHandle<Result<(), LockError>>,
}

const VIP: &str = "10.0.0.1";

impl Rig {
    async fn start(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("rhi-agent-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let interface = format!("rhi-{name}-{}", std::process::id());
        let state = Arc::new(Mutex::new("healthy"));
        let config = RhiConfig {
            poll_interval: Duration::from_millis(50),
            control_url: control_api(Arc::clone(&state)).await,
            timeout: Duration::from_secs(5),
            interface: interface.clone(),
            main_log: None,
            error_log: None,
            failure_policy: FailurePolicy { control_api_unreachable: Unreachable::Withdraw, max_failed_polls: 3 },
            healthy_states: vec!["healthy".to_owned()],
            on_exit: OnExit::Withdraw,
            status_socket: folder.join("status.sock"),
            vips: vec![vip(VIP)],
        };
        let kernel = Fake::with_interface(&interface);
        let (signals, received) = mpsc::channel(4);
        let (changed, changes) = mpsc::channel(1);
        let file = Arc::new(Mutex::new(Ok(config.clone())));
        let on_disk = Arc::clone(&file);
        let hooks = Hooks { load: Box::new(move || on_disk.lock().unwrap().clone()), reopen_logs: Box::new(|| {}) };
        let driver = tokio::spawn(driver::run(config.clone(), kernel.clone(), changes, received, hooks));
        Self { kernel, state, signals, changed, file, config, folder, driver }
    }

    fn socket(&self) -> &Path {
        &self.config.status_socket
    }

    fn held(&self) -> Vec<String> {
        let held = self.kernel.held(&self.config.interface);
        held.iter().map(|held| format!("{}/{}", held.address, held.prefix_len)).collect()
    }

    async fn wait(&self, what: &str, condition: impl Fn() -> bool) {
        for _ in 0..2000 {
            if condition() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("not within 10 s: {what}; held {:?}, calls {:?}", self.held(), self.kernel.calls());
    }

    async fn stop(self) -> Vec<String> {
        self.signals.send(Signal::Stop).await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(10), self.driver).await.unwrap();
        ended.unwrap().unwrap();
        let held = self.kernel.held(&self.config.interface);
        assert!(!self.config.status_socket.exists(), "the socket's file is left behind");
        std::fs::remove_dir_all(&self.folder).unwrap();
        held.iter().map(|held| held.address.to_string()).collect()
    }
}

fn vip(address: &str) -> Vip {
    Vip {
        address: address.parse().unwrap(),
        description: "the API".to_owned(),
        upstreams: vec![UpstreamRef { kind: "upstreams".to_owned(), id: "api".to_owned() }],
        condition: Condition::All,
    }
}

/// Answers every connection with one node in the state that the mutex holds.
async fn control_api(state: Arc<Mutex<&'static str>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let state = *state.lock().unwrap();
            tokio::spawn(async move {
                let mut request = [0; 2048];
                let _ = stream.read(&mut request).await;
                let body = format!(
                    r#"{{"name":"/apisix/upstreams/api","nodes":[{{"ip":"10.1.0.1","port":80,"status":"{state}"}}]}}"#
                );
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                let _ = stream.write_all(head.as_bytes()).await;
            });
        }
    });
    url
}

/// One request over the status socket: status and body.
async fn ask(socket: &Path, request: &str) -> (u16, String) {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    stream.write_all(format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}

#[tokio::test]
async fn a_vip_follows_its_upstream_and_leaves_with_the_daemon() {
    let rig = Rig::start("follow").await;
    rig.wait("announced", || rig.held() == ["10.0.0.1/32"]).await;
    *rig.state.lock().unwrap() = "unhealthy";
    rig.wait("withdrawn", || rig.held().is_empty()).await;
    *rig.state.lock().unwrap() = "healthy";
    rig.wait("announced again", || rig.held() == ["10.0.0.1/32"]).await;
    let foreign =
        AddressKey { interface: rig.config.interface.clone(), address: IpAddr::from([10, 9, 9, 9]), prefix_len: 32 };
    rig.kernel.put(&foreign);
    assert_eq!(rig.kernel.calls().len(), 3, "each change is made once");
    assert_eq!(rig.stop().await, ["10.9.9.9"]);
}

#[tokio::test]
async fn a_change_by_somebody_else_heals_and_a_refusal_is_retried() {
    let rig = Rig::start("heal").await;
    rig.wait("announced", || rig.held() == ["10.0.0.1/32"]).await;
    rig.kernel.refuse(Some("no buffer space"));
    rig.kernel.flush(&rig.config.interface);
    rig.changed.send(()).await.unwrap();
    rig.wait("tried three times", || rig.kernel.calls().len() >= 4).await;
    let (status, body) = ask(rig.socket(), &format!("GET /vips/{VIP}")).await;
    assert_eq!(status, 200);
    assert!(body.contains("no buffer space") && body.contains(r#""wanted":true"#), "{body}");
    let (_, body) = ask(rig.socket(), "GET /status").await;
    let document: apisix::rhi::RhiStatus = serde_json::from_str(&body).unwrap();
    assert!(document.failed_changes >= 3, "{body}");
    rig.kernel.refuse(None);
    rig.wait("healed", || rig.held() == ["10.0.0.1/32"]).await;
    assert_eq!(rig.stop().await, Vec::<String>::new());
}

#[tokio::test]
async fn the_status_socket_answers_and_reloads() {
    let rig = Rig::start("socket").await;
    rig.wait("announced", || rig.held() == ["10.0.0.1/32"]).await;
    let (status, body) = ask(rig.socket(), "GET /status").await;
    assert_eq!(status, 200);
    let document: apisix::rhi::RhiStatus = serde_json::from_str(&body).unwrap();
    assert_eq!((document.vips.len(), document.vips[0].announced), (1, true));
    assert_eq!((document.vips[0].reason.as_str(), document.vips[0].description.as_str()), ("healthy", "the API"));
    for (request, expected) in [
        ("GET /vips/10.0.0.2", 404),
        ("GET /vips/x", 400),
        ("GET /other", 404),
        ("POST /status", 405),
        ("GET /reload", 405),
    ] {
        assert_eq!(ask(rig.socket(), request).await.0, expected, "{request}");
    }

    let mut config = rig.config.clone();
    config.vips = vec![vip("10.0.0.2")];
    *rig.file.lock().unwrap() = Ok(config);
    assert_eq!(ask(rig.socket(), "POST /reload").await.0, 200);
    rig.wait("the new VIP in the old one's place", || rig.held() == ["10.0.0.2/32"]).await;

    *rig.file.lock().unwrap() = Err("rhi.yaml:1:1: no".to_owned());
    let (status, body) = ask(rig.socket(), "POST /reload").await;
    assert_eq!(status, 422);
    assert!(body.contains("rhi.yaml:1:1"), "{body}");
    assert!(ask(rig.socket(), "GET /status").await.1.contains(r#""config_stale":true"#));
    assert_eq!(rig.held(), ["10.0.0.2/32"]);
    assert_eq!(rig.stop().await, Vec::<String>::new());
}
