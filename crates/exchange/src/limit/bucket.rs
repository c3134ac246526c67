//! A token bucket in one number: the time at which it will be full again.
//!
//! Each request moves that time on by one period; a request that would move it further than a burst ahead of now is
//! refused and moves nothing. The same decisions as a bucket of `burst` tokens that gains `rate` a second, without a
//! fraction of a token to store (the generic cell rate algorithm, ITU-T I.371).

use std::time::Duration;

use model::time::Timestamp;

/// How fast a bucket fills and how much it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Nanoseconds until one token comes in.
    period: u64,
    /// How far ahead of now the time of fullness may be when a request comes: the burst less one, in nanoseconds.
    tolerance: u64,
}

impl Pace {
    /// `rate` requests a second (above 0), `burst` at once (at least 1).
    pub fn new(rate: f64, burst: u32) -> Self {
        // A cast of a float saturates.
        let period = ((1e9 / rate).round() as u64).max(1);
        Self { period, tolerance: period.saturating_mul(u64::from(burst.saturating_sub(1))) }
    }
}

/// One client's bucket. The default is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    full_at: u64,
}

impl Bucket {
    /// Takes a token; how long until there is one again where there is none.
    pub fn take(&mut self, now: Timestamp, pace: Pace) -> Result<(), Duration> {
        let now = now.as_nanos();
        let full_at = self.full_at.max(now);
        let ahead = full_at - now;
        if ahead > pace.tolerance {
            return Err(Duration::from_nanos(ahead - pace.tolerance));
        }
        self.full_at = full_at.saturating_add(pace.period);
        Ok(())
    }

    /// Whether it holds as much as a new one, so that nothing is lost with it.
    pub fn is_full(&self, now: Timestamp) -> bool {
        self.full_at <= now.as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_burst_passes_then_one_a_period() {
        let pace = Pace::new(10.0, 3);
        let mut bucket = Bucket::default();
        let passed = |bucket: &mut Bucket, millis| bucket.take(at(millis), pace).is_ok();
        assert!((0..3).all(|_| passed(&mut bucket, 1_000)));
        assert_eq!(bucket.take(at(1_000), pace), Err(Duration::from_millis(100)));
        assert_eq!(bucket.take(at(1_060), pace), Err(Duration::from_millis(40)), "a refused one takes nothing");
        assert!(passed(&mut bucket, 1_100) && !passed(&mut bucket, 1_199) && passed(&mut bucket, 1_200));
        assert!(!bucket.is_full(at(1_499)) && bucket.is_full(at(1_500)));
    }

    #[test]
    fn over_a_long_time_no_more_than_rate_and_burst_pass() {
        for (rate, burst) in [(0.5, 1), (7.0, 5), (1000.0, 1), (33.3, 40)] {
            let pace = Pace::new(rate, burst);
            let mut bucket = Bucket::default();
            let n_passed = (0..20_000u64).filter(|&step| bucket.take(at(step * 3), pace).is_ok()).count() as f64;
            let most = 60.0 * rate + f64::from(burst);
            let asked = 20_000.0;
            assert!(n_passed <= most + 1.0, "{rate} {burst}: {n_passed}");
            assert!(n_passed >= (most * 0.98 - 1.0).min(asked * 0.3), "{rate} {burst}: {n_passed}");
        }
    }

    #[test]
    fn extreme_numbers_neither_wrap_nor_divide_by_nothing() {
        for (rate, burst) in [(f64::MIN_POSITIVE, u32::MAX), (1e300, 1), (1e-9, 1)] {
            let mut bucket = Bucket::default();
            for now in [Timestamp::ZERO, at(1), Timestamp::MAX] {
                let _ = bucket.take(now, Pace::new(rate, burst));
            }
        }
    }
}
