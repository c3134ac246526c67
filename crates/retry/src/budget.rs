//! The retry budget of a cluster: a token bucket in integer milli-tokens.
//!
//! Each first attempt pays a deposit of 0.2 tokens that expires after 10 s, so retries stay below a fifth of the recent
//! traffic; a floor of 3 tokens a second keeps a quiet cluster from being denied every retry. Deposits that expire are
//! modelled as a steady leak over the same 10 s (the balance decays towards zero with that time constant, floor
//! excluded), which needs two numbers in place of a queue. Source: Finagle's RetryBudget, with prices of our own: a
//! retry after a timeout costs double since it has held resources for long, one of a request that was provably not
//! sent a quarter.

use std::time::Duration;

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
    /// What each first attempt deposits.
    pub const DEPOSIT: Self = Self(200);
}

/// How long a deposit counts.
pub const TTL: Duration = Duration::from_secs(10);

/// The floor: milli-tokens that come in each second, traffic or not.
pub const FLOOR_PER_SECOND: u32 = 3000;

/// The most that the floor alone piles up: its income over [`TTL`].
pub const FLOOR_CAP: u64 = FLOOR_PER_SECOND as u64 * TTL.as_secs();

/// A bucket. Starts with the floor's one second, so that a first failure right after start may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Milli-tokens from traffic.
    deposits: u64,
    /// Milli-tokens from the floor.
    floor: u64,
    /// Up to when the time has been accounted for.
    at: Timestamp,
}

impl Bucket {
    /// A bucket that starts at `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { deposits: 0, floor: u64::from(FLOOR_PER_SECOND), at: now }
    }

    /// Lets time pass: income of the floor, expiry of deposits. Earlier times than before change nothing.
    pub fn advance(&mut self, now: Timestamp) {
        let step = now.since(self.at);
        let millis = u64::try_from(step.as_millis()).unwrap_or(u64::MAX);
        if millis == 0 {
            // Less than a millisecond stays on the clock, so that frequent calls lose nothing.
            return;
        }
        self.at = self.at + Duration::from_millis(millis);
        self.floor =
            self.floor.saturating_add(millis.saturating_mul(u64::from(FLOOR_PER_SECOND)) / 1000).min(FLOOR_CAP);
        let ttl = TTL.as_secs() * 1000;
        let gone = self.deposits.saturating_mul(millis.min(ttl)).div_ceil(ttl);
        self.deposits = self.deposits.saturating_sub(gone);
    }

    /// `count` first attempts were made.
    pub fn deposit(&mut self, now: Timestamp, count: u32) {
        self.advance(now);
        self.deposits = self.deposits.saturating_add(u64::from(count) * u64::from(Cost::DEPOSIT.0));
    }

    /// Takes the price of one retry; false when it is not there, and then nothing is taken.
    #[must_use]
    pub fn withdraw(&mut self, now: Timestamp, cost: Cost) -> bool {
        self.advance(now);
        let price = u64::from(cost.0);
        if price > self.balance() {
            return false;
        }
        let from_deposits = price.min(self.deposits);
        self.deposits -= from_deposits;
        self.floor -= price - from_deposits;
        true
    }

    /// What is there, in milli-tokens.
    pub fn balance(&self) -> u64 {
        self.deposits.saturating_add(self.floor)
    }
}

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
            assert_eq!(n, 3, "second {second}");
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
    fn deposits_are_gone_after_ten_seconds_and_the_floor_stops_at_its_cap() {
        let mut bucket = Bucket::new(at(0));
        bucket.deposit(at(0), 100_000);
        bucket.advance(at(10_000));
        assert_eq!(bucket.balance(), FLOOR_CAP);
        bucket.advance(at(1_000_000));
        assert_eq!(bucket.balance(), FLOOR_CAP);
    }

    #[test]
    fn frequent_calls_lose_no_income() {
        let mut bucket = Bucket::new(at(0));
        while bucket.withdraw(at(0), Cost::UNSENT) {}
        for micros in (0..1_000_000u64).step_by(300) {
            bucket.advance(Timestamp::from_nanos(micros * 1000));
        }
        bucket.advance(at(1000));
        assert_eq!(bucket.balance(), u64::from(FLOOR_PER_SECOND));
    }

    #[test]
    fn time_that_runs_backwards_changes_nothing() {
        let mut bucket = Bucket::new(at(5000));
        let before = bucket;
        bucket.advance(at(1000));
        assert_eq!(bucket, before);
    }
}
