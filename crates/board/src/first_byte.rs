//! Times to first byte as a histogram: two buckets for each doubling from 64 us on, up to about a minute.
//!
//! What a worker pays for a sample is one load and one store. A bucket's width is 41 or 50 % of its lower end, which is
//! what an estimate of a percentile may be wrong by.

use std::time::Duration;

/// How many buckets there are; the last one has no upper end.
pub const BUCKETS: usize = 42;

/// The bucket of a time.
pub fn bucket(time: Duration) -> usize {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let Some(units) = (micros / UNIT).checked_ilog2() else { return 0 };
    // Above 1.5 x the power of two: the upper half of the doubling.
    let lower = UNIT << units;
    let upper_half = usize::from(micros - lower >= lower / 2);
    (1 + 2 * units as usize + upper_half).min(BUCKETS - 1)
}

/// The middle of a bucket.
pub fn middle(bucket: usize) -> Duration {
    let Some(place) = bucket.min(BUCKETS - 1).checked_sub(1) else { return Duration::from_micros(UNIT / 2) };
    let lower = UNIT << (place / 2);
    Duration::from_micros(if place.is_multiple_of(2) { lower + lower / 4 } else { lower + lower * 3 / 4 })
}

/// Microseconds: what is faster is all alike.
const UNIT: u64 = 64;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_each_bucket_lies_in_it_and_the_ends_are_open() {
        for one in 0..BUCKETS {
            assert_eq!(bucket(middle(one)), one);
        }
        assert_eq!((bucket(Duration::ZERO), bucket(Duration::MAX)), (0, BUCKETS - 1));
        assert_eq!(bucket(Duration::from_micros(64)), 1);
        assert_eq!(bucket(Duration::from_micros(96)), 2);
        assert_eq!(bucket(Duration::from_micros(127)), 2);
        assert_eq!(bucket(Duration::from_micros(128)), 3);
        assert!(middle(BUCKETS - 1) > Duration::from_secs(60));
    }
}
