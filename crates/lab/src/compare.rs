//! A comparison: every policy and both oracles, on the same seeds, with what is certain of the figures and what is luck.
//!
//! Made in three steps, so that the caller may spread the runs over threads: [`Plan::jobs`], [`Plan::run`] for each, and
//! [`Comparison::of`] over what came of them, which does not depend on the order in which they were done.

use crate::meter::{Figures, Film};
use crate::policy::{Mind, Policy, PolicyError};
use crate::scenario::Scenario;

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What happens.
    pub scenario: Scenario,
    /// The same without a fault.
    calm: Scenario,
    /// Who is compared; both oracles stand last.
    pub policies: Vec<Policy>,
    /// With these seeds.
    pub seeds: Vec<u64>,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    /// Place in [`Plan::policies`]; `None`: the run without a fault.
    policy: Option<usize>,
    /// Place in [`Plan::seeds`].
    seed: usize,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Done {
    job: Job,
    figures: Figures,
    film: Option<Film>,
}

/// The mean over the seeds, and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Mean.
    pub mean: f64,
    /// Half of the 95 % interval; 0 with one seed.
    pub half: f64,
    /// Seeds that had a value.
    pub n: usize,
}

/// One policy's figures over all seeds.
#[derive(Clone, Debug)]
pub struct Row {
    /// Who.
    pub policy: Policy,
    /// In the order of [`MEASURES`]; `None` where no seed had a value.
    pub measures: Vec<Option<Estimate>>,
    /// Failures more than with the better oracle, seed by seed.
    pub failures_above: Estimate,
    /// 99th percentile above the better oracle's, milliseconds, seed by seed.
    pub p99_above: Estimate,
    /// What the first seed looked like.
    pub film: Option<Film>,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The scenario's.
    pub title: String,
    /// How many seeds.
    pub seeds: usize,
    /// Tries of a request.
    pub attempts: u8,
    /// In the order of the plan.
    pub rows: Vec<Row>,
}

/// What is measured: the name, the unit.
pub const MEASURES: [(&str, &str); 12] = [
    ("failures", "requests"),
    ("failure_share", "%"),
    ("p50", "ms"),
    ("p99", "ms"),
    ("added_p50", "ms"),
    ("added_p99", "ms"),
    ("extra_load", "%"),
    ("lost", "s"),
    ("lost_share", "%"),
    ("detection", "s"),
    ("recovery", "s"),
    ("ejections", "count"),
];

impl Plan {
    /// Every policy once, then the oracles; `seeds` of them, from `first` on.
    pub fn new(scenario: Scenario, policies: Vec<Policy>, first: u64, seeds: u32) -> Self {
        let oracles = Policy::known().into_iter().filter(Policy::is_oracle);
        let named = policies.into_iter().filter(|policy| !policy.is_oracle());
        let mut policies: Vec<Policy> = Vec::new();
        for policy in named.chain(oracles) {
            if !policies.contains(&policy) {
                policies.push(policy);
            }
        }
        let calm = Scenario { faults: Vec::new(), ..scenario.clone() };
        let seeds = (0..u64::from(seeds.max(1))).map(|seed| first.wrapping_add(seed)).collect();
        Self { scenario, calm, policies, seeds }
    }

    /// All runs.
    pub fn jobs(&self) -> Vec<Job> {
        let policies = || std::iter::once(None).chain((0..self.policies.len()).map(Some));
        (0..self.seeds.len()).flat_map(|seed| policies().map(move |policy| Job { policy, seed })).collect()
    }

    /// Does one.
    pub fn run(&self, job: Job) -> Result<Done, PolicyError> {
        let unknown = || PolicyError("the job is of another plan".into());
        let seed = *self.seeds.get(job.seed).ok_or_else(unknown)?;
        let (scenario, policy) = match job.policy {
            Some(place) => (&self.scenario, self.policies.get(place)),
            None => (&self.calm, self.policies.iter().find(|policy| policy.mind == Mind::Keep)),
        };
        let (figures, film) = crate::run(scenario, policy.ok_or_else(unknown)?, seed)?;
        Ok(Done { job, figures, film: (job.seed == 0).then_some(film) })
    }

    /// All runs, one after the other.
    pub fn run_all(&self) -> Result<Comparison, PolicyError> {
        let done: Result<Vec<Done>, PolicyError> = self.jobs().into_iter().map(|job| self.run(job)).collect();
        Ok(Comparison::of(self, done?))
    }
}

