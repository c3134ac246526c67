//! Whether a worker was there all the time: what an exchange took while its thread stood still says nothing of its
//! destination.

use std::cell::Cell;
use std::time::Duration;

use model::time::Timestamp;

/// What is known from a tick.
#[derive(Debug, Default)]
pub(crate) struct Awake {
    ticked: Cell<Timestamp>,
    /// When it went on after it had stood still.
    woke: Cell<Timestamp>,
}

impl Awake {
    /// The tick, which is to come every [`Awake::TICK`].
    pub(crate) fn tick(&self, now: Timestamp) {
        if now.since(self.ticked.replace(now)) > AWAY {
            self.woke.set(now);
        }
    }

    /// Whether all went on from `since` to `now`.
    pub(crate) fn is_since(&self, since: Timestamp, now: Timestamp) -> bool {
        since >= self.woke.get() && now.since(self.ticked.get()) <= AWAY
    }

    /// Far below the 2 s after which a worker counts as hanging.
    pub(crate) const TICK: Duration = Duration::from_millis(500);
}

/// A tick that comes so long after the one before was kept from coming.
const AWAY: Duration = Duration::from_millis(1500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pause_lies_in_was_not_watched_all_the_time() {
        let awake = Awake::default();
        let at = Timestamp::from_millis;
        awake.tick(at(10_000));
        awake.tick(at(10_500));
        assert!(awake.is_since(at(10_100), at(10_900)));
        assert!(!awake.is_since(at(10_600), at(30_000)), "the tick has not come yet");
        awake.tick(at(30_100));
        assert!(!awake.is_since(at(10_600), at(30_200)));
        assert!(awake.is_since(at(30_100), at(30_200)));
    }
}
