//! One name: its addresses, and what its answers have said of late.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use model::time::Timestamp;

use super::{Answer, Lifetimes};

/// The state.
#[derive(Clone, Debug, Default)]
pub(super) struct Name {
    /// When it is looked up next; `None` while it is.
    pub(super) due_at: Option<Timestamp>,
    members: BTreeMap<IpAddr, Member>,
    has_answered: bool,
    /// Since when every answer that said anything said that there is no such name.
    no_name_since: Option<Timestamp>,
    /// Answers in a row without addresses.
    fruitless: u32,
    /// The last lifetime that was told.
    ttl: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    seen_at: Timestamp,
    /// Answers in a row that had addresses, and not this one.
    missing: u32,
}

impl Name {
    /// One that nothing is known of, to be looked up at `now`.
    pub(super) fn due(now: Timestamp) -> Self {
        Self { due_at: Some(now), ..Self::default() }
    }

    /// Takes an answer. Returns whether what is known has changed.
    pub(super) fn answered(&mut self, now: Timestamp, answer: Answer) -> bool {
        let is_first = !std::mem::replace(&mut self.has_answered, true);
        let changed = match answer {
            Answer::Found { addresses, ttl } => {
                (self.fruitless, self.no_name_since, self.ttl) = (0, None, ttl);
                self.found(now, &addresses)
            }
            Answer::Empty => {
                self.no_name_since = None;
                self.fruitless = self.fruitless.saturating_add(1);
                false
            }
            Answer::NoName => {
                self.fruitless = self.fruitless.saturating_add(1);
                let since = *self.no_name_since.get_or_insert(now);
                let is_over = now.since(since) >= NO_NAME_FOR && !self.members.is_empty();
                if is_over {
                    self.members.clear();
                }
                is_over
            }
            Answer::Failed => {
                self.fruitless = self.fruitless.saturating_add(1);
                false
            }
        };
        changed || is_first
    }

    fn found(&mut self, now: Timestamp, addresses: &[IpAddr]) -> bool {
        let before = self.members.len();
        for (ip, member) in &mut self.members {
            if !addresses.contains(ip) {
                member.missing = member.missing.saturating_add(1);
            }
        }
        self.members.retain(|_, member| member.missing < MISSING_FROM || now.since(member.seen_at) < MISSING_FOR);
        let mut changed = self.members.len() != before;
        for ip in addresses {
            let is_known = self.members.contains_key(ip);
            if is_known || self.members.len() < MOST_ADDRESSES {
                self.members.insert(*ip, Member { seen_at: now, missing: 0 });
                changed |= !is_known;
            }
        }
        changed
    }

    /// How long until the next lookup.
    pub(super) fn next_after(&self, lifetimes: Lifetimes) -> Duration {
        if self.fruitless > 0 {
            let first = if self.members.is_empty() { FIRST_AGAIN } else { lifetimes.least };
            let doubled = first.saturating_mul(1 << (self.fruitless - 1).min(10));
            return doubled.min(LATEST_AGAIN.max(lifetimes.least));
        }
        let ttl = self.ttl.min(lifetimes.most).max(lifetimes.least);
        let is_any_missing = self.members.values().any(|member| member.missing > 0);
        if is_any_missing { ttl.min(CONFIRM.max(lifetimes.least)) } else { ttl }
    }

    pub(super) fn has_answered(&self) -> bool {
        self.has_answered
    }

    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.members.keys().copied().collect()
    }
}

/// An address leaves after it was missing from so many answers in a row ...
const MISSING_FROM: u32 = 3;
/// ... and for so long.
const MISSING_FOR: Duration = Duration::from_secs(30);
/// A name loses its addresses after it did not exist for so long.
const NO_NAME_FOR: Duration = Duration::from_secs(300);
/// While an address is missing, the name is looked up this often, whatever the record's lifetime.
const CONFIRM: Duration = Duration::from_secs(10);
/// A name without addresses is looked up again after this, then after twice as long, and so on.
const FIRST_AGAIN: Duration = Duration::from_secs(1);
/// A lookup that brought nothing is repeated after so long at the latest.
const LATEST_AGAIN: Duration = Duration::from_secs(15);
/// Addresses of one name; further ones are not used.
const MOST_ADDRESSES: usize = 128;
