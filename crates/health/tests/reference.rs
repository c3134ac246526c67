//! A naive model of the same rules: it keeps everything that ever happened to one destination and works each value out
//! from the start, every time. No timers, no shared state, no clever sums.
//!
//! It knows ConsecutiveFailures, our TransportFailureRate (by the whole second, as its window of 60 s has buckets of one)
//! and our MaxFails, and nothing of schedules: it is told which probes were judged and what traffic came to.

use std::time::Duration;

use model::health::{Health, HealthPair};
use model::outcome::{Outcome, OutcomeClass};
use model::time::Timestamp;

/// What happened to a destination.
#[derive(Clone, Copy, Debug)]
pub enum Fact {
    /// A probe passed.
    Passed,
    /// A probe failed that began then; it may have been refused.
    Failed { began_at: Timestamp, is_mute: bool },
    /// An attempt ended that was picked then.
    Outcome { picked_at: Timestamp, outcome: Outcome },
    /// So many good attempts.
    Sum { ok: u64 },
    /// Set from outside.
    Active(Health),
    /// Set from outside, for so long.
    Passive(Health, Duration),
}

/// The rules in force.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub threshold: u32,
    pub healthy_threshold: u32,
    pub rate_limit: f64,
    pub minimum: u64,
    pub max_fails: u32,
    pub fail_timeout: Duration,
    pub period: Duration,
}

/// All that happened to one destination, in order.
#[derive(Clone, Debug, Default)]
pub struct History {
    facts: Vec<(Timestamp, Fact)>,
}

impl History {
    pub fn add(&mut self, at: Timestamp, fact: Fact) {
        self.facts.push((at, fact));
    }

    /// Both values at `now`, and when the ejection ends.
    pub fn values(&self, now: Timestamp, rules: &Rules) -> (HealthPair, Option<Timestamp>) {
        let (passive, until) = self.passive(now, rules);
        (HealthPair::new(self.active(rules), passive), until)
    }

    fn active(&self, rules: &Rules) -> Health {
        let mut value = Health::Unknown;
        let (mut failed, mut passed) = (0, 0);
        let mut good_at: Option<Timestamp> = None;
        for (at, fact) in &self.facts {
            match fact {
                Fact::Active(set) => value = *set,
                Fact::Passed => {
                    (failed, passed) = (0, passed + 1);
                    if value != Health::Unhealthy || passed >= rules.healthy_threshold {
                        value = Health::Healthy;
                    }
                }
                Fact::Failed { began_at, is_mute } => {
                    (failed, passed) = (failed + 1, 0);
                    let is_answering = good_at.is_some_and(|good| good >= *began_at || at.since(good) <= LATELY);
                    if failed >= rules.threshold && !(*is_mute && is_answering) {
                        value = Health::Unhealthy;
                    }
                }
                Fact::Sum { ok } if *ok > 0 => good_at = Some(*at),
                Fact::Outcome { outcome, .. } if outcome.class == OutcomeClass::Ok => good_at = Some(*at),
                Fact::Outcome { .. } | Fact::Sum { .. } | Fact::Passive(..) => {}
            }
        }
        value
    }

    fn passive(&self, now: Timestamp, rules: &Rules) -> (Health, Option<Timestamp>) {
        let mut value = Health::Unknown;
        let mut ejected_at: Option<Timestamp> = None;
        // Facts before this index are cut off from both histories.
        let mut cut = 0;
        let mut until: Option<Timestamp> = None;
        for (index, (at, fact)) in self.facts.iter().enumerate() {
            if until.is_some_and(|until| until <= *at) {
                (value, until, cut) = (Health::Unknown, None, index);
            }
            let eject_for = match fact {
                Fact::Passed | Fact::Failed { .. } | Fact::Active(_) => None,
                Fact::Passive(Health::Unhealthy, period) => Some(*period),
                Fact::Passive(set, _) => {
                    (value, until) = (*set, None);
                    None
                }
                Fact::Sum { ok: 0 } => None,
                Fact::Sum { .. } => {
                    if value == Health::Unknown {
                        value = Health::Healthy;
                    }
                    None
                }
                Fact::Outcome { picked_at, .. } if ejected_at.is_some_and(|ejected| is_old(*picked_at, ejected)) => {
                    None
                }
                Fact::Outcome { outcome, .. } if outcome.class == OutcomeClass::Ok => {
                    if value == Health::Unknown {
                        value = Health::Healthy;
                    }
                    None
                }
                Fact::Outcome { .. } => self.trips(index, cut, ejected_at, rules),
            };
            if let Some(period) = eject_for {
                (value, until, ejected_at, cut) = (Health::Unhealthy, Some(*at + period), Some(*at), index + 1);
            }
        }
        if until.is_some_and(|until| until <= now) {
            (value, until) = (Health::Unknown, None);
        }
        (value, until)
    }

    /// Whether the failure at `index` trips a policy, and for how long it ejects. The rate is asked first.
    fn trips(&self, index: usize, cut: usize, ejected_at: Option<Timestamp>, rules: &Rules) -> Option<Duration> {
        let (now, _) = self.facts[index];
        let second = |at: Timestamp| at.as_nanos() / 1_000_000_000;
        let seen = self.facts[cut..=index].iter().filter(|(_, fact)| match fact {
            Fact::Outcome { picked_at, .. } => ejected_at.is_none_or(|ejected| !is_old(*picked_at, ejected)),
            _ => true,
        });
        let (mut failed, mut total, mut count) = (0, 0, 0);
        for (at, fact) in seen {
            let is_recent = second(*at) + 60 > second(now);
            match fact {
                Fact::Sum { ok } if is_recent => total += ok,
                Fact::Outcome { outcome, .. } => {
                    if is_recent && outcome.class != OutcomeClass::Neutral {
                        total += 1;
                        failed += u64::from(is_transport(outcome));
                    }
                    count += u32::from(is_failed(outcome) && now.since(*at) <= rules.fail_timeout);
                }
                _ => {}
            }
        }
        let Fact::Outcome { outcome, .. } = &self.facts[index].1 else { return None };
        let is_rate =
            is_transport(outcome) && total >= rules.minimum && failed as f64 / total as f64 >= rules.rate_limit;
        if is_rate {
            return Some(rules.period);
        }
        (is_failed(outcome) && count >= rules.max_fails).then_some(rules.period)
    }
}

fn is_transport(outcome: &Outcome) -> bool {
    is_failed(outcome) && outcome.failure.is_some()
}

fn is_failed(outcome: &Outcome) -> bool {
    !matches!(outcome.class, OutcomeClass::Ok | OutcomeClass::Neutral | OutcomeClass::Overload | OutcomeClass::Slow)
}

/// Picked before the ejection had reached every worker.
fn is_old(picked_at: Timestamp, ejected_at: Timestamp) -> bool {
    picked_at < ejected_at + Duration::from_millis(10)
}

/// A good answer of so long ago still speaks against a probe that got none.
const LATELY: Duration = Duration::from_millis(500);
