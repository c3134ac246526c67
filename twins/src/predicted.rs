//! What the lab says: the same requests and the same luck, met by proxies whose own draws come out otherwise each time.

use anyhow::Result;
use lab::chance::Chance;
use lab::policy::Policy;
use lab::scenario::Scenario;

use crate::seen::{Absence, Figures, Seen, Sight};

/// Each of so many runs.
pub fn runs_of(scenario: &Scenario, policy: &Policy, seed: u64, runs: u64, sight: Sight) -> Result<Vec<Figures>> {
    let all = seen_of(scenario, policy, seed, runs, sight)?;
    Ok(all.iter().map(|seen| seen.figures(scenario)).collect())
}

/// All that came in each of them.
pub fn seen_of(scenario: &Scenario, policy: &Policy, seed: u64, runs: u64, sight: Sight) -> Result<Vec<Seen>> {
    let run = |turns| {
        let seen = Seen::from(lab::trace(scenario, policy, Chance::with_turns(seed, turns))?);
        Ok(match sight {
            Sight::Whole => seen,
            Sight::NoRefusals => seen.without_refusals(),
        })
    };
    (1..=runs.max(1)).map(run).collect()
}

/// The middle of several: failures and requests by their mean, times by their median.
pub fn middle(all: &[Figures]) -> Figures {
    let of = |what: fn(&Figures) -> f64| -> Vec<f64> { all.iter().map(what).collect() };
    let absences = all.first().map_or(0, |one| one.absences.len());
    Figures {
        requests: mean(&of(|one| one.requests)),
        failures: mean(&of(|one| one.failures)),
        p50: median(of(|one| one.p50)),
        p99: median(of(|one| one.p99)),
        absences: (0..absences).map(|place| absence(all, place)).collect(),
    }
}

fn absence(all: &[Figures], place: usize) -> Absence {
    let list: Vec<&Absence> = all.iter().filter_map(|one| one.absences.get(place)).collect();
    let time = |what: fn(&Absence) -> Option<f64>| {
        let times: Vec<f64> = list.iter().filter_map(|one| what(one)).collect();
        // Most of the runs have it.
        (times.len() * 2 > list.len()).then(|| median(times))
    };
    Absence {
        destination: list.first().map(|one| one.destination.clone()).unwrap_or_default(),
        out: time(|one| one.out),
        back: time(|one| one.back),
        met: mean(&list.iter().map(|one| one.met).collect::<Vec<_>>()),
    }
}

fn mean(list: &[f64]) -> f64 {
    list.iter().sum::<f64>() / list.len().max(1) as f64
}

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    crate::seen::quantile(&list, 0.5)
}
