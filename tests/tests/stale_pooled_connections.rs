//! A destination that ends an idle connection in the very moment of its reuse costs no client an answer, is charged with
//! nothing, and a POST is not sent twice. (envoyproxy/envoy #1979, h2o/h2o #281, caddyserver/caddy #6452,
//! aether-lang-dev/aether #1838)
//!
//! The race against an idle timeout runs with one of 100 ms for 6 s; `LAZARET_LONG=1`: 1 s for 5 minutes. Ends after each
//! answer are tried with 600 requests each; `LAZARET_LONG=1`: 10 000.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::control::is_long;
use end_to_end::process::Lazaret;
use rustls::{ServerConfig, ServerConnection};
use testkit::certificates::Authority;
use testkit::client::Client;
use testkit::destination::{Act, Destination, Moment};
use testkit::message::Expect;

/// Clients and destinations of their own per method.
const PAIRS: usize = 6;

#[test]
fn requests_that_race_with_the_idle_timeout_of_the_destination_are_answered() {
    let (idle, time) = if is_long() { (1000, 300) } else { (100, 6) };
    let (idle, time) = (Duration::from_millis(idle), Duration::from_secs(time));
    let methods = ["GET", "HEAD", "POST"];
    let destinations: Vec<_> = (0..methods.len() * PAIRS).map(|_| Idle::start(idle)).collect();
    let lazaret = Arc::new(start(&destinations.iter().map(|one| one.address).collect::<Vec<_>>()));
    let clients: Vec<_> = (0..destinations.len())
        .map(|index| {
            let lazaret = Arc::clone(&lazaret);
            thread::spawn(move || sweep(lazaret.proxy, methods[index / PAIRS], index, idle, time))
        })
        .collect();
    let mut outcomes = [Outcome::default(), Outcome::default(), Outcome::default()];
    for (index, client) in clients.into_iter().enumerate() {
        outcomes[index / PAIRS].add(client.join().expect("a client does not panic"));
    }
    let [get, head, post] = outcomes;
    let total = get.ok + head.ok + post.ok + post.failures.len();
    lazaret.wait_until("every request has its line", || lazaret.access_log().len() >= total);
    let lines = lazaret.access_log();
    let stale = lines.iter().filter(|line| line["attempts"].as_array().is_some_and(|all| all.len() > 1)).count();
    println!("get {get:?} head {head:?} post {post:?}; {stale} of {} log lines have a second attempt", lines.len());

    for (method, outcome) in [("GET", &get), ("HEAD", &head)] {
        assert!(outcome.ok > 100, "{method}: {outcome:?}");
        assert_eq!(outcome.failures, Vec::<String>::new(), "{method}");
    }
    // A POST that met the end may have been applied: its client is told so. Nothing else may befall it.
    assert!(post.ok > 50, "{post:?}");
    for failure in &post.failures {
        assert!(failure.contains("502") && failure.contains("reused-connection-reset"), "{failure}");
    }
    let posts: usize = destinations[2 * PAIRS..].iter().map(|one| one.served.load(Ordering::SeqCst)).sum();
    assert!(posts <= post.ok + post.failures.len(), "{posts} POSTs came, {} were sent", post.ok + post.failures.len());
    // The race was really run, not always won.
    let raced = stale + post.failures.len();
    assert!(raced > 0, "no request met the end of its connection");
    // None of it is held against anybody: each destination's first failure would eject it.
    for index in 0..destinations.len() {
        assert_eq!(lazaret.health(&format!("c{index}"), "one"), "unknown/healthy", "c{index}");
    }
    let ejected = lazaret.transitions("one").into_iter().filter(|event| event["to"] == "unhealthy").count();
    assert_eq!(ejected, 0);
    for outcome in ["conn_fail", "app_fail", "timeout", "cut"] {
        let failed = lazaret.metric("lazaret_attempts_total", &[&format!("outcome=\"{outcome}\"")]);
        assert_eq!(failed, 0.0, "{outcome}");
    }
    assert_eq!(lazaret.metric("lazaret_retry_denied_total", &["reason=\"budget\""]), 0.0);
}

