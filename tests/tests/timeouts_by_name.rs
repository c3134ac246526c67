//! Of all limits of time the shortest one fires, says its name in a 504, and is charged to the destination once; a client
//! that leaves is none of them. For clients of both versions. (dotnet/yarp #2662, #2581, #2950; RFC 9110 15.6.5, RFC 9209)

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use end_to_end::control::is_long;
use end_to_end::process::Lazaret;
use testkit::client::Client;
use testkit::destination::{Act, Destination, Moment, answer};

/// A limit that fires, the one that does not, and what a busy machine may add.
struct Times {
    short: Duration,
    sleep: Duration,
}

fn times() -> Times {
    let scale = if is_long() { 1_000 } else { 400 };
    Times { short: Duration::from_millis(scale), sleep: Duration::from_millis(scale * 4) }
}

const LATE: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug)]
enum Speaks {
    Http1,
    Http2,
}

/// TIMEOUT-01
#[test]
fn the_shortest_limit_answers_504_by_its_name_and_clients_that_leave_are_499() {
    let times = times();
    let sleep = times.sleep;
    let slow = Destination::start(move |moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(_) => [vec![Act::Pause(sleep)], answer(200, "at last")].concat(),
    });
    let long = Duration::from_secs(300);
    // Total, idle, and the reason of what comes of it.
    let matrix = [
        ("total", times.short, Duration::from_secs(100), Some("deadline")),
        ("idle", long, times.short, Some("response-timeout")),
        ("total_first", times.short, times.short * 2, Some("deadline")),
        ("idle_first", times.short * 2, times.short, Some("response-timeout")),
        ("neither", long, Duration::from_secs(100), None),
    ];
    let config = |part: &dyn Fn(&str, Duration, Duration) -> String| {
        matrix.iter().map(|(name, total, idle, _)| part(name, *total, *idle)).collect::<String>()
    };
    let lazaret = Lazaret::start(&format!(
        "routes:\n{}clusters:\n{}",
        config(&|name, total, _| format!(
            "  {name}: {{match: {{path: \"/{name}/{{**rest}}\"}}, cluster: {name}, timeout: {}ms}}\n",
            total.as_millis()
        )),
        config(&|name, _, idle| format!(
            "  {name}:\n    timeouts: {{idle: {}ms}}\n    retry: {{attempts: 1}}\n    destinations: {{one: {{address: \
             \"{}\"}}}}\n",
            idle.as_millis(),
            slow.url()
        )),
    ));
    let proxy = lazaret.proxy;
    std::thread::scope(|scope| {
        for (name, total, idle, reason) in matrix {
            for speaks in [Speaks::Http1, Speaks::Http2] {
                scope.spawn(move || {
                    let started = Instant::now();
                    let (status, details) = ask(proxy, &format!("/{name}/{speaks:?}"), speaks);
                    let took = started.elapsed();
                    let due = if reason.is_some() { total.min(idle) } else { sleep };
                    assert_eq!(status, if reason.is_some() { 504 } else { 200 }, "{name} {speaks:?}");
                    let said = reason.map(|reason| format!("details=\"{reason}\""));
                    assert!(said.is_none_or(|said| details.contains(&said)), "{name} {speaks:?}: {details}");
                    let bounds = due.saturating_sub(Duration::from_millis(20))..due + LATE;
                    assert!(bounds.contains(&took), "{name} {speaks:?} took {took:?}");
                });
                scope.spawn(move || leave(proxy, &format!("/{name}/left/{speaks:?}"), speaks));
            }
        }
    });
    for (name, _, _, reason) in matrix {
        for speaks in ["Http1", "Http2"] {
            let line = lazaret.log_line(&format!("/{name}/{speaks}"));
            assert_eq!(line["reason"], reason.unwrap_or(""), "{line}");
            let line = lazaret.log_line(&format!("/{name}/left/{speaks}"));
            assert_eq!((&line["status"], &line["reason"]), (&499.into(), &"client-gone".into()), "{line}");
        }
        let cluster = format!("cluster=\"{name}\"");
        let count =
            |outcome: &str| lazaret.metric("lazaret_attempts_total", &[&cluster, &format!("outcome=\"{outcome}\"")]);
        let timeouts = if reason.is_some() { 2.0 } else { 0.0 };
        assert_eq!(count("timeout"), timeouts, "{name}");
        assert_eq!(count("neutral"), 2.0, "{name}");
        assert_eq!(lazaret.metric("lazaret_attempts_total", &[&cluster]), 4.0, "{name}");
    }
}

