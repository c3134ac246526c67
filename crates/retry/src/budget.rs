//! The retry budget of a cluster, in integer milli-tokens.
//!
//! What the retries of any ten seconds cost is at most a share (0.2 tokens unless told otherwise) of the attempts that ended
//! well in ten seconds, or a floor (3 tokens a second) where that is more, so that a quiet cluster may still retry. What was
//! spent is remembered for as long as what was earned: nothing is saved up for a burst beyond it, and where a dependency of
//! all fails in part, retries add no more than their share. A retry costs 1; after a timeout 2, since it has held resources for long;
//! of a request that was provably not sent 0.25. Source: Finagle's RetryBudget, whose deposits live as long, and whose
//! savings come on top; prices of our own.

use std::collections::VecDeque;
use std::time::Duration;

use model::retry::RetryBudget;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

/// A price or a balance, in thousandths of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cost(pub u32);

impl Cost {
    /// The one free resend after a stale reused connection.
    pub const FREE: Self = Self(0);
    /// Of a request that was provably not sent.
    pub const UNSENT: Self = Self(250);
    /// Of a request that was sent.
    pub const SENT: Self = Self(1000);
    /// After a timeout.
    pub const TIMEOUT: Self = Self(2000);
}

/// What each attempt that ends well deposits under these settings.
pub fn deposit(budget: RetryBudget) -> Cost {
    Cost(u32::from(budget.percent) * 10)
}

/// How long what was earned and what was spent count.
pub const TTL: Duration = Duration::from_secs(10);

/// What a cluster earned and spent of late.
#[derive(Clone, Debug)]
pub struct Ledger {
    since: Timestamp,
    steps: VecDeque<Step>,
}

/// What was earned and spent in half a second, in milli-tokens.
#[derive(Clone, Copy, Debug)]
struct Step {
    number: u64,
    earned: u64,
    /// Below zero where a step gives back what the one before has taken.
    spent: i64,
}

impl Ledger {
    /// Of a cluster that begins at `now`: it may spend the floor's first second at once, so that a failure right after the
    /// start may be retried.
    pub fn new(now: Timestamp) -> Self {
        Self { since: now, steps: VecDeque::new() }
    }

    /// `ok` attempts ended well.
    pub fn earn(&mut self, now: Timestamp, budget: RetryBudget, ok: u64) {
        let step = self.step(now);
        step.earned = step.earned.saturating_add(ok.saturating_mul(u64::from(deposit(budget).0)));
    }

    /// Retries took so many milli-tokens; below zero, gave them back.
    pub fn spend(&mut self, now: Timestamp, spent: i64) {
        let step = self.step(now);
        step.spent = step.spent.saturating_add(spent);
    }

    /// What retries may cost from `now` on.
    pub fn left(&mut self, now: Timestamp, budget: RetryBudget) -> Cost {
        self.step(now);
        let (earned, spent) = self.steps.iter().fold((0u64, 0i64), |(earned, spent), step| {
            (earned.saturating_add(step.earned), spent.saturating_add(step.spent))
        });
        let allowed = earned.max(floor(budget, now.since(self.since)));
        let left = allowed.saturating_sub(u64::try_from(spent).unwrap_or(0));
        Cost(u32::try_from(left).unwrap_or(u32::MAX))
    }

    fn step(&mut self, now: Timestamp) -> &mut Step {
        let number = now.as_nanos() / STEP_NANOS;
        while self.steps.front().is_some_and(|step| step.number + STEPS <= number) {
            self.steps.pop_front();
        }
        // A time that runs backwards counts as the latest one.
        let last = self.steps.pop_back_if(|last| last.number >= number);
        self.steps.push_back_mut(last.unwrap_or(Step { number, earned: 0, spent: 0 }))
    }
}

