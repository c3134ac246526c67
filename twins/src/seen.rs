//! What was seen of one contestant in one script, for real or in the lab, and the figures that follow from it.
//!
//! A destination's absence is seen at the destination: a proxy has stopped sending when what comes in the next second is
//! less than a quarter of what came before the fault, and sends again when it is half of it. So a request that tries a
//! destination now and then does not end an absence, and it does not matter what a proxy calls its reason. What comes is
//! attempts: requests, and connections for one that a dead process refuses.

use std::time::Duration;

use lab::meter::{Fate, Trace};
use lab::scenario::{FaultKind, Scenario};
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::lateness::Lateness;

/// Everything that came to clients and to destinations.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Requests.
    pub requests: Vec<Asked>,
    /// Per destination: when requests came to it, in order.
    pub arrivals: Vec<Vec<Timestamp>>,
    /// Per destination: when those of them came whose answer the share of a fault has spoilt, in order.
    pub spoilt: Vec<Vec<Timestamp>>,
    /// Per destination: when it refused connections for requests, in order. `None`: nobody could see, and so nobody knows when a
    /// dead process was given up.
    pub refusals: Option<Vec<Vec<Timestamp>>>,
}

/// What could be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// All.
    Whole,
    /// All but the connections that were refused.
    NoRefusals,
}

/// One request as its client saw it.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// When it should have been sent.
    pub at: Timestamp,
    /// From when it was sent until its answer was whole, or was known not to come.
    pub took: Duration,
    /// How late it was sent: the driver's own doing, before any proxy had it. Zero in the lab.
    pub late: Duration,
    /// How it ended.
    pub fate: Fate,
    /// It fails everywhere.
    pub is_bad: bool,
}

/// The figures that are compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Requests that were counted.
    pub requests: f64,
    /// Of them, those whose client was not served.
    pub failures: f64,
    /// Median of those served, milliseconds.
    pub p50: f64,
    /// 99th percentile of those served, milliseconds.
    pub p99: f64,
    /// One per destination and fault.
    pub absences: Vec<Absence>,
}

/// Whether and when a destination was left out because of a fault.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Absence {
    /// The destination.
    pub destination: String,
    /// Seconds from the fault's (first) beginning until it was sent nothing more; `None`: it never was.
    pub out: Option<f64>,
    /// Seconds from the fault's (last) end until it was sent its requests again; `None` also for who was in and out by turns
    /// when the fault ended.
    pub back: Option<f64>,
    /// Attempts at it from the beginning to the end.
    pub met: f64,
}

impl From<Trace> for Seen {
    fn from(trace: Trace) -> Self {
        let requests = trace.requests.iter().map(|one| Asked {
            at: one.at,
            took: one.took,
            late: Duration::ZERO,
            fate: one.fate,
            is_bad: one.is_bad,
        });
        let requests = requests.collect();
        let Trace { arrivals, spoilt, refusals, .. } = trace;
        Self { requests, arrivals, spoilt, refusals: Some(refusals) }
    }
}

impl Seen {
    /// What is compared of it.
    pub fn figures(&self, scenario: &Scenario) -> Figures {
        let from = Timestamp::ZERO + scenario.warm_up;
        let until = (Timestamp::ZERO + scenario.duration) - TAIL;
        let counted = self.requests.iter().filter(|one| !one.is_bad && one.at >= from && one.at < until);
        let mut served = Vec::new();
        let (mut requests, mut failures) = (0.0, 0.0);
        for one in counted {
            requests += 1.0;
            match one.fate {
                Fate::Served => served.push(one.took.as_secs_f64() * 1e3),
                Fate::Status(_) | Fate::Cut | Fate::GaveUp => failures += 1.0,
            }
        }
        served.sort_by(f64::total_cmp);
        Figures {
            requests,
            failures,
            p50: quantile(&served, 0.5),
            p99: quantile(&served, 0.99),
            absences: self.absences(scenario),
        }
    }

    /// How late the driver was.
    pub fn lateness(&self) -> Lateness {
        Lateness::of(self)
    }

