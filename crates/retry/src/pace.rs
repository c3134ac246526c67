//! How long a try may take that is not slower than the others of its route: for `per_try_timeout: adaptive`.
//!
//! - Signal: the times to the response's head of what a route's requests got, one worker's.
//! - Limit: three times the 99th percentile, and 250 ms at least.
//! - Statistic: a histogram of two buckets for each doubling from 1 ms on; counts halve every ten seconds.
//! - Cold start: no limit below 100 times of late.
//! - Suspension: when more than one try in twenty was cut (of five cuts or more, within ten seconds) it is not the try
//!   that is slow. Then nothing is cut for ten seconds, in which the times are learnt anew. So slowness of all is never
//!   answered with more requests.
//!
//! A cut says that a time was longer than the limit: it counts as one of the bucket above.

use std::time::Duration;

use model::time::Timestamp;

/// What one worker has learnt of one route.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Thousandths of a time each.
    weights: [u32; BUCKETS],
    halved_at: Timestamp,
    /// Tries and cuts since then.
    tries: u32,
    cuts: u32,
    suspended_until: Timestamp,
}

impl Pace {
    /// Nothing is known.
    pub fn new(now: Timestamp) -> Self {
        Self { weights: [0; BUCKETS], halved_at: now, tries: 0, cuts: 0, suspended_until: now }
    }

    /// A response's head came so long after its destination was picked.
    pub fn answered(&mut self, now: Timestamp, took: Duration) {
        self.learn(now, bucket(took));
    }

    /// A try was cut for taking longer than its limit.
    pub fn cut(&mut self, now: Timestamp, limit: Duration) {
        self.learn(now, bucket(limit).saturating_add(1));
        self.cuts = self.cuts.saturating_add(1);
        if self.cuts >= FEWEST_CUTS && self.cuts.saturating_mul(ONE_IN) > self.tries {
            self.suspended_until = now + SUSPENSION;
            self.tries = 0;
            self.cuts = 0;
        }
    }

    /// How long a try that begins now may take; `None`: as long as it likes.
    pub fn limit(&mut self, now: Timestamp) -> Option<Duration> {
        self.age(now);
        if now < self.suspended_until {
            return None;
        }
        let total: u64 = self.weights.iter().map(|&weight| u64::from(weight)).sum();
        if total < FEWEST * UNIT {
            return None;
        }
        let mut above = total / 100;
        for (place, &weight) in self.weights.iter().enumerate().rev() {
            match above.checked_sub(u64::from(weight)) {
                Some(rest) => above = rest,
                None => return Some((upper_end(place) * FACTOR).max(LEAST)),
            }
        }
        None
    }

    fn learn(&mut self, now: Timestamp, bucket: usize) {
        self.age(now);
        self.tries = self.tries.saturating_add(1);
        if let Some(weight) = self.weights.get_mut(bucket.min(BUCKETS - 1)) {
            *weight = weight.saturating_add(UNIT as u32);
        }
    }

    fn age(&mut self, now: Timestamp) {
        let steps = now.since(self.halved_at).as_nanos() / HALF_LIFE.as_nanos();
        if steps == 0 {
            return;
        }
        let steps = u32::try_from(steps).unwrap_or(u32::MAX).min(31);
        self.weights.iter_mut().for_each(|weight| *weight >>= steps);
        self.halved_at = now;
        self.tries = 0;
        self.cuts = 0;
    }
}

/// The bucket of a time: each doubling from 1 ms on has two.
fn bucket(time: Duration) -> usize {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let Some(doublings) = (micros / 1000).checked_ilog2() else { return 0 };
    let lower = 1000_u64 << doublings;
    let is_upper_half = micros - lower >= lower / 2;
    (1 + 2 * doublings as usize + usize::from(is_upper_half)).min(BUCKETS - 1)
}

fn upper_end(bucket: usize) -> Duration {
    let Some(place) = bucket.min(BUCKETS - 1).checked_sub(1) else { return Duration::from_millis(1) };
    let lower = 1_u64 << (place / 2);
    let halves = if place.is_multiple_of(2) { 3 } else { 4 };
    Duration::from_micros(lower * 500 * halves)
}

/// Up to about two minutes.
const BUCKETS: usize = 34;
const UNIT: u64 = 1000;
const FEWEST: u64 = 100;
const FACTOR: u32 = 3;
const LEAST: Duration = Duration::from_millis(250);
const HALF_LIFE: Duration = Duration::from_secs(10);
const FEWEST_CUTS: u32 = 5;
const ONE_IN: u32 = 20;
const SUSPENSION: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn learnt(millis: u64, n: u32) -> Pace {
        let mut pace = Pace::new(at(0));
        (0..n).for_each(|_| pace.answered(at(1), Duration::from_millis(millis)));
        pace
    }

    #[test]
    fn nothing_is_cut_before_a_hundred_times_are_known() {
        assert_eq!(learnt(200, 99).limit(at(2)), None);
        assert!(learnt(200, 100).limit(at(2)).is_some());
    }

    #[test]
    fn the_limit_is_three_times_the_slowest_hundredth_and_a_quarter_of_a_second_at_least() {
        assert_eq!(learnt(2, 1000).limit(at(2)), Some(Duration::from_millis(250)));
        let mut pace = learnt(2, 980);
        (0..20).for_each(|_| pace.answered(at(1), Duration::from_millis(300)));
        let limit = pace.limit(at(2)).unwrap_or_default();
        assert!((900..=1200).contains(&limit.as_millis()), "{limit:?}");
    }

    #[test]
    fn every_time_lies_below_the_upper_end_of_its_bucket() {
        for micros in (0..140_000_000).step_by(997) {
            let time = Duration::from_micros(micros);
            let place = bucket(time);
            assert!(time <= upper_end(place) || place == BUCKETS - 1, "{time:?}");
            assert!(place == 0 || time >= upper_end(place - 1), "{time:?}");
        }
    }

    #[test]
    fn slowness_of_all_suspends_the_limit_and_teaches_a_new_one() {
        let mut pace = learnt(2, 1000);
        let limit = pace.limit(at(2)).unwrap_or_default();
        for n in 0..60 {
            assert!(pace.limit(at(3)).is_some(), "{n}: one try in twenty is not all");
            pace.cut(at(3), limit);
            if pace.limit(at(3)).is_none() {
                break;
            }
        }
        assert_eq!(pace.limit(at(3)), None);
        // Meanwhile all take half a second.
        (0..500).for_each(|_| pace.answered(at(5000), Duration::from_millis(500)));
        assert_eq!(pace.limit(at(10_000)), None);
        let limit = pace.limit(at(10_004)).unwrap_or_default();
        assert!(limit > Duration::from_millis(1500), "{limit:?}");
    }

    #[test]
    fn few_slow_ones_are_cut_for_ever() {
        let mut pace = learnt(2, 1000);
        for round in 1..50 {
            (0..100).for_each(|_| pace.answered(at(round * 100), Duration::from_millis(2)));
            let limit = pace.limit(at(round * 100));
            assert!(limit.is_some(), "{round}");
            pace.cut(at(round * 100), limit.unwrap_or_default());
        }
    }

    #[test]
    fn what_was_long_ago_is_no_guide() {
        let mut pace = learnt(2, 150);
        assert!(pace.limit(at(9000)).is_some());
        assert_eq!(pace.limit(at(21_000)), None);
    }
}