/// What the floor alone allows at this age, in milli-tokens.
fn floor(budget: RetryBudget, age: Duration) -> u64 {
    let millis = (age + SECOND).min(TTL).as_millis().saturating_mul(u128::from(budget.per_second));
    u64::try_from(millis).unwrap_or(u64::MAX)
}

const SECOND: Duration = Duration::from_secs(1);
const STEP_NANOS: u64 = 500_000_000;
/// [`TTL`] in steps.
const STEPS: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    const NATIVE: RetryBudget = RetryBudget::NATIVE;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// Retries of this price that are paid for at `now`, at most so many.
    fn retries(ledger: &mut Ledger, now: Timestamp, cost: Cost, most: usize) -> usize {
        (0..most)
            .take_while(|_| {
                let is_paid = ledger.left(now, NATIVE) >= cost;
                if is_paid {
                    ledger.spend(now, i64::from(cost.0));
                }
                is_paid
            })
            .count()
    }

    #[test]
    fn a_quiet_cluster_may_retry_three_times_a_second() {
        let mut ledger = Ledger::new(at(0));
        let each: Vec<_> = (0..30).map(|second| retries(&mut ledger, at(second * 1000), Cost::SENT, 100)).collect();
        assert_eq!(each.iter().take(10).sum::<usize>(), 30);
        for ten in each.windows(10) {
            assert!(ten.iter().sum::<usize>() <= 30, "{each:?}");
        }
        assert_eq!(each.iter().sum::<usize>(), 90);
    }

    #[test]
    fn a_busy_cluster_may_retry_a_fifth_of_its_traffic_and_saves_nothing_beyond_it() {
        let mut ledger = Ledger::new(at(0));
        let mut each = Vec::new();
        for second in 0..60 {
            ledger.earn(at(second * 1000), NATIVE, 100);
            // Half a minute nothing is to be repeated, then everything.
            each.push(if second < 30 { 0 } else { retries(&mut ledger, at(second * 1000), Cost::SENT, 100) });
        }
        for ten in each.windows(10) {
            assert!(ten.iter().sum::<usize>() <= 200, "{each:?}");
        }
        assert_eq!(each.iter().sum::<usize>(), 600, "{each:?}");
    }

    #[test]
    fn a_timeout_costs_double_and_an_unsent_request_a_quarter() {
        for (cost, n) in [(Cost::UNSENT, 12), (Cost::SENT, 3), (Cost::TIMEOUT, 1)] {
            assert_eq!(retries(&mut Ledger::new(at(0)), at(0), cost, 100), n, "{cost:?}");
        }
    }

    #[test]
    fn what_was_earned_expires_and_the_floor_stops_at_its_own_ten_seconds() {
        let mut ledger = Ledger::new(at(0));
        ledger.earn(at(0), NATIVE, 100_000);
        assert_eq!(ledger.left(at(9_400), NATIVE), Cost(20_000_000));
        assert_eq!(ledger.left(at(10_000), NATIVE), Cost(30_000));
        assert_eq!(ledger.left(at(1_000_000), NATIVE), Cost(30_000));
        assert_eq!(ledger.left(at(1_000_000), RetryBudget { percent: 0, per_second: 0 }), Cost(0));
    }

    #[test]
    fn what_is_given_back_may_be_spent_again() {
        let mut ledger = Ledger::new(at(0));
        assert_eq!(retries(&mut ledger, at(0), Cost::SENT, 100), 3);
        ledger.spend(at(700), -1000);
        assert_eq!(ledger.left(at(700), NATIVE), Cost(5_100 - 2_000));
    }

    #[test]
    fn time_that_runs_backwards_forgets_nothing() {
        let mut ledger = Ledger::new(at(5000));
        ledger.earn(at(9000), NATIVE, 1000);
        ledger.spend(at(1000), 150_000);
        assert_eq!(ledger.left(at(1000), NATIVE), Cost(50_000));
        assert_eq!(ledger.left(at(9000), NATIVE), Cost(50_000));
    }
}
