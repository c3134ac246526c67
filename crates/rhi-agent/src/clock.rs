//! The one clock of the process: monotonic time for the core, wall time for people.

use std::time::Duration;

use jiff::Timestamp as WallTime;
use model::time::Timestamp;
use tokio::time::Instant;

/// Counts from its making.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    wall_start: WallTime,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { start: Instant::now(), wall_start: WallTime::now() }
    }

    /// Now, for the core.
    pub fn now(&self) -> Timestamp {
        Timestamp::ZERO + self.start.elapsed()
    }

    /// A point of the core's time, for tokio.
    pub fn instant(&self, at: Timestamp) -> Instant {
        // A deadline beyond what the platform can express is a timer that never fires; a day is as good, because it is
        // computed anew after each wake-up.
        self.start
            .checked_add(at.since(Timestamp::ZERO))
            .unwrap_or_else(|| Instant::now() + Duration::from_secs(86_400))
    }

    /// A point of the core's time as RFC 3339 text. A wall clock that is set anew does not move points of the past.
    pub fn wall(&self, at: Timestamp) -> String {
        let span = at.since(Timestamp::ZERO);
        self.wall_start
            .checked_add(span)
            .map_or_else(|_| "9999-12-31T23:59:59Z".to_owned(), |wall| format!("{wall:.3}"))
    }
}
