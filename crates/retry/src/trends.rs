//! Which destinations fail most of what they get, so that a request whose bytes went out is not repeated where that is
//! all there is left.
//!
//! Signal: attempts, all workers together. Trip: at least five of the last 10 s failed or succeeded, and more than
//! half of them failed; ends as soon as that no longer holds. Statistic: counts in ten buckets of one second. Cold start:
//! nothing is known, which is good enough.

use std::collections::BTreeMap;

use model::id::Slot;
use model::outcome::{OutcomeClass, Trend};
use model::time::Timestamp;

/// The last 10 s of all destinations that get traffic.
#[derive(Default)]
pub struct Trends {
    windows: BTreeMap<Slot, Window>,
}

struct Window {
    buckets: [Bucket; BUCKETS],
    trend: Trend,
}

#[derive(Clone, Copy, Default)]
struct Bucket {
    /// Whole second that it counts.
    second: u64,
    ok: u64,
    failed: u64,
}

impl Trends {
    /// So many attempts came well to their end.
    pub fn succeeded(&mut self, slot: Slot, count: u64, now: Timestamp) {
        self.bucket(slot, now).ok += count;
    }

    /// An attempt ended with this class.
    pub fn ended(&mut self, slot: Slot, class: OutcomeClass, now: Timestamp) {
        match class {
            OutcomeClass::AppFail
            | OutcomeClass::Overload
            | OutcomeClass::ConnFail
            | OutcomeClass::Timeout
            | OutcomeClass::Cut => self.bucket(slot, now).failed += 1,
            OutcomeClass::Ok | OutcomeClass::Slow => self.bucket(slot, now).ok += 1,
            OutcomeClass::Neutral => {}
        }
    }

    /// The slot is given away: what comes next there begins anew.
    pub fn forget(&mut self, slot: Slot) {
        self.windows.remove(&slot);
    }

    /// The trends that are others than at the last look.
    pub fn changes(&mut self, now: Timestamp) -> Vec<(Slot, Trend)> {
        let mut changes = Vec::new();
        let second = second_of(now);
        self.windows.retain(|&slot, window| {
            let (ok, failed) = window.sums(second);
            let is_failing = ok + failed >= MINIMUM && failed > ok;
            let trend = if is_failing { Trend::Failing } else { Trend::Steady };
            if trend != window.trend {
                window.trend = trend;
                changes.push((slot, trend));
            }
            ok + failed > 0
        });
        changes
    }

    fn bucket(&mut self, slot: Slot, now: Timestamp) -> &mut Bucket {
        let second = second_of(now);
        let window = self
            .windows
            .entry(slot)
            .or_insert_with(|| Window { buckets: [Bucket::default(); BUCKETS], trend: Trend::Steady });
        // The remainder is below the number of buckets.
        let bucket = &mut window.buckets[(second % BUCKETS as u64) as usize];
        if bucket.second != second {
            *bucket = Bucket { second, ..Bucket::default() };
        }
        bucket
    }
}

impl Window {
    fn sums(&self, second: u64) -> (u64, u64) {
        let recent = self.buckets.iter().filter(|bucket| bucket.second + BUCKETS as u64 > second);
        recent.fold((0, 0), |(ok, failed), bucket| (ok + bucket.ok, failed + bucket.failed))
    }
}

fn second_of(now: Timestamp) -> u64 {
    now.as_nanos() / 1_000_000_000
}

const BUCKETS: usize = 10;
/// One failure of one attempt is no trend.
const MINIMUM: u64 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Slot = Slot(3);

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1000 + 500)
    }

    #[test]
    fn more_than_half_of_ten_seconds_is_a_trend_and_five_attempts_are_the_least() {
        let mut trends = Trends::default();
        (0..4).for_each(|_| trends.ended(SLOT, OutcomeClass::Timeout, at(0)));
        assert_eq!(trends.changes(at(0)), []);
        trends.ended(SLOT, OutcomeClass::AppFail, at(1));
        assert_eq!(trends.changes(at(1)), [(SLOT, Trend::Failing)]);
        assert_eq!(trends.changes(at(1)), [], "told once");
        trends.succeeded(SLOT, 5, at(2));
        assert_eq!(trends.changes(at(2)), [(SLOT, Trend::Steady)], "half is not more than half");
    }

    #[test]
    fn what_is_older_than_ten_seconds_is_forgotten() {
        let mut trends = Trends::default();
        (0..20).for_each(|_| trends.ended(SLOT, OutcomeClass::ConnFail, at(0)));
        assert_eq!(trends.changes(at(9)), [(SLOT, Trend::Failing)]);
        assert_eq!(trends.changes(at(10)), [(SLOT, Trend::Steady)]);
        assert!(trends.windows.is_empty(), "no traffic, no memory");
    }

    #[test]
    fn a_client_that_leaves_says_nothing() {
        let mut trends = Trends::default();
        (0..20).for_each(|_| trends.ended(SLOT, OutcomeClass::Neutral, at(0)));
        assert_eq!(trends.changes(at(0)), []);
    }
}