#[test]
fn a_connection_that_ends_after_each_answer_shows_to_no_client() {
    let total = if is_long() { 10_000 } else { 600 };
    let modes: Vec<(&str, Vec<Act>)> = vec![
        ("fin at once", vec![Act::Close]),
        ("reset", vec![Act::Reset]),
        ("fin after 1 ms", vec![Act::Pause(Duration::from_millis(1)), Act::Close]),
        ("fin after 5 ms", vec![Act::Pause(Duration::from_millis(5)), Act::Close]),
        ("fin after 20 ms", vec![Act::Pause(Duration::from_millis(20)), Act::Close]),
        ("reset after 1 ms", vec![Act::Pause(Duration::from_millis(1)), Act::Reset]),
    ];
    let destinations: Vec<_> = modes.iter().map(|(_, end)| ending(end.clone())).collect();
    let lazaret = start(&destinations.iter().map(Destination::addr).collect::<Vec<_>>());
    for (clients, requests) in [(1, total / 2), (50, total / 2)] {
        for (index, (mode, _)) in modes.iter().enumerate() {
            let before = destinations[index].requests().len();
            let sent = many(lazaret.proxy, index, clients, requests);
            let came = destinations[index].requests().len() - before;
            assert!(came <= 2 * sent, "{mode}: {came} requests came of {sent}");
        }
    }
    let attempts = |line: &serde_json::Value| line["attempts"].as_array().map_or(0, Vec::len);
    lazaret.wait_until("every request has its line", || lazaret.access_log().len() >= modes.len() * total / 50 * 50);
    let most = lazaret.access_log().iter().map(attempts).max();
    assert!(most <= Some(2), "a request was sent again more than once: {most:?} attempts");
    let resent = lazaret.access_log().iter().filter(|line| attempts(line) == 2).count();
    let counted = lazaret.metric("lazaret_stale_connections_total", &["reason=\""]);
    assert_eq!(counted, resent as f64, "each stale connection is counted once, with how it ended");
    for outcome in ["conn_fail", "app_fail", "timeout", "cut"] {
        assert_eq!(lazaret.metric("lazaret_attempts_total", &[&format!("outcome=\"{outcome}\"")]), 0.0, "{outcome}");
    }
}

#[test]
fn a_tls_connection_that_says_goodbye_and_stays_open_is_not_used_again() {
    let total = if is_long() { 10_000 } else { 200 };
    let authority = Authority::new();
    let tls = authority.issue(&["127.0.0.1"]).server_config();
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let ca = authority.write(folder.path());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("a bound listener has an address");
    let served = Arc::new(AtomicUsize::new(0));
    thread::spawn({
        let served = Arc::clone(&served);
        move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (tls, served) = (Arc::clone(&tls), Arc::clone(&served));
                thread::spawn(move || goodbye(stream, tls, &served));
            }
        }
    });
    let lazaret = Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: /c0}}, cluster: app}}}}\nclusters:\n  app:\n    retry: {{attempts: 1}}\n    tls: {{ca: \
         \"{}\"}}\n    destinations: {{one: {{address: \"https://{address}/\"}}}}\n",
        ca.display()
    ));
    let sent = many(lazaret.proxy, 0, 1, total / 2) + many(lazaret.proxy, 0, 50, total / 2);
    let came = served.load(Ordering::SeqCst);
    assert!((sent..=2 * sent).contains(&came), "{came} requests came of {sent}");
    assert_eq!(lazaret.metric("lazaret_attempts_total", &["outcome=\"app_fail\""]), 0.0);
}

/// Answers one request, says close_notify, and leaves the TCP connection as it is until the other side ends it.
fn goodbye(mut tcp: TcpStream, config: Arc<ServerConfig>, served: &AtomicUsize) {
    let _ = tcp.set_read_timeout(Some(Duration::from_secs(20)));
    let Ok(mut tls) = ServerConnection::new(config) else { return };
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    while !bytes.ends_with(b"\r\n\r\n") {
        match rustls::Stream::new(&mut tls, &mut tcp).read(&mut chunk) {
            Ok(0) | Err(_) => return,
            Ok(n) => bytes.extend_from_slice(&chunk[..n]),
        }
    }
    served.fetch_add(1, Ordering::SeqCst);
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    let _ = rustls::Stream::new(&mut tls, &mut tcp).write_all(answer);
    tls.send_close_notify();
    let _ = tls.complete_io(&mut tcp);
    while tcp.read(&mut chunk).is_ok_and(|n| n > 0) {}
}