    /// What could be seen.
    pub fn sight(&self) -> Sight {
        match self.refusals {
            Some(_) => Sight::Whole,
            None => Sight::NoRefusals,
        }
    }

    /// The same without what only some can see, for a comparison with who could not.
    pub fn without_refusals(self) -> Self {
        Self { refusals: None, ..self }
    }

    /// All attempts at a destination, in order.
    fn attempts(&self, destination: usize) -> Vec<Timestamp> {
        let refusals = self.refusals.as_ref().and_then(|refusals| refusals.get(destination));
        let arrivals = self.arrivals.get(destination);
        let mut attempts: Vec<Timestamp> = arrivals.into_iter().chain(refusals).flatten().copied().collect();
        attempts.sort_unstable();
        attempts
    }

    /// How many attempts were made at a destination in each second.
    pub fn lane(&self, destination: usize, scenario: &Scenario) -> Vec<u32> {
        let mut lane = vec![0; scenario.duration.as_secs() as usize + 1];
        for at in self.attempts(destination) {
            if let Some(sum) = lane.get_mut(at.as_secs_f64() as usize) {
                *sum += 1;
            }
        }
        lane
    }

    fn absences(&self, scenario: &Scenario) -> Vec<Absence> {
        let first = scenario.faults.iter().filter_map(|fault| Some(fault.windows.first()?.0)).min();
        let Some(first) = first else { return Vec::new() };
        let mut absences = Vec::new();
        for fault in &scenario.faults {
            let (Some((begin, _)), Some((_, end))) = (fault.windows.first(), fault.windows.last()) else { continue };
            if fault.on.len() == scenario.destinations.len() {
                // Who is to be left out when all are alike is a matter of chance.
                continue;
            }
            let end = (*end).min(Timestamp::ZERO + scenario.duration);
            for place in fault.on.iter().copied() {
                let Some(server) = scenario.destinations.get(place) else { continue };
                let attempts = &self.attempts(place);
                let usual = Usual::of(attempts, Timestamp::ZERO + scenario.warm_up, first);
                let is_dead = matches!(fault.kind, FaultKind::Crash | FaultKind::Refuse);
                let is_seen = !is_dead || self.refusals.is_some();
                let out = usual.stops(attempts, *begin, end.max(*begin + WINDOW * 2));
                let back =
                    out.filter(|out| usual.stays(attempts, *out, end)).and_then(|_| usual.returns(attempts, end));
                absences.push(Absence {
                    destination: server.id.clone(),
                    out: out.filter(|_| is_seen).map(|at| at.since(*begin).as_secs_f64()),
                    back: back.map(|at| at.since(end).as_secs_f64()),
                    met: attempts.iter().filter(|at| **at >= *begin && **at < end).count() as f64,
                });
            }
        }
        absences
    }
}

/// What comes to a destination in a window while nothing is wrong.
#[derive(Clone, Copy, Debug)]
struct Usual(f64);

impl Usual {
    fn of(arrivals: &[Timestamp], from: Timestamp, until: Timestamp) -> Self {
        let count = arrivals.iter().filter(|at| **at >= from && **at < until).count();
        Self(count as f64 * WINDOW.as_secs_f64() / until.since(from).as_secs_f64().max(1e-9))
    }

    /// The last of its arrivals (or `begin`) after which a window has too few.
    fn stops(self, arrivals: &[Timestamp], begin: Timestamp, limit: Timestamp) -> Option<Timestamp> {
        let starts = std::iter::once(begin).chain(arrivals.iter().copied().filter(|at| *at > begin && *at < limit));
        starts.into_iter().find(|start| f64::from(after(arrivals, *start)) < self.0 * STOPPED)
    }

    /// Whether it is left out up to `end` and not in and out by turns.
    fn stays(self, arrivals: &[Timestamp], out: Timestamp, end: Timestamp) -> bool {
        let from = out.max(end - STEADY);
        let count = arrivals.iter().filter(|at| **at > from && **at < end).count();
        count as f64 * WINDOW.as_secs_f64() <= self.0 * STOPPED * end.since(from).as_secs_f64().max(0.1)
    }

