//! Of three destinations one dies, one stands still for 300 ms each 10 s, and one resets 1 % of its requests and answers
//! another 1 % with 503, under 500 requests a second and the default policies: no GET fails, only the dead one is ejected, and
//! retries stay within their budget.
//!
//! 30 s; `LAZARET_LONG=1`: 2 min.

use std::time::{Duration, Instant};

use end_to_end::control::is_long;
use end_to_end::load::{Load, run};
use end_to_end::patient::Patient;
use end_to_end::process::Lazaret;
use nix::sys::signal::Signal;
use testkit::destination::{Act, Destination, Moment, answer};

const RATE: u32 = 500;
const PAUSE_EVERY: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(300);
/// When the first one dies.
const DEATH: Duration = Duration::from_secs(5);

#[test]
fn no_get_fails_and_only_the_dead_one_leaves() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let dying = Patient::start(folder.path(), "dying");
    let (pausing, failing) = (pausing(), failing());
    let lazaret = Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    health_check:\n      \
         active: {{path: /health}}\n      passive: {{}}\n    destinations: {{dying: {{address: \"http://{}/\"}}, pausing: \
         {{address: \"http://{}/\"}}, failing: {{address: \"http://{}/\"}}}}\n",
        dying.address,
        pausing.addr(),
        failing.addr()
    ));
    lazaret.wait_ready();

    let duration = Duration::from_secs(if is_long() { 120 } else { 30 });
    let load = Load { to: lazaret.proxy, clients: 24, rate: RATE, duration, post_every: 0, path: "/" };
    let client = std::thread::spawn(move || run(&load));
    std::thread::sleep(DEATH);
    dying.process.signal(Signal::SIGKILL);
    let outcome = client.join().expect("the load ends");
    let retries = lazaret.metric("lazaret_retries_total", &["cluster=\"app\""]);
    let denied = lazaret.metric("lazaret_retry_denied_total", &["cluster=\"app\""]);
    println!("{} requests, {} ok, {retries} retries, {denied} denied", outcome.sent, outcome.ok);

    let planned = u64::from(RATE) * duration.as_secs();
    assert!(outcome.sent * 10 >= planned * 9, "the load was not carried: {} of {planned}", outcome.sent);
    assert_eq!((outcome.get_failed_before_head, outcome.failed_after_head), (0, 0), "{:?}", outcome.failures);
    assert_eq!(denied, 0.0);
    // Each attempt that ends well pays in 0.2, so each request once, and 3 a second come by themselves.
    let budget = 0.2 * outcome.sent as f64 + 3.0 * duration.as_secs_f64();
    assert!(retries > 50.0 && retries < budget, "{retries} retries, {budget} in the budget");
    for id in ["pausing", "failing"] {
        let out: Vec<_> = lazaret.transitions(id).into_iter().filter(|one| one["to"] == "unhealthy").collect();
        assert!(out.is_empty(), "{id} was ejected: {out:?}");
    }
    let dead = lazaret.destination("app", "dying");
    assert_eq!(dead["available"], false, "{dead}");
}

/// Stands still for a while, again and again: whatever came meanwhile is answered afterwards. Probes, too.
fn pausing() -> Destination {
    let start = Instant::now();
    Destination::start(move |moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => {
            let since = Duration::from_nanos((start.elapsed().as_nanos() % PAUSE_EVERY.as_nanos()) as u64);
            [vec![Act::ReadBody, Act::Pause(PAUSE.saturating_sub(since))], answer(200, "p")].concat()
        }
    })
}

/// Resets one of a hundred requests in the middle of the answer's head, and answers another one with 503.
fn failing() -> Destination {
    Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(request) if request.message.target() == "/health" => answer(200, "well"),
        Moment::Request(request) if request.number % 100 == 50 => {
            vec![Act::Send(b"HTTP/1.1 200 O".to_vec()), Act::Reset]
        }
        Moment::Request(request) if request.number % 100 == 0 => answer(503, "no"),
        Moment::Request(_) => answer(200, "f"),
    })
}
