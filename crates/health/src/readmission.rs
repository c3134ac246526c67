//! The way back of an ejected destination.
//!
//! ```text
//!            ejected (time grows with each failed way back)
//!   In ───────────────────────────────────────────────────> Out
//!    ^                                                       │ time is over
//!    │              a trial failed: out again, longer        v
//!    │ ramp's end  <──────────────────────────────────── Canaries ──┐ a trial passed
//!    │                                                       │  ^───┘ (a passed probe, where no trial comes)
//!    └──────────────── Ramp <── enough passed, or long quiet ┘
//! ```
//!
//! One that its probes took out while it was a suspect goes from `In` to `Ramp` when they let it in again. Without trials: where
//! probes failed because all were late together, a cluster of destinations that take one request at a time would not end it.
//!
//! The time of an ejection doubles with each failed way back, not with each ejection: a good server with a hiccup once a
//! minute is not starved, a dead one is asked ever more seldom. A passed way back takes three doublings off, ten quiet
//! seconds one.

use std::time::Duration;

use model::random::Random;
use model::ratio::Ratio;
use model::readmission::Readmission;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

/// How far a destination is on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comeback {
    /// Doublings of the next ejection.
    doublings: u32,
    phase: Phase,
}

/// Where it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Phase {
    In {
        since: Timestamp,
    },
    Out,
    Canaries {
        passed: u32,
        /// The last sign, or the beginning.
        heard_at: Timestamp,
    },
    Ramp {
        since: Timestamp,
    },
}

impl Default for Comeback {
    fn default() -> Self {
        Self { doublings: 0, phase: Phase::In { since: Timestamp::ZERO } }
    }
}

impl Comeback {
    /// New among others: begins with the least share.
    pub(crate) fn newcomer(now: Timestamp) -> Self {
        Self { doublings: 0, phase: Phase::Ramp { since: now } }
    }

    /// It is ejected. Gives how long for.
    pub(crate) fn ejected(&mut self, rule: &Readmission, now: Timestamp, random: &mut Random) -> Duration {
        match self.phase {
            Phase::In { since } => {
                let quiet = u32::try_from(now.since(since).as_secs() / FORGIVEN_AFTER.as_secs()).unwrap_or(u32::MAX);
                self.doublings = self.doublings.saturating_sub(quiet);
            }
            Phase::Canaries { .. } | Phase::Ramp { .. } => self.doublings = (self.doublings + 1).min(MOST_DOUBLINGS),
            Phase::Out => {}
        }
        self.phase = Phase::Out;
        let plain = rule.first.saturating_mul(1 << self.doublings).min(rule.longest.max(rule.first));
        plain.mul_f64(1.0 + rule.jitter.get() * (2.0 * random.unit() - 1.0))
    }

    /// Somebody says that it is good.
    pub(crate) fn cleared(&mut self, now: Timestamp) {
        if self.phase == Phase::Out {
            self.phase = Phase::In { since: now };
        }
    }

    /// The ejection is over.
    pub(crate) fn readmitted(&mut self, rule: &Readmission, now: Timestamp) {
        self.phase = Phase::Canaries { passed: 0, heard_at: now };
        self.go_on(rule, now);
    }

    /// It was out on other grounds, and what let it in again stands for trials.
    pub(crate) fn on_ramp(&mut self, rule: &Readmission, now: Timestamp) {
        if let Phase::In { .. } = self.phase {
            self.phase = Phase::Ramp { since: now };
            self.go_on(rule, now);
        }
    }

    /// Whether requests go one at a time.
    pub(crate) fn is_gated(&self) -> bool {
        matches!(self.phase, Phase::Canaries { .. })
    }

    /// So many trials passed.
    pub(crate) fn passed(&mut self, rule: &Readmission, n: u64, now: Timestamp) {
        if let Phase::Canaries { passed, heard_at } = &mut self.phase {
            *passed = passed.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
            *heard_at = now;
            self.go_on(rule, now);
        }
    }

    /// A probe passed: it stands in where no trial comes.
    pub(crate) fn probe_passed(&mut self, rule: &Readmission, now: Timestamp) {
        if let Phase::Canaries { passed, heard_at } = &mut self.phase
            && now.since(*heard_at) >= rule.patience
        {
            // The next one counts at once: only a trial makes probes wait again.
            *passed = passed.saturating_add(1);
            self.go_on(rule, now);
        }
    }

    /// When something changes by time alone.
    pub(crate) fn due_at(&self, rule: &Readmission, now: Timestamp) -> Option<Timestamp> {
        match self.phase {
            Phase::In { .. } | Phase::Out => None,
            Phase::Canaries { heard_at, .. } => Some(heard_at + rule.quiet),
            Phase::Ramp { since } => {
                let step = rule.ramp / STEPS;
                let taken = now.since(since).as_nanos().checked_div(step.as_nanos()).unwrap_or(0);
                Some(since + step.saturating_mul(u32::try_from(taken).unwrap_or(STEPS).saturating_add(1)))
            }
        }
    }

