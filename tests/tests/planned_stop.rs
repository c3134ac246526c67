//! SIGTERM: every node is reported unhealthy, what is in flight ends, and the process goes with code 0.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use end_to_end::process::{Lazaret, get, poll};
use nix::sys::signal::Signal;

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
