//! Commands to the kernel that are under way, and those that failed and wait for their next attempt.
//!
//! An address with a command under way gets no second one, so each change is made once. A failed one is tried again
//! after 100 ms, 200 ms and so on up to 5 s, for as long as it is still wanted; a change of the interface (re-created,
//! set up) lifts the wait.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use model::time::Timestamp;

use crate::kernel::AddressKey;
use crate::reconcile::{Action, Change, Why};

const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(5);

/// The commands.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    under_way: BTreeMap<AddressKey, (Action, Why)>,
    failed: BTreeMap<AddressKey, Failed>,
    failures: u64,
}

#[derive(Clone, Debug)]
struct Failed {
    action: Action,
    error: String,
    attempts: u32,
    retry_at: Timestamp,
}

impl Commands {
    /// Those of the changes that may be sent now; they are under way from here on. What is no longer wanted is
    /// forgotten.
    pub fn send(&mut self, now: Timestamp, changes: Vec<Change>) -> Vec<Change> {
        self.failed.retain(|key, failed| changes.iter().any(|c| c.key == *key && c.action == failed.action));
        let waits = |failed: Option<&Failed>| failed.is_some_and(|failed| failed.retry_at > now);
        let mut sent = Vec::new();
        for change in changes {
            if self.under_way.contains_key(&change.key) || waits(self.failed.get(&change.key)) {
                continue;
            }
            self.under_way.insert(change.key.clone(), (change.action, change.why));
            sent.push(change);
        }
        sent
    }

    /// Whether a command about this address is under way.
    pub fn is_under_way(&self, key: &AddressKey) -> bool {
        self.under_way.contains_key(key)
    }

    /// Whether none is.
    pub fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    /// The answer to one; `None` when it was not under way.
    pub fn answered(&mut self, key: &AddressKey) -> Option<(Action, Why)> {
        self.under_way.remove(key)
    }

    /// It worked.
    pub fn succeeded(&mut self, key: &AddressKey) {
        self.failed.remove(key);
    }

    /// It failed: how often in a row, and the wait until the next attempt.
    pub fn failed(&mut self, now: Timestamp, key: &AddressKey, action: Action, error: &str) -> (u32, Duration) {
        self.failures = self.failures.saturating_add(1);
        let before = self.failed.get(key).filter(|failed| failed.action == action).map_or(0, |failed| failed.attempts);
        let wait = FIRST_RETRY.saturating_mul(1_u32.checked_shl(before).unwrap_or(u32::MAX)).min(LAST_RETRY);
        let attempts = before.saturating_add(1);
        self.failed.insert(key.clone(), Failed { action, error: error.to_owned(), attempts, retry_at: now + wait });
        (attempts, wait)
    }

    /// Everything that waits may be tried at once.
    pub fn lift_waits(&mut self) {
        self.failed.clear();
    }

    /// When the next wait is over.
    pub fn next_retry(&self) -> Option<Timestamp> {
        let free = |key: &AddressKey| !self.under_way.contains_key(key);
        self.failed.iter().filter(|(key, _)| free(key)).map(|(_, failed)| failed.retry_at).min()
    }

    /// The kernel's words about this address while its change fails.
    pub fn last_error(&self, address: IpAddr) -> Option<&str> {
        self.failed.iter().find(|(key, _)| key.address == address).map(|(_, failed)| failed.error.as_str())
    }

    /// How many commands have failed so far.
    pub fn failures(&self) -> u64 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn change(action: Action) -> Change {
        let key = AddressKey { interface: "rhi0".to_owned(), address: "10.0.0.1".parse().unwrap(), prefix_len: 32 };
        Change { key, action, why: Why::Announced }
    }

    #[test]
    fn a_change_under_way_is_not_sent_twice_and_a_failed_one_waits_longer_each_time() {
        let mut commands = Commands::default();
        let add = change(Action::Add);
        let mut now = Timestamp::ZERO;
        let mut waits = Vec::new();
        for _ in 0..8 {
            assert_eq!(commands.send(now, vec![add.clone()]).len(), 1);
            assert!(commands.send(now, vec![add.clone()]).is_empty());
            commands.answered(&add.key).unwrap();
            let (_, wait) = commands.failed(now, &add.key, Action::Add, "busy");
            assert!(commands.send(now, vec![add.clone()]).is_empty());
            now = commands.next_retry().unwrap();
            waits.push(wait.as_millis());
        }
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(commands.failures(), 8);
    }

    #[test]
    fn a_failed_change_is_forgotten_once_nobody_wants_it() {
        let mut commands = Commands::default();
        let add = change(Action::Add);
        commands.send(Timestamp::ZERO, vec![add.clone()]);
        commands.answered(&add.key).unwrap();
        commands.failed(Timestamp::ZERO, &add.key, Action::Add, "busy");
        assert_eq!(commands.send(Timestamp::ZERO, vec![change(Action::Remove)]).len(), 1);
        assert_eq!(commands.next_retry(), None);
    }
}
