//! Places monotonic times on the wall clock, by their distance from now.

use std::time::Duration;

use model::time::Timestamp;

/// The same moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// On the process's clock.
    pub now: Timestamp,
    /// On the wall.
    pub wall: jiff::Timestamp,
}

impl Clock {
    /// `at` as RFC 3339 with milliseconds.
    pub fn text(&self, at: Timestamp) -> String {
        let wall = if at >= self.now {
            self.wall.checked_add(at.since(self.now))
        } else {
            self.wall.checked_sub(self.now.since(at))
        };
        text(wall.unwrap_or(self.wall))
    }

    /// Milliseconds since `at`; 0 when it lies ahead.
    pub fn age_ms(&self, at: Timestamp) -> u64 {
        millis(self.now.since(at))
    }

    /// Milliseconds until `at`; 0 when it is past.
    pub fn until_ms(&self, at: Timestamp) -> u64 {
        millis(at.since(self.now))
    }
}

/// RFC 3339 with milliseconds.
pub(crate) fn text(wall: jiff::Timestamp) -> String {
    format!("{wall:.3}")
}

pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn times_are_placed_by_their_distance_from_now() {
        let clock =
            Clock { now: Timestamp::from_secs(100), wall: jiff::Timestamp::from_second(1_700_000_000).unwrap() };
        assert_eq!(clock.text(Timestamp::from_millis(99_500)), "2023-11-14T22:13:19.500Z");
        assert_eq!(clock.text(Timestamp::from_secs(102)), "2023-11-14T22:13:22.000Z");
        assert_eq!((clock.age_ms(Timestamp::from_secs(99)), clock.age_ms(Timestamp::from_secs(101))), (1000, 0));
        assert_eq!((clock.until_ms(Timestamp::from_secs(99)), clock.until_ms(Timestamp::from_secs(101))), (0, 1000));
    }
}
