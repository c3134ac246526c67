//! A scenario of the policy lab for real and in the lab, side by side.

use anyhow::Context as _;
use lab::policy::Policy;
use twins::contestant::{Contestant, Program};
use twins::predicted::{middle, seen_of};
use twins::promise::promises;
use twins::seen::{Figures, Seen};

/// What both worlds say of a contestant.
#[derive(Debug)]
pub struct Twin {
    /// The lab's middle of some runs.
    pub predicted: Figures,
    /// Those runs, which differ by the proxy's own draws.
    pub runs: Vec<Figures>,
    /// All that came in them.
    pub predicted_seen: Vec<Seen>,
    /// For real.
    pub measured: Figures,
    /// All that came for real.
    pub seen: Seen,
}

impl Twin {
    /// The promises that were broken, a line each.
    pub fn broken(&self) -> Vec<String> {
        let all = promises(&self.predicted, &self.runs, &self.measured);
        all.iter().filter(|promise| !promise.is_kept()).map(ToString::to_string).collect()
    }

    /// Asks for a figure that the real run is one draw of: within `room` of what some run of the lab says.
    pub fn is_a_draw(&self, what: &str, room: f64, of: impl Fn(&Figures) -> Option<f64>) -> anyhow::Result<()> {
        let draws: Vec<Option<f64>> = self.runs.iter().map(&of).collect();
        let measured = of(&self.measured);
        let is_close = |draw: &Option<f64>| match (draw, measured) {
            (Some(draw), Some(measured)) => (draw - measured).abs() <= room,
            (None, None) => true,
            (None, Some(_)) | (Some(_), None) => false,
        };
        anyhow::ensure!(draws.iter().any(is_close), "{what}: measured {measured:?}, in the lab {draws:?}");
        Ok(())
    }

    /// Asks each run of the lab and the real one.
    pub fn in_both(&self, judge: impl Fn(&Seen, &Figures) -> anyhow::Result<()>) -> anyhow::Result<()> {
        for (seen, figures) in self.predicted_seen.iter().zip(&self.runs) {
            judge(seen, figures).context("in the lab")?;
        }
        judge(&self.seen, &self.measured).context("for real")
    }
}

/// Runs a scenario for several contestants at once, with so many runs of the lab.
pub fn twins(text: &str, logs: &dyn Fn(&str) -> String, contestants: &[Contestant], runs: u64) -> Vec<Twin> {
    let scenario = lab::scenario::read(text, &|name| Ok(logs(name))).expect("the scenario is right");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let all = twins::real::run(&scenario, contestants, 1, folder.path()).expect("the real run comes to its end");
    let pairs = contestants.iter().zip(all);
    pairs
        .map(|(contestant, seen)| {
            let all = seen_of(&scenario, &contestant.policy, 1, runs, seen.sight()).expect("the lab knows the policy");
            let runs: Vec<Figures> = all.iter().map(|seen| seen.figures(&scenario)).collect();
            let (predicted, measured) = (middle(&runs), seen.figures(&scenario));
            Twin { predicted, runs, predicted_seen: all, measured, seen }
        })
        .collect()
}

/// Runs twins until they are as `judge` wants them. What is wrong on a machine that was in time is wrong at once. Where the
/// machine could not be believed ([`twins::lateness`]) they run once more, four times in all at most, and the test says so
/// aloud; a machine that is never in time is one that the test lacks.
pub fn hold(test: &str, run: impl Fn() -> Vec<Twin>, judge: impl Fn(&[Twin]) -> anyhow::Result<()>) {
    match is_held(run, judge, |why| testkit::again(test, why)) {
        Ok(true) => {}
        Ok(false) => testkit::skip(test, "a machine that is in time"),
        Err(wrong) => panic!("{wrong:#}"),
    }
}

/// Whether the machine was in time, once at least; what is wrong then is the error.
fn is_held(
    run: impl Fn() -> Vec<Twin>,
    judge: impl Fn(&[Twin]) -> anyhow::Result<()>,
    say_again: impl Fn(&str),
) -> anyhow::Result<bool> {
    for number in 1..=TRIES {
        let both = run();
        let all = both.iter().map(|twin| twin.seen.lateness());
        let lateness = all.max_by_key(|lateness| lateness.worst).expect("somebody was twinned");
        println!("{lateness}");
        let Err(wrong) = judge(&both) else { return Ok(true) };
        anyhow::ensure!(both.iter().any(|twin| !twin.seen.lateness().is_believable()), "{wrong:#} ({lateness})");
        say_again(&format!("{number} of {TRIES}: {lateness}: {wrong:#}"));
    }
    Ok(false)
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use lab::meter::Fate;
    use model::time::Timestamp;
    use twins::seen::Asked;

    use super::*;

    fn twin(late: Duration) -> Twin {
        let asked = Asked { at: Timestamp::ZERO, took: Duration::ZERO, late, fate: Fate::Served, is_bad: false };
        let seen = Seen { requests: vec![asked], ..Seen::default() };
        Twin {
            predicted: Figures::default(),
            runs: Vec::new(),
            predicted_seen: Vec::new(),
            measured: Figures::default(),
            seen,
        }
    }

    /// Runs that are late by so many milliseconds, of which the `right`-th is right: whether they hold, and what was said.
    fn held(late: &[u64], right: usize) -> (anyhow::Result<bool>, usize) {
        let (made, said) = (Cell::new(0), Cell::new(0));
        let run = || {
            let late = late.get(made.replace(made.get() + 1)).expect("no more runs than these");
            vec![twin(Duration::from_millis(*late))]
        };
        let judge = |_: &[Twin]| {
            anyhow::ensure!(made.get() == right, "run {} is wrong", made.get());
            Ok(())
        };
        (is_held(run, judge, |_| said.set(said.get() + 1)), said.get())
    }

    #[test]
    fn what_is_wrong_on_a_late_machine_is_measured_again_and_that_is_said() {
        assert!(matches!(held(&[0], 1), (Ok(true), 0)));
        assert!(matches!(held(&[900, 300, 900], 3), (Ok(true), 2)));
        assert!(matches!(held(&[900; 4], 5), (Ok(false), 4)), "a machine that is never in time");
    }

    #[test]
    fn what_is_wrong_on_a_machine_in_time_fails_at_once() {
        let (wrong, said) = held(&[900, 1, 0], 3);
        assert!(wrong.is_err_and(|wrong| wrong.to_string().starts_with("run 2 is wrong")));
        assert_eq!(said, 1);
    }
}
