//! A probe that hangs occupies its destination alone, once: no second probe joins it, it counts one failure when its
//! timeout ends it, and a slow success is a success. (Kong/kong #7409)
//!
//! The interval and the timeout are a tenth of what is usual; `LAZARET_LONG=1` takes the usual ones (30 s).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use end_to_end::control::is_long;
use end_to_end::process::Lazaret;

const THRESHOLD: u32 = 3;

#[test]
fn at_most_one_probe_of_a_destination_that_hangs_is_in_flight_and_each_timeout_counts_once() {
    let (interval, timeout) = times();
    let hanging = Slow::start(None);
    let started = Instant::now();
    let lazaret = start(hanging.address, interval, timeout);
    lazaret.wait_until("it is Unhealthy", || lazaret.health("app", "one").starts_with("unhealthy"));
    let took = started.elapsed();
    assert!(took >= timeout * THRESHOLD, "{THRESHOLD} timeouts of {timeout:?} cannot have passed within {took:?}");
    let slack = (interval + Duration::from_secs(1)) * THRESHOLD;
    assert!(took <= timeout * THRESHOLD + slack, "the verdict took {took:?}");
    let document = lazaret.destination("app", "one");
    assert_eq!(document["last_probe"]["failure"], "timeout", "{document}");

    let descriptors = lazaret.descriptors();
    let began = hanging.began();
    lazaret.wait_until("three further probes hung", || hanging.began() >= began + 3);
    hanging.saw_one_at_a_time();
    assert!(lazaret.descriptors() <= descriptors + 1, "probes leave their sockets open: {}", lazaret.descriptors());
    // All but the one that may be running now were closed by Lazaret at their timeout.
    for lasted in hanging.lasted() {
        let expected = timeout - timeout / 10..timeout + Duration::from_millis(500);
        assert!(expected.contains(&lasted), "a probe's connection lasted {lasted:?}, its timeout is {timeout:?}");
    }
}

#[test]
fn a_slow_success_is_a_success_and_probes_do_not_pile_up() {
    let (interval, timeout) = times();
    let answers_after = interval * 5 / 2;
    let slow = Slow::start(Some(answers_after));
    let lazaret = start(slow.address, interval, timeout);
    lazaret.wait_until("it answered eight probes", || slow.lasted().len() >= 8);
    assert_eq!(lazaret.health("app", "one"), "healthy/unknown");
    slow.saw_one_at_a_time();
    let transitions = lazaret.transitions("one");
    assert_eq!(transitions.len(), 1, "it was Healthy from its first answer on: {transitions:?}");
}

fn times() -> (Duration, Duration) {
    if is_long() {
        (Duration::from_secs(1), Duration::from_secs(5))
    } else {
        (Duration::from_millis(200), Duration::from_secs(1))
    }
}

fn start(address: SocketAddr, interval: Duration, timeout: Duration) -> Lazaret {
    Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    health_check: {{active: \
         {{interval: {}ms, timeout: {}ms, threshold: {THRESHOLD}, path: /health}}}}\n    destinations: {{one: {{address: \
         \"http://{address}/\"}}}}\n",
        interval.as_millis(),
        timeout.as_millis()
    ))
}

/// Answers each connection's request after a while, or never, and remembers from when to when each was in hand.
struct Slow {
    address: SocketAddr,
    probes: Arc<Mutex<Vec<Probe>>>,
}

#[derive(Clone, Copy)]
struct Probe {
    began: Instant,
    /// It was answered, or the other side closed.
    ended: Option<Instant>,
}

impl Slow {
    fn start(after: Option<Duration>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let probes = Arc::new(Mutex::new(Vec::new()));
        thread::spawn({
            let probes = Arc::clone(&probes);
            move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    let probes = Arc::clone(&probes);
                    thread::spawn(move || serve(stream, after, &probes));
                }
            }
        });
        Self { address, probes }
    }

    fn probes(&self) -> Vec<Probe> {
        self.probes.lock().expect("no thread panics with it").clone()
    }

    fn began(&self) -> usize {
        self.probes().len()
    }

    /// How long each was in hand that is no more.
    fn lasted(&self) -> Vec<Duration> {
        self.probes().into_iter().filter_map(|one| Some(one.ended? - one.began)).collect()
    }

    fn saw_one_at_a_time(&self) {
        let mut probes = self.probes();
        probes.sort_by_key(|one| one.began);
        for pair in probes.windows(2) {
            // The end of the one is seen by another thread than the beginning of the next.
            let ended = pair[0].ended.unwrap_or_else(Instant::now);
            let overlap = ended.saturating_duration_since(pair[1].began);
            assert!(overlap < Duration::from_millis(150), "two probes were in hand for {overlap:?}");
        }
    }
}

fn serve(mut stream: TcpStream, after: Option<Duration>, probes: &Mutex<Vec<Probe>>) {
    let lock = || probes.lock().expect("no thread panics with it");
    let number = {
        let mut probes = lock();
        probes.push(Probe { began: Instant::now(), ended: None });
        probes.len() - 1
    };
    let mut bytes = [0; 4096];
    let _ = stream.read(&mut bytes);
    if let Some(after) = after {
        thread::sleep(after);
        lock()[number].ended = Some(Instant::now());
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
    while stream.read(&mut bytes).is_ok_and(|n| n > 0) {}
    lock()[number].ended.get_or_insert_with(Instant::now);
}
