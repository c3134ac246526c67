//! How long a destination serves a request: from a number in [0, 1) to a span.
//!
//! Quantiles are joined on a scale on which each further nine is one step (p90, p99, p999 lie one apart), by straight lines
//! of the logarithm. Below the median it falls to half of it; beyond the last quantile the last line goes on, up to twice
//! that quantile.

use std::time::Duration;

use crate::chance::exponential;

/// A distribution of service times.
#[derive(Clone, Debug, PartialEq)]
pub enum Service {
    /// Always the same.
    Constant(Duration),
    /// By its mean.
    Exponential(Duration),
    /// By its quantiles.
    Quantiles(Quantiles),
}

/// Points of the joined lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiles {
    /// Nines below (as a number) and the logarithm of nanoseconds, in order.
    points: Vec<(f64, f64)>,
    /// Logarithm of the most.
    most: f64,
}

impl Service {
    /// The time at `unit` in [0, 1).
    pub fn at(&self, unit: f64) -> Duration {
        match self {
            Self::Constant(span) => *span,
            Self::Exponential(mean) => mean.mul_f64(exponential(unit)),
            Self::Quantiles(quantiles) => quantiles.at(unit),
        }
    }
}

impl Quantiles {
    /// From pairs of a share in (0, 1) and the time that this share stays below; the first one the median. `None` when
    /// shares or times do not rise, or a time is zero.
    pub fn new(pairs: &[(f64, Duration)]) -> Option<Self> {
        let &(_, median) = pairs.first()?;
        let mut points = vec![(0.0, log(median / 2))];
        for &(share, span) in pairs {
            let (_, before) = points.last()?;
            if span.is_zero() || log(span) < *before {
                return None;
            }
            points.push((nines(share), log(span)));
        }
        let most = points.last()?.1 + libm::log(2.0);
        points.is_sorted_by(|a, b| a.0 < b.0).then_some(Self { points, most })
    }

    fn at(&self, unit: f64) -> Duration {
        let x = nines(unit);
        let mut lines = self.points.windows(2).filter_map(|pair| <[(f64, f64); 2]>::try_from(pair).ok());
        let (mut from, mut to) = ((0.0, 0.0), (1.0, 0.0));
        for [a, b] in lines.by_ref() {
            (from, to) = (a, b);
            if x < b.0 {
                break;
            }
        }
        let y = from.1 + (to.1 - from.1) * (x - from.0) / (to.0 - from.0);
        Duration::from_nanos(libm::exp(y.min(self.most)) as u64)
    }
}

fn nines(share: f64) -> f64 {
    -libm::log10(1.0 - share)
}

fn log(span: Duration) -> f64 {
    libm::log(span.as_nanos().max(1) as f64)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_given_quantiles_come_back_and_the_ends_are_bounded() {
        let pairs = [(0.5, millis(8)), (0.9, millis(20)), (0.99, millis(60)), (0.999, millis(150))];
        let service = Service::Quantiles(Quantiles::new(&pairs).unwrap());
        for (share, span) in pairs {
            let off = service.at(share).as_secs_f64() / span.as_secs_f64();
            assert!((off - 1.0).abs() < 1e-6, "{share}: {off}");
        }
        assert!(service.at(0.0) >= millis(4) - Duration::from_nanos(10));
        assert!(service.at(0.999_999_999) <= millis(300));
        assert!(service.at(0.25) > millis(4) && service.at(0.25) < millis(8));
        let median_alone = Service::Quantiles(Quantiles::new(&[(0.5, millis(8))]).unwrap());
        assert!(median_alone.at(0.9) <= millis(16));
    }

    #[test]
    fn quantiles_that_fall_are_none() {
        assert_eq!(Quantiles::new(&[(0.5, millis(8)), (0.9, millis(3))]), None);
        assert_eq!(Quantiles::new(&[(0.9, millis(8)), (0.5, millis(9))]), None);
        assert_eq!(Quantiles::new(&[(0.5, Duration::ZERO)]), None);
    }
}
