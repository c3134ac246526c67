//! One of three destinations stops answering while its connections stay open, and the idle timeout is far away: no outcome
//! tells of it. Requests that wait do: soon it gets no new one.

use std::time::Duration;

use end_to_end::load::{Load, run};
use end_to_end::patient::Patient;
use end_to_end::process::Lazaret;
use nix::sys::signal::Signal;

#[test]
fn a_destination_that_hangs_gets_no_new_request_after_two_seconds() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let patients: Vec<_> = ["a", "b", "c"].iter().map(|name| Patient::start(folder.path(), name)).collect();
    let lazaret = Lazaret::start(&config(&patients));
    lazaret.wait_ready();

    let load =
        Load { to: lazaret.proxy, clients: 64, rate: 45, duration: Duration::from_secs(8), post_every: 0, path: "/" };
    let client = std::thread::spawn(move || run(&load));
    std::thread::sleep(Duration::from_secs(1));
    patients[1].process.signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_secs(2));
    let caught = in_flight(&lazaret);
    std::thread::sleep(Duration::from_secs(3));
    let later = in_flight(&lazaret);
    let events = lazaret.document("/api/journal");
    // What waits there is let go, so that its clients are served elsewhere.
    patients[1].process.signal(Signal::SIGKILL);
    let outcome = client.join().expect("the load ends");
    println!("{events:#}");
    println!("sent {} ok {} caught {caught} later {later}", outcome.sent, outcome.ok);

    assert!(outcome.sent > 200, "the load was not carried: {} requests", outcome.sent);
    assert!((5..=40).contains(&caught), "{caught} requests wait at b");
    assert!(later <= caught, "{later} requests wait at b three seconds later, {caught} before");
    let list = events["events"].as_array().expect("the journal is a list");
    let suspected = list.iter().any(|one| one["event"] == "share" && one["by"] == "Stall" && one["destination"] == "b");
    assert!(suspected, "{events}");
    assert_eq!(outcome.get_failed_before_head, 0, "{:?}", outcome.failures);
}

fn in_flight(lazaret: &Lazaret) -> u64 {
    let document = lazaret.document("/api/destinations/app/b");
    document["cluster"]["destinations"][0]["in_flight"].as_u64().expect("in_flight is a number")
}

fn config(patients: &[Patient]) -> String {
    let destinations: Vec<_> = ["a", "b", "c"]
        .iter()
        .zip(patients)
        .map(|(name, patient)| format!("{name}: {{address: \"http://{}/\"}}", patient.address))
        .collect();
    format!(
        "routes:\n  all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}\nclusters:\n  app:\n    load_balancing: RoundRobin\n    timeouts: {{idle: \
         100s}}\n    health_check:\n      active: {{path: /health}}\n      passive: {{policies: [ConnectFailures, Burst, \
         Stall], readmission: true}}\n    destinations: {{{}}}\n",
        destinations.join(", ")
    )
}
