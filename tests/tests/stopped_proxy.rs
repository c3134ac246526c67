//! The proxy itself stands still for longer than every time that it gives its destinations: on waking it hears what they
//! said meanwhile, and blames none; nor does it turn away who waited in it.

use std::time::Duration;

use end_to_end::load::{Load, run};
use end_to_end::process::{Lazaret, get};
use nix::sys::signal::Signal;
use testkit::destination::{Act, Destination, Moment, answer};

const NAMES: [&str; 3] = ["a", "b", "c"];

#[test]
fn no_destination_is_blamed_for_a_pause_of_the_proxy() {
    let slow = |moment: &Moment<'_>| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(_) => [vec![Act::Pause(Duration::from_millis(150))], answer(200, "slow")].concat(),
    };
    let destinations = NAMES.map(|_| Destination::start(move |moment| slow(&moment)));
    let urls = NAMES.iter().zip(&destinations).map(|(name, one)| format!("{name}: {{address: \"{}\"}}", one.url()));
    let urls: Vec<_> = urls.collect();
    let lazaret = Lazaret::start(&format!(
        "routes: {{all: {{cluster: app, retry: off}}}}\nclusters:\n  app:\n    timeouts: {{idle: 1s}}\n    health_check:\n      active: \
         {{path: /health, interval: 300ms, timeout: 1s, threshold: 1}}\n    destinations: {{{}}}\n",
        urls.join(", ")
    ));
    lazaret.wait_ready();

    let load =
        Load { to: lazaret.proxy, clients: 24, rate: 100, duration: Duration::from_secs(9), post_every: 4, path: "/" };
    let client = std::thread::spawn(move || run(&load));
    for _ in 0..2 {
        std::thread::sleep(Duration::from_secs(1));
        lazaret.process.signal(Signal::SIGSTOP);
        // Longer than `idle` and the time of a probe, with as much again for what is granted after it.
        std::thread::sleep(Duration::from_millis(2500));
        lazaret.process.signal(Signal::SIGCONT);
    }
    let outcome = client.join().expect("the load ends");
    println!("sent {} ok {} {:?}", outcome.sent, outcome.ok, outcome.failures);

    assert!(outcome.sent > 200, "the load was not carried: {} requests", outcome.sent);
    assert_eq!(outcome.get_failed_before_head + outcome.post_failed_before_head, 0, "{:?}", outcome.failures);
    for name in NAMES {
        let document = lazaret.destination("app", name);
        let outcomes = document["outcomes"].as_object().expect("outcomes are a map");
        assert!(outcomes.keys().all(|class| class == "ok"), "{name}: {document}");
        assert_eq!(document["last_transition"]["to"], "healthy", "{name}: {document}");
    }
    let journal = lazaret.document("/api/journal");
    let events = journal["events"].as_array().expect("the journal is a list");
    let blamed = events.iter().filter(|event| event["to"] == "unhealthy" || event["event"] == "share");
    assert_eq!(blamed.count(), 0, "{journal:#}");
}

#[test]
fn who_waits_for_a_place_while_the_proxy_stands_still_gets_its_turn() {
    let destination = Destination::start(|moment| match moment {
        Moment::Accepted => Vec::new(),
        Moment::Request(request) => {
            let takes = Duration::from_millis(if request.number == 1 { 900 } else { 100 });
            [vec![Act::Pause(takes)], answer(200, "served")].concat()
        }
    });
    let lazaret = Lazaret::start(&format!(
        "routes: {{all: {{cluster: app}}}}\nclusters:\n  app:\n    queue: {{busy_timeout: 1s}}\n    destinations: {{a: \
         {{address: \"{}\", max_connections: 1}}}}\n",
        destination.url()
    ));
    let clients: Vec<_> = (0..6)
        .map(|n| {
            let to = lazaret.proxy;
            std::thread::spawn(move || get(to, &format!("/{n}")).map(|answer| answer.status))
        })
        .collect();
    lazaret.wait_until("one is served and the others wait", || lazaret.metric("lazaret_queue_waiting", &[]) == 5.0);
    lazaret.process.signal(Signal::SIGSTOP);
    // Longer than a request may wait, and than the destination needs for the one that it has.
    std::thread::sleep(Duration::from_millis(2500));
    lazaret.process.signal(Signal::SIGCONT);
    let statuses: Vec<_> = clients.into_iter().map(|client| client.join().expect("a client ends")).collect();
    assert_eq!(statuses, [Some(200); 6]);
}
