//! One destination's trouble never delays what is known of another: not a closed port, not an address that swallows SYNs,
//! not a name that does not resolve, not a server that accepts and stays silent. (dotnet/yarp #1704)

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use end_to_end::probed::{Probed, gaps, median};
use end_to_end::process::Lazaret;
use testkit::destination::{Act, Destination, Moment, refusing};

const INTERVAL: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_millis(1500);

#[test]
fn each_failing_destination_is_unhealthy_for_its_own_reason_while_another_is_probed_on_time() {
    let (good, hanging, hole) = (Probed::start("good"), hanging(), BlackHole::dig());
    let lazaret = Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    timeouts: {{connect: \
         1s}}\n    health_check: {{active: {{interval: 500ms, timeout: 1500ms, threshold: 2, path: /health}}}}\n    \
         destinations:\n      good: {{address: \"{}\"}}\n      closed: {{address: \"http://{}/\"}}\n      hole: {{address: \
         \"http://{}/\"}}\n      nameless: {{address: \"http://nowhere.invalid/\"}}\n      silent: {{address: \"{}\"}}\n",
        good.url(),
        refusing(),
        hole.address,
        hanging.url(),
    ));
    let reasons = [("closed", "refused"), ("hole", "connect_timeout"), ("nameless", "dns"), ("silent", "timeout")];
    for (id, reason) in reasons {
        lazaret.wait_until(&format!("{id} is unhealthy"), || lazaret.health("app", id) == "unhealthy/unknown");
        let document = lazaret.destination("app", id);
        assert_eq!(document["last_probe"]["failure"], reason, "{id}: {document}");
        let transitions = lazaret.transitions(id);
        let last = transitions.last().unwrap_or_else(|| panic!("{id} has no transition"));
        assert_eq!((&last["to"], &last["check"]), (&"unhealthy".into(), &"active".into()), "{last}");
        assert_eq!(last["evidence"]["last"][0]["failure"], reason, "{last}");
        let cluster = ["cluster=\"app\"", &format!("destination=\"{id}\""), &format!("result=\"{reason}\"")];
        assert!(lazaret.metric("lazaret_probes_total", &cluster) >= 2.0, "{id}: no metric names {reason}");
    }
    // threshold x interval + timeout, with room for a busy machine.
    let unhealthy = lazaret.transitions("silent");
    assert_eq!(unhealthy.len(), 1, "{unhealthy:?}");
    assert_eq!(lazaret.health("app", "good"), "healthy/unknown");

    // All four are in trouble for this whole time.
    let from = Instant::now();
    lazaret.wait_until("20 intervals passed", || good.probes_since(from).len() > 20);
    let spacing = median(gaps(&good.probes_since(from)));
    let off = spacing.abs_diff(INTERVAL);
    assert!(off <= INTERVAL / 10, "the good one is probed every {spacing:?} instead of every {INTERVAL:?}");
    assert_eq!(good.probes().len() as u64, requests_to_health(&good), "no probe is sent twice");
    assert_eq!(lazaret.transitions("good").len(), 1, "the good one became Healthy and stayed so");

    // And a verdict on it comes as quickly as if it were alone.
    good.turn(500);
    let turned = Instant::now();
    lazaret.wait_until("the good one is found sick", || lazaret.health("app", "good").starts_with("unhealthy"));
    let took = turned.elapsed();
    assert!(took < INTERVAL * 2 + TIMEOUT, "the verdict took {took:?}");
}

fn requests_to_health(good: &Probed) -> u64 {
    good.destination().requests_to("/health").len() as u64
}

/// Accepts and never answers.
fn hanging() -> Destination {
    Destination::start(|moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(_) => vec![Act::Stall],
    })
}

/// An address that drops SYNs: a listener whose queue of connections is full and never emptied.
struct BlackHole {
    address: SocketAddr,
    _listener: std::net::TcpListener,
    _waiting: Vec<TcpStream>,
}

impl BlackHole {
    fn dig() -> Self {
        use nix::sys::socket::{
            AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, getsockname, listen, socket,
        };
        use std::os::fd::AsRawFd;
        let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        bind(fd.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).expect("a free port");
        listen(&fd, Backlog::new(0).expect("a small number")).expect("a bound socket listens");
        let address: SockaddrIn = getsockname(fd.as_raw_fd()).expect("a bound socket has an address");
        let address = SocketAddr::from((address.ip(), address.port()));
        let mut waiting = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(300)) {
            waiting.push(stream);
            assert!(waiting.len() < 16, "the queue is not full after 16 connections");
        }
        Self { address, _listener: fd.into(), _waiting: waiting }
    }
}
