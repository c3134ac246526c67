//! A scenario of the policy lab for real and in the lab, side by side.

use lab::policy::Policy;
use twins::contestant::{Contestant, Program};
use twins::predicted::{middle, runs_of};
use twins::seen::{Figures, Seen};

/// What both worlds say of a contestant.
#[derive(Debug)]
pub struct Twin {
    /// The lab's middle of some runs.
    pub predicted: Figures,
    /// Those runs, which differ by the proxy's own draws.
    pub runs: Vec<Figures>,
    /// For real.
    pub measured: Figures,
    /// All that came for real.
    pub seen: Seen,
}

/// Runs a scenario for several contestants at once, with so many runs of the lab.
pub fn twins(text: &str, logs: &dyn Fn(&str) -> String, contestants: &[Contestant], runs: u64) -> Vec<Twin> {
    let scenario = lab::scenario::read(text, &|name| Ok(logs(name))).expect("the scenario is right");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let all = twins::real::run(&scenario, contestants, 1, folder.path()).expect("the real run comes to its end");
    let pairs = contestants.iter().zip(all);
    pairs
        .map(|(contestant, seen)| {
            let runs = runs_of(&scenario, &contestant.policy, 1, runs).expect("the lab knows the policy");
            Twin { predicted: middle(&runs), runs, measured: seen.figures(&scenario), seen }
        })
        .collect()
}

/// Runs twins until they are as `judge` wants them. What is wrong on a machine that was in time is wrong at once. Where the
/// machine could not be believed ([`twins::lateness`]) they run once more, four times in all at most, and the test says so
/// aloud; a machine that is never in time is one that the test lacks.
pub fn hold(test: &str, run: impl Fn() -> Vec<Twin>, judge: impl Fn(&[Twin]) -> anyhow::Result<()>) {
    for number in 1..=TRIES {
        let both = run();
        let all = both.iter().map(|twin| twin.seen.lateness());
        let lateness = all.max_by_key(|lateness| lateness.worst).expect("somebody was twinned");
        println!("{test}: {lateness}");
        let Err(wrong) = judge(&both) else { return };
        assert!(both.iter().any(|twin| !twin.seen.lateness().is_believable()), "{wrong:#} ({lateness})");
        testkit::again(test, &format!("{number} of {TRIES}: {lateness}: {wrong:#}"));
    }
    testkit::skip(test, "a machine that is in time");
}

/// nginx with these numbers, `fail_timeout` in seconds.
pub fn nginx(max_fails: u32, fail_timeout: u32) -> Contestant {
    let policy = Policy::find(&format!("nginx:{max_fails}/{fail_timeout}s")).expect("the lab has nginx");
    Contestant { name: "nginx", policy, program: Program::Nginx { max_fails, fail_timeout } }
}

/// An access log of requests at these milliseconds with this method.
pub fn log(requests: impl IntoIterator<Item = (u64, &'static str)>) -> String {
    let line = |(millis, method): (u64, &str)| {
        let (seconds, rest) = (millis / 1000, millis % 1000);
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        format!("{{\"at\":\"2026-01-01T00:{minutes:02}:{seconds:02}.{rest:03}Z\",\"method\":\"{method}\"}}\n")
    };
    requests.into_iter().map(line).collect()
}

/// So often in all where the machine is too busy.
const TRIES: u32 = 4;
