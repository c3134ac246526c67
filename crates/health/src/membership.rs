//! Who a name stands for: which of its addresses are destinations, and when it is looked up again.
//!
//! ```text
//!   configured ──> due ──poll_lookup──> asked ──answered──> due after the record's lifetime (or a while, when it failed)
//!
//!   an address:   absent ──in an answer──> member ──missing from 3 answers and for 30 s──> absent
//!   a whole name: addresses ──"there is no such name" for 5 min──> none
//! ```
//!
//! Name servers answer with subsets in turn, fail, and come back; none of that may cost a destination that works. So an
//! answer adds at once and takes away slowly, and an answer that says nothing (an error, silence, no records) changes
//! nothing. RFC 2308 tells "no such name" from "no records".
//!
//! Many names are no storm: lookups start `SPACING` apart, at most `MOST_AT_ONCE` run, and lifetimes are spread.

mod expand;
mod name;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use model::random::Random;
use model::time::Timestamp;
use model::upstream::Family;
use serde::{Deserialize, Serialize};

pub use self::expand::{expand, names};
use self::name::Name;

/// A name, as one kind of cluster looks at it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NameKey {
    /// The name.
    pub name: Arc<str>,
    /// Which of its addresses count.
    pub family: Family,
}

/// What a lookup came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Addresses, good for the lifetime of their record.
    Found {
        /// In any order, repetitions allowed.
        addresses: Vec<IpAddr>,
        /// The record's lifetime.
        ttl: Duration,
    },
    /// The name exists without addresses (of the family that counts).
    Empty,
    /// There is no such name (NXDOMAIN).
    NoName,
    /// No usable answer: an error of the server, silence.
    Failed,
}

/// How long answers are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// At least so long.
    pub least: Duration,
    /// At most so long.
    pub most: Duration,
}

/// What is known of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// It is not one of the names, or no answer has come yet.
    Nothing,
    /// These addresses, in order; none: it has no address.
    Addresses(Vec<IpAddr>),
}

/// The names and their addresses.
#[derive(Clone, Debug)]
pub struct Membership {
    lifetimes: Lifetimes,
    names: BTreeMap<NameKey, Name>,
    due: BTreeSet<(Timestamp, NameKey)>,
    at_once: usize,
    /// No lookup starts before.
    next_start: Timestamp,
    random: Random,
    has_changed: bool,
}

impl Membership {
    /// No names yet. `seed` drives the spread of lookups and nothing else.
    pub fn new(seed: u64, lifetimes: Lifetimes) -> Self {
        Self {
            lifetimes,
            names: BTreeMap::new(),
            due: BTreeSet::new(),
            at_once: 0,
            next_start: Timestamp::ZERO,
            random: Random::new(seed),
            has_changed: false,
        }
    }

    /// These are the names from now on. Those that stay keep what is known of them, others are forgotten.
    pub fn configured(&mut self, now: Timestamp, keys: &BTreeSet<NameKey>, lifetimes: Lifetimes) {
        self.lifetimes = lifetimes;
        self.names.retain(|key, _| keys.contains(key));
        self.due.retain(|(_, key)| keys.contains(key));
        for key in keys {
            if !self.names.contains_key(key) {
                self.names.insert(key.clone(), Name::due(now));
                self.due.insert((now, key.clone()));
            }
        }
    }

    /// The next name to look up now; say [`Self::answered`] for each.
    pub fn poll_lookup(&mut self, now: Timestamp) -> Option<NameKey> {
        if self.at_once >= MOST_AT_ONCE || self.next_start > now {
            return None;
        }
        let (at, _) = self.due.first()?;
        if *at > now {
            return None;
        }
        let (_, key) = self.due.pop_first()?;
        if let Some(name) = self.names.get_mut(&key) {
            name.due_at = None;
        }
        self.at_once += 1;
        self.next_start = now + SPACING;
        Some(key)
    }

    /// When [`Self::poll_lookup`] is worth asking again; `None`: after the next answer or configuration.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        if self.at_once >= MOST_AT_ONCE {
            return None;
        }
        self.due.first().map(|(at, _)| (*at).max(self.next_start))
    }

    /// A lookup ended.
    pub fn answered(&mut self, now: Timestamp, key: &NameKey, answer: Answer) {
        self.at_once = self.at_once.saturating_sub(1);
        let Some(name) = self.names.get_mut(key) else { return };
        let answer = match answer {
            Answer::Found { addresses, ttl } => counting(key.family, addresses, ttl),
            other @ (Answer::Empty | Answer::NoName | Answer::Failed) => other,
        };
        self.has_changed |= name.answered(now, answer);
        let span = name.next_after(self.lifetimes).mul_f64(1.0 - SPREAD * self.random.unit());
        // Forgotten and configured again while it was asked: it may be due already.
        if let Some(before) = name.due_at.replace(now + span) {
            self.due.remove(&(before, key.clone()));
        }
        self.due.insert((now + span, key.clone()));
    }

    /// What is known of a name.
    pub fn known(&self, key: &NameKey) -> Known {
        match self.names.get(key) {
            Some(name) if name.has_answered() => Known::Addresses(name.addresses()),
            Some(_) | None => Known::Nothing,
        }
    }

    /// Whether each name was answered at least once, whatever the answer.
    pub fn is_settled(&self) -> bool {
        self.names.values().all(Name::has_answered)
    }

    /// Whether what is known of some name has changed since the last call.
    pub fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }
}

/// The addresses that count, without those that no destination can have.
fn counting(family: Family, mut addresses: Vec<IpAddr>, ttl: Duration) -> Answer {
    addresses.iter_mut().for_each(|ip| *ip = ip.to_canonical());
    addresses.retain(|ip| !ip.is_unspecified() && !ip.is_multicast());
    let has_v4 = addresses.iter().any(IpAddr::is_ipv4);
    addresses.retain(|ip| match family {
        Family::Auto => ip.is_ipv4() == has_v4,
        Family::V4 => ip.is_ipv4(),
        Family::V6 => ip.is_ipv6(),
        Family::Both => true,
    });
    addresses.sort_unstable();
    addresses.dedup();
    if addresses.is_empty() { Answer::Empty } else { Answer::Found { addresses, ttl } }
}

/// Lookups that run at the same time.
pub const MOST_AT_ONCE: usize = 32;
/// Lookups start so far apart.
const SPACING: Duration = Duration::from_millis(1);
/// Lifetimes are shortened by up to this share, so that names configured together do not stay together.
const SPREAD: f64 = 0.1;