    /// The first of its arrivals from `end` on from which a window has enough.
    fn returns(self, arrivals: &[Timestamp], end: Timestamp) -> Option<Timestamp> {
        let starts = arrivals.iter().copied().filter(|at| *at >= end);
        starts.into_iter().find(|start| f64::from(after(arrivals, *start) + 1) >= self.0 * RETURNED)
    }
}

/// How many come in the window after `start`.
fn after(arrivals: &[Timestamp], start: Timestamp) -> u32 {
    arrivals.iter().filter(|at| **at > start && **at <= start + WINDOW).count() as u32
}

/// The value of a sorted list that this share lies below; 0 of an empty one.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

const WINDOW: Duration = Duration::from_secs(1);
const STEADY: Duration = Duration::from_secs(3);
const STOPPED: f64 = 0.25;
const RETURNED: f64 = 0.5;
/// What begins so shortly before the end may not be over by then in the lab.
const TAIL: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn every(millis: u64, from: u64, until: u64) -> impl Iterator<Item = Timestamp> {
        (from..until).step_by(millis as usize).map(|at| Timestamp::ZERO + Duration::from_millis(at))
    }

    #[test]
    fn an_absence_begins_with_the_last_request_and_ends_with_the_first_of_many() {
        let text = "version: 1\ntitle: t\nduration: 40s\nwarm_up: 2s\ntraffic: [{arrivals: poisson, rate: 50/s}]\n\
                    destinations: [{ids: [a, b], service: {constant: 1ms}}]\n\
                    faults: [{kind: hang, on: [b], at: 10s, lasts: 10s}]\n";
        let scenario = lab::scenario::read(text, &|_| Err(String::new())).unwrap();
        let tries = every(1000, 13_000, 24_000);
        let b: Vec<Timestamp> = every(20, 0, 12_500).chain(tries).chain(every(20, 24_000, 40_000)).collect();
        let seen = Seen { arrivals: vec![Vec::new(), b], ..Seen::default() };
        let figures = seen.figures(&scenario);
        let [absence] = &figures.absences[..] else { panic!("{figures:?}") };
        assert!((absence.out.unwrap() - 2.25).abs() < 0.3, "{absence:?}");
        assert!((absence.back.unwrap() - 4.0).abs() < 1e-6, "{absence:?}");
        let stays = Seen { arrivals: vec![Vec::new(), every(20, 0, 40_000).collect()], ..Seen::default() };
        let absence = stays.figures(&scenario).absences.remove(0);
        assert_eq!((absence.out, absence.back), (None, None));
    }

    #[test]
    fn a_dead_process_is_given_up_with_the_last_attempt_and_nobody_knows_when_who_saw_none() {
        let text = "version: 1\ntitle: t\nduration: 40s\nwarm_up: 2s\ntraffic: [{arrivals: poisson, rate: 50/s}]\n\
                    destinations: [{ids: [a, b], service: {constant: 1ms}}]\n\
                    faults: [{kind: crash, on: [b], at: 10s, lasts: 10s}]\n";
        let scenario = lab::scenario::read(text, &|_| Err(String::new())).unwrap();
        let arrivals = vec![Vec::new(), every(20, 0, 10_000).chain(every(20, 21_000, 40_000)).collect()];
        let refusals = Some(vec![Vec::new(), every(20, 10_000, 13_000).collect()]);
        let seen = Seen { arrivals, refusals, ..Seen::default() };
        let absence = seen.figures(&scenario).absences.remove(0);
        // Less than a quarter of what is usual is left in the window after 2.74 s.
        assert!((absence.out.unwrap() - 2.74).abs() < 0.03, "{absence:?}");
        assert!((absence.back.unwrap() - 1.0).abs() < 1e-6 && absence.met == 150.0, "{absence:?}");
        let absence = seen.without_refusals().figures(&scenario).absences.remove(0);
        assert_eq!((absence.out, absence.met), (None, 0.0));
        assert!((absence.back.unwrap() - 1.0).abs() < 1e-6, "{absence:?}");
    }
}
