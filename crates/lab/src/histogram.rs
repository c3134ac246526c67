//! Times in buckets whose width grows with them: quantiles within 1.6 %, in the same memory whatever is counted.

use std::time::Duration;

/// A histogram of times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u32>,
    total: u64,
    micros: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, micros: 0 }
    }
}

impl Histogram {
    /// Counts one.
    pub fn add(&mut self, span: Duration) {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        if let Some(count) = self.counts.get_mut(bucket(micros)) {
            *count = count.saturating_add(1);
            self.total += 1;
            self.micros = self.micros.saturating_add(micros);
        }
    }

    /// How many there are.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The mean, in milliseconds; 0 for none.
    pub fn mean(&self) -> f64 {
        self.micros as f64 / self.total.max(1) as f64 / 1000.0
    }

    /// The time that a share of all stays below, in milliseconds; 0 for none.
    pub fn quantile(&self, share: f64) -> f64 {
        let wanted = libm::ceil(share * self.total as f64).max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= wanted {
                return middle(bucket) / 1000.0;
            }
        }
        0.0
    }
}

fn bucket(micros: u64) -> usize {
    let bits = u64::BITS - micros.leading_zeros();
    if bits <= PRECISION {
        return micros as usize;
    }
    let shift = bits - PRECISION;
    let place = (u64::from(shift) << (PRECISION - 1)) + (micros >> shift);
    (place as usize).min(BUCKETS - 1)
}

/// The middle of a bucket, in microseconds.
fn middle(bucket: usize) -> f64 {
    let half = 1_usize << (PRECISION - 1);
    if bucket < 2 * half {
        return bucket as f64;
    }
    let shift = bucket / half - 1;
    let base = bucket - shift * half;
    (base as f64 + 0.5) * (1_u64 << shift) as f64
}

/// Bits that are kept of a number.
const PRECISION: u32 = 6;
/// Up to more than a day.
const BUCKETS: usize = 1100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_comes_back_within_two_per_cent() {
        for micros in [0, 1, 31, 63, 64, 65, 100, 999, 12_345, 7_000_000, 86_400_000_000] {
            let back = middle(bucket(micros));
            assert!((back - micros as f64).abs() <= 0.017 * micros as f64, "{micros}: {back}");
        }
    }

    #[test]
    fn quantiles_are_those_of_what_was_counted() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), 0.0);
        (1..=1000).for_each(|millis| histogram.add(Duration::from_millis(millis)));
        for (share, wanted) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let found = histogram.quantile(share);
            assert!((found / wanted - 1.0).abs() < 0.02, "{share}: {found}");
        }
    }
}
