//! Destinations behind names, with a name server that fails in every way: addresses known stay in use, a new one is
//! proven before it is trusted, and a name that does not resolve holds nothing else up.
//! (haproxy/haproxy #51, coredns/coredns #715 and #1202)

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use end_to_end::process::{Lazaret, free_address, get, poll};
use nix::sys::signal::Signal;
use testkit::destination::{Destination, Moment, answer};
use testkit::name_server::{NameServer, Says};

/// Says its address; `/health` answers with a status that a test turns.
struct Place {
    destination: Destination,
    health: Arc<AtomicU16>,
}

impl Place {
    fn start(ip: [u8; 4], port: u16, health: u16) -> Self {
        let health = Arc::new(AtomicU16::new(health));
        let turned = Arc::clone(&health);
        let destination = Destination::start_on(SocketAddr::from((ip, port)), move |moment| match moment {
            Moment::Accepted => Vec::new(),
            Moment::Request(request) if request.message.target() == "/health" => {
                answer(turned.load(Ordering::SeqCst), "")
            }
            Moment::Request(_) => answer(200, &format!("{ip:?}")),
        });
        Self { destination, health }
    }

    fn served(&self) -> usize {
        self.destination.requests_to("/").len()
    }
}

fn config(server: &NameServer, port: u16) -> String {
    format!(
        "dns: {{servers: [\"{}\"], min_ttl: 1s, max_ttl: 5s}}\nroutes:\n  good: {{match: {{path: /good}}, cluster: good}}\n  \
         all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}\nclusters:\n  app:\n    timeouts: {{connect: 500ms}}\n    \
         health_check: {{available_destinations_policy: HealthyAndUnknown, active: {{interval: 500ms, unhealthy_interval: \
         500ms, timeout: 400ms, threshold: 2, healthy_threshold: 3, confirm_interval: 100ms, path: /health}}}}\n    \
         destinations: {{a: {{address: \"http://app.test:{port}/\"}}}}\n  good:\n    destinations: {{g: {{address: \
         \"http://127.0.0.9:{port}/\"}}}}\n",
        server.addr()
    )
}

#[test]
fn failures_of_the_name_server_keep_the_address_and_a_new_one_must_prove_itself() {
    let port = free_address().port();
    let (old, new) = (Place::start([127, 0, 0, 1], port, 200), Place::start([127, 0, 0, 2], port, 500));
    let server = NameServer::start();
    server.say("app.test", Says::addresses(&["127.0.0.1"], 1));
    let lazaret = Lazaret::start(&config(&server, port));
    lazaret.wait_until("a is Healthy", || lazaret.health("app", "a") == "healthy/unknown");
    let seen = old.destination.requests_to("/health");
    let host = seen[0].message.value("host");
    assert_eq!(host, Some(format!("app.test:{port}")), "the Host of probes is the name");
    for says in [Says::NoName, Says::Failure, Says::Silence] {
        let asked = server.asked("app.test");
        server.say("app.test", says.clone());
        lazaret.wait_until("it was asked again", || server.asked("app.test") > asked + 1);
        for _ in 0..20 {
            assert_eq!(get(lazaret.proxy, "/").map(|answer| answer.status), Some(200), "{says:?}");
        }
        assert_eq!(lazaret.health("app", "a"), "healthy/unknown", "{says:?}");
    }

    // One more address, and a sick one: it does not inherit the health of the name.
    server.say("app.test", Says::addresses(&["127.0.0.1", "127.0.0.2"], 1));
    lazaret.wait_until("the new one is sick", || lazaret.health("app", "a%5B127.0.0.2%5D") == "unhealthy/unknown");
    assert_eq!(lazaret.health("app", "a%5B127.0.0.1%5D"), "healthy/unknown", "the other keeps what it had");
    for _ in 0..20 {
        assert_eq!(get(lazaret.proxy, "/").map(|answer| answer.body), Some("[127, 0, 0, 1]".to_owned()));
    }
    assert_eq!(new.served(), 0, "it waited for its first probe and failed it");
    let lost = |one: &serde_json::Value| one["cause"]["kind"] == "address_changed";
    assert!(!lazaret.transitions("a").iter().any(lost), "{:?}", lazaret.transitions("a"));

    new.health.store(200, Ordering::SeqCst);
    lazaret.wait_until("the new one is well", || lazaret.health("app", "a%5B127.0.0.2%5D") == "healthy/unknown");
    assert!(poll(Duration::from_secs(5), || {
        let _ = get(lazaret.proxy, "/");
        new.served() > 0
    }));
}

#[test]
fn a_name_server_that_never_answers_holds_nothing_up_and_the_name_recovers_with_it() {
    let port = free_address().port();
    let (place, _good) = (Place::start([127, 0, 0, 3], port, 200), Place::start([127, 0, 0, 9], port, 200));
    let server = NameServer::start();
    server.say("app.test", Says::Silence);
    let mut lazaret = Lazaret::start(&config(&server, port));
    let threads = |lazaret: &Lazaret| {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", lazaret.process.id()));
        tasks.map(Iterator::count).unwrap_or_default()
    };
    let before = threads(&lazaret);
    let mut slowest = Duration::ZERO;
    for _ in 0..100 {
        let start = Instant::now();
        assert_eq!(get(lazaret.proxy, "/good").map(|answer| answer.status), Some(200));
        slowest = slowest.max(start.elapsed());
    }
    assert!(slowest < Duration::from_secs(1), "a request to the good cluster took {slowest:?}");
    assert_eq!(get(lazaret.proxy, "/").map(|answer| answer.status), Some(503), "nobody is there, and that at once");
    let shown = lazaret.destination("app", "a");
    assert_eq!(shown["because"].as_str(), Some("no_address"), "{shown}");
    assert!(threads(&lazaret) <= before + 1, "lookups that hang take no threads");

    server.say("app.test", Says::addresses(&["127.0.0.3"], 1));
    lazaret.wait_until("the name has recovered", || get(lazaret.proxy, "/").is_some_and(|answer| answer.status == 200));
    assert!(place.served() > 0);
    server.say("app.test", Says::Silence);
    lazaret.process.signal(Signal::SIGTERM);
    let _ = lazaret.process.wait(Duration::from_secs(5));
}

#[test]
fn listeners_are_open_while_the_start_waits_for_a_silent_name_server_and_a_stop_is_obeyed() {
    let port = free_address().port();
    let _good = Place::start([127, 0, 0, 9], port, 200);
    let server = NameServer::start();
    server.say("app.test", Says::Silence);
    let is_open = |lazaret: &Lazaret| TcpStream::connect(lazaret.proxy).is_ok();
    let lazaret = Lazaret::spawn(&config(&server, port));
    lazaret.wait_until("the listener is open", || is_open(&lazaret));
    assert!(
        !lazaret.process.output().contains("control API"),
        "it still waits for names: {}",
        lazaret.process.output()
    );
    assert_eq!(
        get(lazaret.proxy, "/good").map(|answer| answer.status),
        Some(200),
        "who came early waits, and is served"
    );

    let mut stopped = Lazaret::spawn(&config(&server, port));
    stopped.wait_until("the listener is open", || is_open(&stopped));
    stopped.process.signal(Signal::SIGTERM);
    let status = stopped.process.wait(Duration::from_secs(10));
    assert!(status.success(), "{}", stopped.process.output());
}
