//! The hold for a proxy that has only just started.
//!
//! Signal: an answer in which no node counts and at least one is still unjudged. Withdrawing at once would take a site
//! out for every restart of its proxy; holding for ever would announce a site that nobody can judge. So the last
//! decision is held for a bounded time from the first such answer; after that the upstream counts as sick. Any other
//! answer ends the hold and the next one starts afresh. Cold start: a VIP that was not announced stays off.

use std::time::Duration;

use model::time::Timestamp;

/// The longest time that a decision is held because nodes are not judged yet.
pub const WARMING_LIMIT: Duration = Duration::from_secs(30);

/// When the hold that began at `since` ends.
pub fn ends_at(since: Timestamp) -> Timestamp {
    since + WARMING_LIMIT
}

/// Whether the hold that began at `since` is over.
pub fn is_over(since: Timestamp, now: Timestamp) -> bool {
    now >= ends_at(since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hold_ends_exactly_at_its_limit() {
        let since = Timestamp::from_secs(5);
        assert!(!is_over(since, Timestamp::from_millis(34_999)));
        assert!(is_over(since, Timestamp::from_secs(35)));
    }
}