/// A cluster `cN` behind `/cN` for each address. One attempt: what is sent again is not a retry.
fn start(addresses: &[SocketAddr]) -> Lazaret {
    let (mut routes, mut clusters) = (String::new(), String::new());
    for (index, address) in addresses.iter().enumerate() {
        routes += &format!("  c{index}: {{match: {{path: \"/c{index}\"}}, cluster: c{index}}}\n");
        clusters += &format!(
            "  c{index}:\n    retry: {{attempts: 1}}\n    timeouts: {{pool_idle: 60s}}\n    health_check: {{passive: {{policies: [{{name: \
             MaxFails, max_fails: 1, fail_timeout: 60s}}]}}}}\n    destinations: {{one: {{address: \"http://{address}/\"}}}}\n"
        );
    }
    Lazaret::start(&format!("routes:\n{routes}clusters:\n{clusters}"))
}

#[derive(Debug, Default)]
struct Outcome {
    ok: usize,
    failures: Vec<String>,
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.ok += other.ok;
        self.failures.extend(other.failures);
    }
}

/// Requests on one connection, each after a pause of about `idle`, from 0.5 % less to 0.5 % more.
fn sweep(proxy: SocketAddr, method: &str, index: usize, idle: Duration, time: Duration) -> Outcome {
    let mut outcome = Outcome::default();
    let mut client = Client::connect(proxy);
    let body = if method == "POST" { "Content-Length: 2\r\n\r\nhi" } else { "\r\n" };
    let expect = if method == "HEAD" { Expect::ResponseToHead } else { Expect::Response };
    let end = Instant::now() + time;
    for number in 0u32.. {
        client.send(format!("{method} /c{index} HTTP/1.1\r\nHost: a.test\r\n{body}"));
        let (message, result) = client.try_response(expect);
        match (message.status(), result) {
            (200, Ok(())) => outcome.ok += 1,
            (status, result) => {
                outcome.failures.push(format!("{status} {:?} {result:?}", message.value("proxy-status")));
                client = Client::connect(proxy);
            }
        }
        if Instant::now() > end {
            break;
        }
        thread::sleep(idle.mul_f64(0.995 + 0.001 * f64::from(number % 11)));
    }
    outcome
}

/// Answers each request, and ends a connection that was idle for `idle`.
struct Idle {
    address: SocketAddr,
    served: Arc<AtomicUsize>,
}

impl Idle {
    fn start(idle: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let served = Arc::new(AtomicUsize::new(0));
        thread::spawn({
            let served = Arc::clone(&served);
            move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    let served = Arc::clone(&served);
                    thread::spawn(move || serve(stream, idle, &served));
                }
            }
        });
        Self { address, served }
    }
}

fn serve(mut stream: TcpStream, idle: Duration, served: &AtomicUsize) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(idle));
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return,
            Ok(n) => bytes.extend_from_slice(&chunk[..n]),
            // Idle for too long, or reset.
            Err(_) => return,
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        if head.starts_with("POST") && body.len() < 2 {
            continue;
        }
        let content = if head.starts_with("HEAD") { "" } else { "ok" };
        served.fetch_add(1, Ordering::SeqCst);
        bytes.clear();
        if stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{content}").as_bytes()).is_err() {
            return;
        }
    }
}

/// Answers, does not say that it will close, and ends the connection.
fn ending(end: Vec<Act>) -> Destination {
    Destination::start(move |moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(_) => {
            let answer = Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec());
            [vec![answer], end.clone()].concat()
        }
    })
}

/// `requests` GETs by `clients` at once, which must all be answered. How many they were.
fn many(proxy: SocketAddr, index: usize, clients: usize, requests: usize) -> usize {
    let threads: Vec<_> = (0..clients)
        .map(|_| {
            thread::spawn(move || {
                let mut client = Client::connect(proxy);
                for number in 0..requests / clients {
                    let response = client.get(&format!("/c{index}"));
                    let got = (response.status(), response.text());
                    assert_eq!(got, (200, "hello".to_owned()), "mode {index}, request {number}");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("every request is answered");
    }
    requests / clients * clients
}
