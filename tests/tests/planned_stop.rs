//! SIGTERM: every node is reported unhealthy, what is in flight ends, and the process goes with code 0.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use end_to_end::clients::http2;
use end_to_end::process::{Lazaret, get, poll};
use nix::sys::signal::Signal;
use testkit::destination::{Act, Destination, Moment, answer};

#[test]
fn a_planned_stop_finishes_what_is_in_flight_and_reports_every_node_unhealthy() {
    let destination = SlowDestination::start();
    let mut lazaret = Lazaret::start(&format!(
        "drain: {{lead: 1s, grace: 20s}}\nroutes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters: \
         {{app: {{destinations: {{a: {{address: \"http://{}/\"}}}}}}}}\n",
        destination.address
    ));
    let mut client = TcpStream::connect(lazaret.proxy).expect("it serves");
    client.set_read_timeout(Some(Duration::from_secs(15))).expect("a socket takes a timeout");
    client.write_all(b"GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n").expect("it reads");
    destination.wait_for_a_request();

    lazaret.process.signal(Signal::SIGTERM);
    let status = || -> Option<String> {
        let answer = get(lazaret.control, "/v1/healthcheck/upstreams/app").filter(|answer| answer.status == 200)?;
        let document: serde_json::Value = serde_json::from_str(&answer.body).ok()?;
        document["nodes"][0]["status"].as_str().map(str::to_owned)
    };
    assert!(poll(Duration::from_secs(1), || status().as_deref() == Some("unhealthy")), "{:?}", status());
    assert_eq!(get(lazaret.control, "/readyz").map(|answer| answer.status), Some(503));
    // The lead is not over yet: new connections are still served.
    assert!(TcpStream::connect(lazaret.proxy).is_ok(), "nothing is refused during the lead");

    assert!(
        poll(Duration::from_secs(10), || TcpStream::connect(lazaret.proxy).is_err()),
        "after the lead nothing more is accepted"
    );
    destination.answer();
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("the answer comes whole");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("done"), "{answer}");
    assert!(answer.to_ascii_lowercase().contains("connection: close"), "{answer}");
    assert_eq!(lazaret.process.wait(Duration::from_secs(10)).code(), Some(0), "{}", lazaret.process.output());
}

/// SHUTDOWN-01 (cloudflare/pingora #388, #865; envoyproxy/envoy #39876; RFC 9113 6.8)
#[test]
fn every_stream_that_was_taken_is_served_to_its_end_and_the_process_goes_with_the_last_of_them() {
    const LASTS: Duration = Duration::from_secs(2);
    let slow = Destination::start(|moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(_) => [vec![Act::Pause(LASTS)], answer(200, "done")].concat(),
    });
    let mut lazaret = Lazaret::start(&format!(
        "listeners: {{web: {{address: \"$PROXY\", http2: {{streams: 1000}}}}}}\ndrain: {{grace: 30s}}\nroutes: {{all: \
         {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters: {{app: {{destinations: {{a: {{address: \
         \"{}\"}}}}}}}}\n",
        slow.url()
    ));
    let taken = || slow.requests().len();
    let (mut served, mut refused, mut last) = (0, 0, Instant::now());
    http2::run(async {
        let client = http2::connect(lazaret.proxy).await;
        let mut streams = tokio::task::JoinSet::new();
        let open = |streams: &mut tokio::task::JoinSet<_>, number: usize| {
            let requests = client.requests.clone();
            streams.spawn(async move { http2::get(&requests, &format!("/{number}"), &[]).await });
        };
        (0..100).for_each(|number| open(&mut streams, number));
        while taken() < 100 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        lazaret.process.signal(Signal::SIGTERM);
        // One more each 10 ms, for as long as the client may.
        let mut number = 100;
        while !client.driver.is_finished() && number < 200 {
            open(&mut streams, number);
            number += 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        while let Some(ended) = streams.join_next().await {
            match ended.expect("no task panics") {
                Ok(answer) => {
                    assert_eq!((answer.status, answer.body.as_slice(), answer.reset), (200, &b"done"[..], None));
                    served += 1;
                    last = Instant::now();
                }
                // Not processed, and so safe to send again.
                Err(error) => {
                    let reason = error.reason();
                    assert!(
                        [Some(h2::Reason::NO_ERROR), Some(h2::Reason::REFUSED_STREAM)].contains(&reason),
                        "{error}"
                    );
                    refused += 1;
                }
            }
        }
        let _ = client.driver.await;
    });
    assert!(served >= 100, "{served} were served");
    assert_eq!(served, taken(), "what was taken is answered, {refused} were refused");
    assert_eq!(lazaret.process.wait(Duration::from_secs(10)).code(), Some(0), "{}", lazaret.process.output());
    assert!(last.elapsed() < Duration::from_secs(8), "it ended {:?} after its last stream", last.elapsed());
}

/// Answers its first request when it is told to.
struct SlowDestination {
    address: std::net::SocketAddr,
    requests: std::sync::mpsc::Receiver<()>,
    answer: std::sync::mpsc::Sender<()>,
}

impl SlowDestination {
    fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let (seen, requests) = std::sync::mpsc::channel();
        let (answer, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("lazaret connects");
            let mut buffer = [0; 4096];
            let n = stream.read(&mut buffer).expect("a request comes");
            assert!(n > 0);
            seen.send(()).expect("the test waits");
            told.recv().expect("the test tells");
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone").expect("lazaret reads");
        });
        Self { address, requests, answer }
    }

    fn wait_for_a_request(&self) {
        self.requests.recv_timeout(Duration::from_secs(10)).expect("the request arrives");
    }

    fn answer(&self) {
        self.answer.send(()).expect("the destination waits");
    }
}
