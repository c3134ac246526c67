//! Monotonic time as a number: what cores use instead of a clock.
//!
//! A [`Timestamp`] is nanoseconds since the process (or the simulation) started. Unlike `std::time::Instant` it can be
//! printed, stored and made from nothing. Spans are `std::time::Duration`.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Nanoseconds since start. Arithmetic saturates at both ends: a deadline beyond the end of time is the end of time.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The start.
    pub const ZERO: Self = Self(0);
    /// The end of time; a timer set to it never fires.
    pub const MAX: Self = Self(u64::MAX);

    /// From nanoseconds since start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// From milliseconds since start.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// From whole seconds since start.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since start, with fraction.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to here; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// How much longer somebody is waited for whose time was over at `due`, when that is noticed only at `now`; `None`: no
/// longer. Whoever waits and would have noticed in time stood still itself, and has not heard what was said meanwhile: the
/// other side has as long again, a second at most.
pub fn made_good(due: Timestamp, now: Timestamp) -> Option<Duration> {
    let late = now.since(due);
    (late > LATE).then(|| late.min(MOST))
}

/// A runtime that has enough to do notices later than it should, too; by so much that is its everyday life.
const LATE: Duration = Duration::from_millis(100);
/// What was said meanwhile lies in the kernel, so that a moment is enough to hear it.
const MOST: Duration = Duration::from_secs(1);

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000_000_000, self.0 / 1_000_000 % 1000)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Timestamp::MAX + Duration::from_secs(1), Timestamp::MAX);
        assert_eq!(Timestamp::ZERO - Duration::from_secs(1), Timestamp::ZERO);
        assert_eq!(Timestamp::ZERO.since(Timestamp::from_secs(3)), Duration::ZERO);
        assert_eq!((Timestamp::from_secs(1) + Duration::from_millis(500)).to_string(), "1.500");
    }

    #[test]
    fn what_is_noticed_late_is_made_good_by_as_much_and_a_second_at_most() {
        let more = |late| made_good(Timestamp::from_secs(5), Timestamp::from_secs(5) + Duration::from_millis(late));
        for (late, expected) in [(0, None), (100, None), (101, Some(101)), (1000, Some(1000)), (9000, Some(1000))] {
            assert_eq!(more(late), expected.map(Duration::from_millis));
        }
        assert_eq!(made_good(Timestamp::MAX, Timestamp::from_secs(5)), None, "it is not due yet");
    }
}