/// A body that stands still is cut by the same limits, visibly, as its head has gone out.
#[test]
fn a_body_that_stands_still_is_cut_by_the_shortest_limit() {
    let times = times();
    let stuck = Destination::start(|moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(_) => {
            vec![Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf".to_vec()), Act::Stall]
        }
    });
    let short = times.short.as_millis();
    let lazaret = Lazaret::start(&format!(
        "routes:\n  total: {{match: {{path: /total}}, cluster: total, timeout: {short}ms}}\n  idle: {{match: {{path: \
         /idle}}, cluster: idle, timeout: 300s}}\nclusters:\n  total: {{timeouts: {{idle: 100s}}, destinations: {{one: \
         {{address: \"{0}\"}}}}}}\n  idle: {{timeouts: {{idle: {short}ms}}, destinations: {{one: {{address: \"{0}\"}}}}}}\n",
        stuck.url()
    ));
    for (path, reason) in [("/total", "deadline"), ("/idle", "body-timeout")] {
        let mut client = Client::connect(lazaret.proxy);
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
        let (message, result) = client.try_response(testkit::message::Expect::Response);
        assert_eq!((message.status(), message.text().as_str()), (200, "half"));
        assert!(result.is_err(), "{path}: the client can tell that it is not whole");
        assert_eq!(lazaret.log_line(path)["reason"], reason, "{path}");
    }
}

/// Status and `Proxy-Status` of the answer to a GET.
fn ask(to: SocketAddr, path: &str, speaks: Speaks) -> (u16, String) {
    match speaks {
        Speaks::Http1 => {
            let response = Client::connect(to).get(path);
            (response.status(), response.value("proxy-status").unwrap_or_default())
        }
        Speaks::Http2 => on_http2(async move {
            let (response, _stream) = start(to, path).await;
            let response = response.await.expect("an answer");
            let details = response.headers().get("proxy-status").map(|value| value.to_str().expect("ASCII").to_owned());
            (response.status().as_u16(), details.unwrap_or_default())
        }),
    }
}

/// Sends a request and goes, by a reset of the connection or of the stream, long before any limit.
fn leave(to: SocketAddr, path: &str, speaks: Speaks) {
    let pause = times().short / 4;
    match speaks {
        Speaks::Http1 => {
            let mut client = Client::connect(to);
            client.send(format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
            std::thread::sleep(pause);
            client.reset();
        }
        Speaks::Http2 => on_http2(async move {
            let (response, mut stream) = start(to, path).await;
            tokio::time::sleep(pause).await;
            stream.send_reset(h2::Reason::CANCEL);
            assert!(response.await.is_err());
        }),
    }
}

async fn start(to: SocketAddr, path: &str) -> (h2::client::ResponseFuture, h2::SendStream<bytes::Bytes>) {
    let stream = tokio::net::TcpStream::connect(to).await.expect("it listens");
    let (requests, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    tokio::spawn(connection);
    let request = http::Request::get(format!("http://a.test{path}")).body(()).expect("a request");
    requests.ready().await.expect("a stream is free").send_request(request, true).expect("it is sent")
}

fn on_http2<T>(exchange: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let bounded = async { tokio::time::timeout(Duration::from_secs(30), exchange).await };
    runtime.block_on(bounded).expect("within 30 s")
}