    /// Time has passed.
    pub(crate) fn go_on(&mut self, rule: &Readmission, now: Timestamp) {
        if let Phase::Canaries { passed, heard_at } = self.phase
            && (passed >= rule.canaries || now.since(heard_at) >= rule.quiet)
        {
            self.phase = Phase::Ramp { since: now };
        }
        if let Phase::Ramp { since } = self.phase
            && now.since(since) >= rule.ramp
        {
            self.doublings = self.doublings.saturating_sub(FORGIVEN_AT_END);
            self.phase = Phase::In { since: now };
        }
    }

    /// The part of its weight that the way back leaves it.
    pub(crate) fn share(&self, rule: &Readmission, now: Timestamp) -> Ratio {
        match self.phase {
            Phase::In { .. } | Phase::Out | Phase::Canaries { .. } => Ratio::ONE,
            Phase::Ramp { since } => {
                let step = (rule.ramp / STEPS).as_nanos();
                let taken = now.since(since).as_nanos().checked_div(step).unwrap_or(u128::from(STEPS));
                let part = taken.min(u128::from(STEPS)) as f64 / f64::from(STEPS);
                let least = rule.least_share.get();
                Ratio::new(least + (1.0 - least) * part).unwrap_or(Ratio::ONE)
            }
        }
    }
}

/// The ramp rises in so many steps.
const STEPS: u32 = 10;
/// In good standing so long, one doubling is forgiven.
const FORGIVEN_AFTER: Duration = Duration::from_secs(10);
/// Doublings forgiven by a passed way back.
const FORGIVEN_AT_END: u32 = 3;
/// 2 s doubled so often are 36 h.
const MOST_DOUBLINGS: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_secs(seconds)
    }

    fn rule() -> Readmission {
        let (longest, ramp) = (Duration::from_secs(60), Duration::from_secs(10));
        Readmission { longest, ramp, jitter: Ratio::ZERO, ..Readmission::default() }
    }

    #[test]
    fn a_failed_way_back_doubles_the_next_ejection_and_a_passed_one_forgives_three_doublings() {
        let (rule, mut random) = (rule(), Random::new(1));
        let mut one = Comeback::default();
        let mut seen = Vec::new();
        for round in 0..8 {
            seen.push(one.ejected(&rule, at(100 * round), &mut random).as_secs());
            one.readmitted(&rule, at(100 * round + 70));
            assert!(one.is_gated());
        }
        assert_eq!(seen, [2, 4, 8, 16, 32, 60, 60, 60]);
        one.passed(&rule, 3, at(800));
        assert!(!one.is_gated());
        one.go_on(&rule, at(810));
        // Seven failed ways back less three.
        assert_eq!(one.ejected(&rule, at(811), &mut random).as_secs(), 32);
        one.readmitted(&rule, at(900));
        one.passed(&rule, 3, at(900));
        one.go_on(&rule, at(910));
        assert_eq!(one.ejected(&rule, at(1000), &mut random).as_secs(), 2);
    }

    #[test]
    fn probes_stand_in_for_trials_that_do_not_come() {
        let rule = rule();
        let mut one = Comeback::default();
        one.ejected(&rule, at(0), &mut Random::new(1));
        one.readmitted(&rule, at(2));
        one.probe_passed(&rule, at(3));
        for second in [7, 8, 9] {
            assert!(one.is_gated());
            one.probe_passed(&rule, at(second));
        }
        assert!(!one.is_gated());
        assert_eq!(one.share(&rule, at(9)), rule.least_share);
        assert_eq!(one.share(&rule, at(14)).get(), 0.55);
        one.go_on(&rule, at(19));
        assert_eq!(one.share(&rule, at(19)), Ratio::ONE);
        assert_eq!(one.due_at(&rule, at(19)), None);
    }

    #[test]
    fn without_any_sign_the_ramp_begins_after_the_quiet_time() {
        let rule = rule();
        let mut one = Comeback::default();
        one.readmitted(&rule, at(2));
        assert_eq!(one.due_at(&rule, at(2)), Some(at(62)));
        one.go_on(&rule, at(62));
        assert!(!one.is_gated());
        assert_eq!(one.due_at(&rule, at(62)), Some(at(63)));
    }

    #[test]
    fn without_canaries_and_ramp_it_is_in_at_once() {
        let rule = Readmission { canaries: 0, ramp: Duration::ZERO, ..rule() };
        let mut one = Comeback::default();
        one.ejected(&rule, at(1), &mut Random::new(1));
        one.readmitted(&rule, at(3));
        assert!(!one.is_gated());
        assert_eq!((one.share(&rule, at(3)), one.due_at(&rule, at(3))), (Ratio::ONE, None));
    }
}
