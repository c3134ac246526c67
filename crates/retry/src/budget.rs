//! The retry budget of a cluster: a token bucket in integer milli-tokens.
//!
//! Each attempt that ends well pays a deposit (0.2 tokens unless told otherwise) and a floor brings tokens each second (3), so that in
//! the long run retries stay near a fifth of what is served while a quiet cluster may still retry. What is not used expires: the balance leaks with
//! a time constant of 10 s (one number in place of a queue of deposits), so the floor alone never piles up more than
//! 30 tokens. A retry costs 1; after a timeout 2, since it has held resources for long; of a request that was provably
//! not sent 0.25. Source: Finagle's RetryBudget, with prices of our own.
//!
//! Two users: [`Bucket`] for one thread with a clock, and [`income`] and [`leak`] for a balance that lives in an atomic
//! and is corrected at a tick.

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

/// How long a deposit counts, on average.
pub const TTL: Duration = Duration::from_secs(10);

/// What the floor brings in `elapsed`, traffic or not, in milli-tokens.
pub fn income(budget: RetryBudget, elapsed: Duration) -> u32 {
    let millis = elapsed.as_millis().saturating_mul(u128::from(budget.per_second));
    u32::try_from(millis).unwrap_or(u32::MAX)
}

/// What expires of a balance in `elapsed`, in milli-tokens; never more than there is.
pub fn leak(balance: u32, elapsed: Duration) -> u32 {
    let gone = u128::from(balance) * elapsed.min(TTL).as_nanos() / TTL.as_nanos();
    u32::try_from(gone).unwrap_or(balance)
}

/// A bucket with the settings of the native format. Starts with the floor's first second, so that a failure right after start may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    balance: u32,
    /// Up to when the time has been accounted for.
    at: Timestamp,
}

impl Bucket {
    /// A bucket that starts at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { balance: income(RetryBudget::NATIVE, SECOND), at: now }
    }

    /// Lets time pass: income of the floor, expiry of the rest. Earlier times than before change nothing.
    pub fn advance(&mut self, now: Timestamp) {
        // Less than 10 ms stays on the clock, so that frequent calls lose nothing to rounding.
        while now.since(self.at) >= STEP {
            let elapsed = now.since(self.at);
            let elapsed = if elapsed >= TTL { elapsed } else { STEP };
            self.at = self.at + elapsed;
            // Long gaps end where the two rates meet.
            let most = if elapsed > STEP { income(RetryBudget::NATIVE, TTL) } else { u32::MAX };
            let rest = self.balance - leak(self.balance, elapsed);
            self.balance = rest.saturating_add(income(RetryBudget::NATIVE, elapsed)).min(most);
        }
    }

    /// `count` attempts ended well.
    pub fn deposit(&mut self, now: Timestamp, count: u32) {
        self.advance(now);
        self.balance = self.balance.saturating_add(count.saturating_mul(deposit(RetryBudget::NATIVE).0));
    }

    /// Takes the price of one retry; false when it is not there, and then nothing is taken.
    #[must_use]
    pub fn withdraw(&mut self, now: Timestamp, cost: Cost) -> bool {
        self.advance(now);
        match self.balance.checked_sub(cost.0) {
            Some(rest) => {
                self.balance = rest;
                true
            }
            None => false,
        }
    }

    /// What is there, in milli-tokens.
    pub fn balance(&self) -> u32 {
        self.balance
    }
}

const STEP: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_quiet_cluster_may_retry_three_times_a_second() {
        let mut bucket = Bucket::new(at(0));
        for second in 0..5 {
            let now = at(second * 1000);
            let n = (0..10).filter(|_| bucket.withdraw(now, Cost::SENT)).count();
            assert!((2..=3).contains(&n), "{n} in second {second}");
        }
    }

    #[test]
    fn a_busy_cluster_may_retry_a_fifth_of_its_traffic() {
        let mut bucket = Bucket::new(at(0));
        while bucket.withdraw(at(0), Cost::SENT) {}
        bucket.deposit(at(0), 1000);
        let n = (0..1000).filter(|_| bucket.withdraw(at(0), Cost::SENT)).count();
        assert_eq!(n, 200);
    }

    #[test]
    fn a_timeout_costs_double_and_an_unsent_request_a_quarter() {
        for (cost, n) in [(Cost::UNSENT, 12), (Cost::SENT, 3), (Cost::TIMEOUT, 1)] {
            let mut bucket = Bucket::new(at(0));
            assert_eq!((0..100).filter(|_| bucket.withdraw(at(0), cost)).count(), n, "{cost:?}");
        }
    }

    #[test]
    fn deposits_expire_and_the_floor_stops_at_its_own_ten_seconds() {
        let mut bucket = Bucket::new(at(0));
        bucket.deposit(at(0), 100_000);
        bucket.advance(at(9_990));
        // A third or so of the deposits is left after one time constant.
        assert!((7_000_000..7_700_000).contains(&bucket.balance()), "{}", bucket.balance());
        bucket.advance(at(100_000));
        assert_eq!(bucket.balance(), income(RetryBudget::NATIVE, TTL));
        let mut quiet = Bucket::new(at(0));
        (0..100).for_each(|second| quiet.advance(at(second * 1000)));
        assert!(
            quiet.balance() <= income(RetryBudget::NATIVE, TTL)
                && quiet.balance() > income(RetryBudget::NATIVE, TTL) - 1000,
            "{}",
            quiet.balance()
        );
    }

    #[test]
    fn frequent_calls_lose_no_income() {
        let mut bucket = Bucket::new(at(0));
        while bucket.withdraw(at(0), Cost::UNSENT) {}
        for micros in (0..1_000_000u64).step_by(300) {
            bucket.advance(Timestamp::from_nanos(micros * 1000));
        }
        bucket.advance(at(1000));
        let mut once = Bucket::new(at(0));
        while once.withdraw(at(0), Cost::UNSENT) {}
        once.advance(at(1000));
        assert_eq!(bucket.balance(), once.balance());
    }

    #[test]
    fn time_that_runs_backwards_changes_nothing() {
        let mut bucket = Bucket::new(at(5000));
        let before = bucket;
        bucket.advance(at(1000));
        assert_eq!(bucket, before);
    }
}