impl Comparison {
    /// What all runs of a plan say together.
    pub fn of(plan: &Plan, mut done: Vec<Done>) -> Self {
        done.sort_by_key(|one| one.job);
        let of = |policy: Option<usize>| done.iter().filter(move |one| one.job.policy == policy);
        let calm: Vec<&Figures> = of(None).map(|one| &one.figures).collect();
        let better = |value: fn(&Figures) -> f64| -> Vec<f64> {
            let oracles = (0..).zip(&plan.policies).filter(|(_, policy)| policy.is_oracle());
            let columns =
                oracles.map(|(place, _)| of(Some(place)).map(|one| value(&one.figures)).collect::<Vec<f64>>());
            columns.min_by(|a, b| sum(a).total_cmp(&sum(b))).unwrap_or_default()
        };
        let (best_failures, best_p99) = (better(|figures| figures.failures as f64), better(|figures| figures.p99));
        let rows = (0..).zip(&plan.policies).map(|(place, policy)| {
            let figures: Vec<&Figures> = of(Some(place)).map(|one| &one.figures).collect();
            let column = |name: &str| -> Vec<f64> {
                figures.iter().zip(&calm).filter_map(|(one, calm)| measure(name, one, calm)).collect()
            };
            let above = |best: &[f64], value: fn(&Figures) -> f64| {
                let differences: Vec<f64> = figures.iter().zip(best).map(|(one, best)| value(one) - best).collect();
                Estimate::of(&differences).unwrap_or(Estimate { mean: 0.0, half: 0.0, n: 0 })
            };
            Row {
                policy: policy.clone(),
                measures: MEASURES.iter().map(|(name, _)| Estimate::of(&column(name))).collect(),
                failures_above: above(&best_failures, |figures| figures.failures as f64),
                p99_above: above(&best_p99, |figures| figures.p99),
                film: of(Some(place)).find_map(|one| one.film.clone()),
            }
        });
        Self {
            title: plan.scenario.title.clone(),
            seeds: plan.seeds.len(),
            attempts: plan.scenario.attempts,
            rows: rows.collect(),
        }
    }
}

impl Row {
    /// The estimate of a measure's name.
    pub fn measure(&self, name: &str) -> Option<Estimate> {
        let place = MEASURES.iter().position(|(one, _)| *one == name)?;
        self.measures.get(place).copied().flatten()
    }
}

impl Estimate {
    /// Of independent values; `None` of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        let mean = if n > 0 { sum(values) / n as f64 } else { return None };
        if n == 1 {
            return Some(Self { mean, half: 0.0, n });
        }
        let square = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (n - 1) as f64;
        Some(Self { mean, half: student(n - 1) * libm::sqrt(square / n as f64), n })
    }
}

fn measure(name: &str, one: &Figures, calm: &Figures) -> Option<f64> {
    match name {
        "failures" => Some(one.failures as f64),
        "failure_share" => Some(100.0 * one.failures as f64 / (one.requests.max(1)) as f64),
        "p50" => Some(one.p50),
        "p99" => Some(one.p99),
        "added_p50" => Some(one.p50 - calm.p50),
        "added_p99" => Some(one.p99 - calm.p99),
        "extra_load" => Some(100.0 * one.extra_load),
        "lost" => Some(one.lost),
        "lost_share" => Some(100.0 * one.lost_share),
        "detection" => one.detection,
        "recovery" => one.recovery,
        "ejections" => Some(one.ejections),
        _ => None,
    }
}

fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

/// Student's t for 95 % on both sides. Beyond the table by the first terms of its expansion about the normal one (Abramowitz
/// and Stegun 26.7.5), which is right to four digits there.
fn student(freedom: usize) -> f64 {
    let nu = freedom as f64;
    let beyond = || 1.959_96 + 2.372_2 / nu + 2.822_6 / (nu * nu);
    freedom.checked_sub(1).and_then(|place| STUDENT.get(place).copied()).unwrap_or_else(beyond)
}

/// From one degree of freedom on.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_interval_is_students() {
        let values: Vec<f64> = (1..=30).map(f64::from).collect();
        let estimate = Estimate::of(&values).unwrap();
        assert_eq!(estimate.mean, 15.5);
        // The deviation of 1 to 30 is 8.803; over the root of 30, times 2.045.
        assert!((estimate.half - 3.287).abs() < 0.001, "{}", estimate.half);
        for (freedom, t) in [(1, 12.706), (30, 2.042), (31, 2.0395), (40, 2.0211), (60, 2.0003), (120, 1.9799)] {
            assert!((student(freedom) - t).abs() < 0.0002, "{freedom}: {}", student(freedom));
        }
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[4.0]).unwrap().half, 0.0);
    }
}
