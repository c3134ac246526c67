//! The time that a client was promised holds over all attempts: a destination that hangs costs one per-try timeout and is
//! charged once, the total cuts the attempt that is running, and once a head has gone out nothing is repeated.
//! (tashfeenahmed/freellmapi #694, praxis-proxy/praxis #107)

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::control::attempts;
use end_to_end::process::Lazaret;
use testkit::client::{Client, End};
use testkit::destination::{Act, Destination, Moment};
use testkit::message::Expect;

const PER_TRY: Duration = Duration::from_secs(1);
const TOTAL: Duration = Duration::from_secs(2);
/// A busy machine may be late by so much.
const LATE: Duration = Duration::from_millis(400);

#[test]
fn a_destination_that_hangs_costs_one_per_try_timeout_and_is_charged_once() {
    let (hanging, good) = (hanging(), Destination::answering(200, "c"));
    let lazaret = start(&[("a", hanging.addr()), ("c", good.addr())]);
    let sent = Instant::now();
    let response = Client::connect(lazaret.proxy).get("/once");
    let took = sent.elapsed();
    assert_eq!((response.status(), response.text().as_str()), (200, "c"));
    assert!((PER_TRY..PER_TRY + LATE).contains(&took), "it took {took:?}");
    let line = lazaret.log_line("/once");
    assert_eq!(attempts(&line), ["a:per_try_timeout", "c:ok"], "{line}");
    let labels = ["cluster=\"app\"", "destination=\"a\"", "outcome=\"timeout\""];
    assert_eq!(lazaret.metric("lazaret_attempts_total", &labels), 1.0);
    assert_eq!(lazaret.metric("lazaret_attempts_total", &["destination=\"a\""]), 1.0, "and as nothing else");
    lazaret.wait_until("the failure is seen", || {
        lazaret.destination("app", "a")["counter"]["timeout_failure"].as_u64().unwrap_or(0) == 1
    });
}

#[test]
fn the_total_cuts_the_attempt_that_is_running_and_the_destination_sees_it() {
    let (hanging, slow) = (hanging(), Slow::start());
    let lazaret = start(&[("a", hanging.addr()), ("c", slow.address)]);
    let sent = Instant::now();
    let response = Client::connect(lazaret.proxy).get("/slow");
    let took = sent.elapsed();
    assert_eq!(response.status(), 504, "{}", String::from_utf8_lossy(&response.head));
    assert!((TOTAL - Duration::from_millis(20)..TOTAL + LATE).contains(&took), "it took {took:?}");
    let closed = slow.closed.recv_timeout(Duration::from_secs(2)).expect("the destination sees its request cancelled");
    assert!(closed.duration_since(sent) < TOTAL + LATE, "seen after {:?}", closed.duration_since(sent));
    let line = lazaret.log_line("/slow");
    assert_eq!(line["status"], 504, "{line}");
    assert_eq!(attempts(&line).first().map(String::as_str), Some("a:per_try_timeout"), "{line}");
    assert_eq!(attempts(&line).len(), 2, "{line}");
    assert!(line["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{line}");
}

#[test]
fn nothing_is_repeated_once_the_head_of_an_answer_has_gone_out() {
    let stuck = Destination::start(|moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(_) => vec![Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe".to_vec()), Act::Stall],
    });
    let good = Destination::answering(200, "c");
    let lazaret = start(&[("b", stuck.addr()), ("c", good.addr())]);
    let sent = Instant::now();
    let mut client = Client::connect(lazaret.proxy);
    client.send("GET /cut HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let (message, result) = client.try_response(Expect::Response);
    let took = sent.elapsed();
    assert_eq!((message.status(), message.text().as_str()), (200, "he"));
    assert!(result.is_err(), "the client can tell that the answer is not whole");
    assert_ne!(client.rest().1, End::Open);
    assert!(took < TOTAL + LATE, "it took {took:?}");
    assert_eq!(good.requests().len(), 0, "it was repeated");
    let line = lazaret.log_line("/cut");
    assert_eq!(attempts(&line).len(), 1, "{line}");
    assert_eq!(line["attempts"][0]["destination"], "b", "{line}");
}

fn start(destinations: &[(&str, SocketAddr)]) -> Lazaret {
    let list: Vec<_> =
        destinations.iter().map(|(id, address)| format!("{id}: {{address: \"http://{address}/\"}}")).collect();
    Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app, timeout: {}s}}}}\nclusters:\n  app:\n    \
         load_balancing: FirstAlphabetical\n    timeouts: {{connect: 300ms}}\n    retry: {{attempts: 3, per_try_timeout: \
         {}s}}\n    health_check: {{passive: {{policies: [{{name: MaxFails, max_fails: 5, fail_timeout: 60s}}]}}}}\n    \
         destinations: {{{}}}\n",
        TOTAL.as_secs(),
        PER_TRY.as_secs(),
        list.join(", ")
    ))
}

/// Takes a request and never answers.
fn hanging() -> Destination {
    Destination::start(|moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(_) => vec![Act::Stall],
    })
}

/// Would answer after 1.5 s, and tells when its client went before.
struct Slow {
    address: SocketAddr,
    closed: Receiver<Instant>,
}

impl Slow {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (sender, closed) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                thread::spawn(move || serve(stream, &sender));
            }
        });
        Self { address, closed }
    }
}

fn serve(mut stream: TcpStream, closed: &Sender<Instant>) {
    let mut bytes = [0; 4096];
    let _ = stream.read(&mut bytes);
    let _ = stream.set_read_timeout(Some(Duration::from_millis(1500)));
    match stream.read(&mut bytes) {
        Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nc");
        }
        // The end, or a reset.
        _ => {
            let _ = closed.send(Instant::now());
        }
    }
}
