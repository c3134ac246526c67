//! Clients that leave, uploads that they cut, and answers that say the client is at fault are no failure of the destination:
//! it stays in service whatever their number, and the log tells them apart from 5xx. (zalando/skipper #708,
//! caddyserver/caddy #1135)
//!
//! 60 of each kind; `LAZARET_LONG=1`: 500.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use end_to_end::clients::http2;
use end_to_end::control::is_long;
use end_to_end::process::Lazaret;
use h2::Reason;
use http::Request;
use testkit::client::Client;
use testkit::destination::{Act, Destination, Moment, answer};

/// How long the destination takes, and when clients give up.
const SLOW: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_millis(100);
/// Clients at a time.
const TOGETHER: usize = 20;

#[test]
fn whatever_clients_do_the_destination_stays_in_service() {
    let count = if is_long() { 500 } else { 60 };
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) => match request.message.target().strip_prefix("/status/") {
            Some(status) => answer(status.parse().expect("a status"), "no"),
            None => [vec![Act::ReadBody, Act::Pause(SLOW)], answer(200, "slow")].concat(),
        },
    });
    let lazaret = start(destination.addr());

    many(count, |_| {
        let mut client = Client::connect(lazaret.proxy);
        client.send("GET /reset HTTP/1.1\r\nHost: a.test\r\n\r\n");
        std::thread::sleep(PATIENCE);
        client.reset();
    });
    many(count, |_| {
        let mut client = Client::connect(lazaret.proxy);
        client.send("GET /left HTTP/1.1\r\nHost: a.test\r\n\r\n");
        std::thread::sleep(PATIENCE);
    });
    cancel_streams(lazaret.proxy, count);
    many(count, |_| {
        let mut client = Client::connect(lazaret.proxy);
        client.send("POST /cut HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000\r\n\r\n");
        client.send("x".repeat(50_000));
        std::thread::sleep(PATIENCE);
    });
    many(count, |number| {
        let status = [404, 413, 429][number % 3];
        assert_eq!(Client::connect(lazaret.proxy).get(&format!("/status/{status}")).status(), status);
    });

    assert_eq!(Client::connect(lazaret.proxy).get("/after").status(), 200);
    for path in ["/reset", "/left", "/stream", "/cut"] {
        lazaret.wait_until(&format!("{path} is in the log"), || statuses(&lazaret, path).len() == count);
        assert!(statuses(&lazaret, path).iter().all(|status| *status == 499), "{path}: {:?}", statuses(&lazaret, path));
    }
    assert_eq!(lazaret.health("app", "a").split('/').nth(1), Some("healthy"), "{}", lazaret.destination("app", "a"));
    assert_eq!(lazaret.transitions("a").iter().filter(|one| one["to"] == "unhealthy").count(), 0);
    for class in ["app_fail", "conn_fail", "timeout", "cut"] {
        let label = format!("outcome=\"{class}\"");
        assert_eq!(lazaret.metric("lazaret_attempts_total", &["destination=\"a\"", &label]), 0.0, "{class}");
    }
    // A 429 asks for less, and is no failure.
    let overload = lazaret.metric("lazaret_attempts_total", &["destination=\"a\"", "outcome=\"overload\""]);
    assert_eq!(overload, (0..count).filter(|number| number % 3 == 2).count() as f64);
}

fn start(destination: SocketAddr) -> Lazaret {
    Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    health_check:\n      \
         passive: {{policies: [{{name: FailureRate, rate_limit: 0.3, window: 10s}}, {{name: ConsecutiveErrors}}, {{name: \
         Burst}}]}}\n    destinations: {{a: {{address: \"http://{destination}/\"}}}}\n"
    ))
}

fn statuses(lazaret: &Lazaret, path: &str) -> Vec<u64> {
    let lines = lazaret.access_log();
    lines.iter().filter(|line| line["path"] == path).filter_map(|line| line["status"].as_u64()).collect()
}

/// Does it so often, some at a time.
fn many(count: usize, act: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..TOGETHER {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    act(number);
                }
            });
        }
    });
}

/// Streams of one connection that are cancelled while their answers are awaited (RFC 9113 8.1).
fn cancel_streams(proxy: SocketAddr, count: usize) {
    http2::run(async {
        let connection = http2::connect(proxy).await;
        let mut left = count;
        while left > 0 {
            let mut running = Vec::new();
            for _ in 0..left.min(TOGETHER) {
                let request = Request::get("http://a.test/stream").body(()).expect("a request");
                let mut requests = connection.requests.clone().ready().await.expect("room for a stream");
                running.push(requests.send_request(request, false).expect("a stream"));
            }
            tokio::time::sleep(PATIENCE).await;
            left -= running.len();
            for (_, mut send) in running {
                send.send_reset(Reason::CANCEL);
            }
        }
        // The resets leave before the connection does.
        let request = Request::get("http://a.test/status/404").body(()).expect("a request");
        let mut requests = connection.requests.clone().ready().await.expect("room for a stream");
        let (response, _) = requests.send_request(request, true).expect("a stream");
        assert_eq!(response.await.expect("an answer").status(), 404);
    });
}
