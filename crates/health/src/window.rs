//! What a destination's attempts of the last ten seconds came to: the ground on which it is compared with its cluster.

use std::time::Duration;

use model::outcome::{FailureKind, Outcome, OutcomeClass};
use model::passive::Plain500;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Attempts, by what they say of a destination. Neutral and Overload are none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Came to something good.
    pub ok: u64,
    /// Failed: no connection, no head in time, broken off, 502, 503, 504.
    pub failed: u64,
    /// Answered 500 (or 5xx that counts like it).
    pub plain_500: u64,
}

impl Counts {
    /// What one outcome counts as.
    pub fn of(outcome: &Outcome) -> Self {
        match outcome.class {
            OutcomeClass::Ok => Self { ok: 1, ..Self::default() },
            OutcomeClass::ConnFail | OutcomeClass::Timeout | OutcomeClass::Cut => Self { failed: 1, ..Self::default() },
            OutcomeClass::AppFail if is_plain_500(outcome) => Self { plain_500: 1, ..Self::default() },
            OutcomeClass::AppFail => Self { failed: 1, ..Self::default() },
            OutcomeClass::Overload | OutcomeClass::Slow | OutcomeClass::Neutral => Self::default(),
        }
    }

    /// Those that failed.
    pub fn failures(&self, plain_500: Plain500) -> u64 {
        match plain_500 {
            Plain500::Counts => self.failed.saturating_add(self.plain_500),
            Plain500::Passes => self.failed,
        }
    }

    /// All.
    pub fn total(&self) -> u64 {
        self.ok.saturating_add(self.failed).saturating_add(self.plain_500)
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        Self {
            ok: self.ok.saturating_add(other.ok),
            failed: self.failed.saturating_add(other.failed),
            plain_500: self.plain_500.saturating_add(other.plain_500),
        }
    }
}

/// An answer of 500, or a failure of which only the class is known (a storm keeps no more): it is not held to be the
/// server's own.
fn is_plain_500(outcome: &Outcome) -> bool {
    let by_status = matches!(outcome.failure, None | Some(FailureKind::Status));
    by_status && matches!(outcome.status, None | Some(500))
}

/// The last ten seconds, in buckets of one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Window {
    buckets: [Counts; N_BUCKETS],
    /// Number of the newest bucket: seconds since start.
    newest: u64,
}

impl Window {
    /// Adds attempts that ended now.
    pub(crate) fn add(&mut self, now: Timestamp, counts: Counts) {
        self.advance(now);
        let place = (self.newest % N_BUCKETS as u64) as usize;
        if let Some(bucket) = self.buckets.get_mut(place) {
            *bucket = bucket.and(counts);
        }
    }

    /// All that is not older than ten seconds, to the bucket.
    pub(crate) fn total(&self, now: Timestamp) -> Counts {
        let number = second(now).max(self.newest);
        let oldest = (number + 1).saturating_sub(N_BUCKETS as u64);
        let kept = (oldest..=self.newest).map(|one| (one % N_BUCKETS as u64) as usize);
        kept.filter_map(|place| self.buckets.get(place)).fold(Counts::default(), |sum, one| sum.and(*one))
    }

    /// Nothing seen.
    pub(crate) fn clear(&mut self) {
        self.buckets = Default::default();
    }

    fn advance(&mut self, now: Timestamp) {
        let number = second(now);
        if number <= self.newest {
            return;
        }
        let n = (number - self.newest).min(N_BUCKETS as u64);
        for one in (number + 1 - n)..=number {
            if let Some(bucket) = self.buckets.get_mut((one % N_BUCKETS as u64) as usize) {
                *bucket = Counts::default();
            }
        }
        self.newest = number;
    }
}

fn second(now: Timestamp) -> u64 {
    now.as_nanos() / 1_000_000_000
}

const N_BUCKETS: usize = 10;

/// How far back a comparison looks.
pub(crate) const SPAN: Duration = Duration::from_secs(N_BUCKETS as u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_leave_the_window_after_ten_seconds() {
        let mut window = Window::default();
        let ok = |n| Counts { ok: n, ..Counts::default() };
        window.add(Timestamp::from_millis(500), ok(3));
        window.add(Timestamp::from_millis(9_999), ok(4));
        assert_eq!(window.total(Timestamp::from_millis(9_999)).ok, 7);
        assert_eq!(window.total(Timestamp::from_secs(10)).ok, 4);
        window.add(Timestamp::from_secs(11), ok(1));
        assert_eq!(window.total(Timestamp::from_secs(18)).ok, 5);
        assert_eq!(window.total(Timestamp::from_secs(19)).ok, 1);
        assert_eq!(window.total(Timestamp::from_secs(1000)).ok, 0);
        window.add(Timestamp::from_secs(1000), ok(2));
        assert_eq!(window.total(Timestamp::from_secs(1000)).ok, 2);
        window.clear();
        assert_eq!(window.total(Timestamp::from_secs(1000)), Counts::default());
    }
}
