//! The clients' counts that all workers share: `limit_requests`, and `limit_connections` of routes and of listeners, hold for
//! the whole process.
//!
//! In shards by client, each under its own lock, so that two workers seldom wait for each other, and only where there is
//! a limit. A lock is held for one look-up in a table of bounded size, never while anything waits.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use exchange::limit::{Buckets, ClientKey, InFlight, Pace, Rule};
use model::entry::ConnectionLimit;
use model::id::ListenerId;
use model::time::Timestamp;

use crate::queue::Queues;

/// The counts of all clients.
pub(crate) struct Limits {
    shards: Box<[Mutex<Shard>]>,
    /// Seeded anew in each process, so that nobody can aim at one shard.
    hasher: RandomState,
    /// Requests that wait for a destination.
    pub(crate) queues: Arc<Queues>,
}

struct Shard {
    buckets: Buckets,
    in_flight: InFlight,
}

/// A request in flight, or an open connection, until dropped.
pub(crate) struct Permit {
    limits: Arc<Limits>,
    rule: Rule,
    client: ClientKey,
}

impl Limits {
    /// Nobody is known yet.
    pub(crate) fn new() -> Arc<Self> {
        let shard = || Shard { buckets: Buckets::new(CLIENTS / SHARDS), in_flight: InFlight::default() };
        let shards = (0..SHARDS).map(|_| Mutex::new(shard())).collect();
        Arc::new(Self { shards, hasher: RandomState::new(), queues: Arc::default() })
    }

    /// Takes a request from what the client may still ask for.
    pub(crate) fn take(&self, now: Timestamp, rule: Rule, client: ClientKey, pace: Pace) -> Result<(), Duration> {
        self.shard(&client).map_or(Ok(()), |mut shard| shard.buckets.take(now, rule, client, pace))
    }

    /// Counts one more in flight; `None` when the client has `most` already.
    pub(crate) fn enter(self: &Arc<Self>, rule: Rule, client: ClientKey, most: u32) -> Option<Permit> {
        let is_admitted = self.shard(&client)?.in_flight.enter(rule, client.clone(), most);
        is_admitted.then(|| Permit { limits: Arc::clone(self), rule, client })
    }

    /// Counts one more connection at a listener, by the client's address; `None` when it has as many as it may have.
    pub(crate) fn connect(
        self: &Arc<Self>,
        listener: &ListenerId,
        client: IpAddr,
        limit: ConnectionLimit,
    ) -> Option<Permit> {
        self.enter(Rule::of_listener(listener), ClientKey::of_address(client), limit.per_client)
    }

    /// The client's shard. There always is one.
    fn shard(&self, client: &ClientKey) -> Option<MutexGuard<'_, Shard>> {
        let at = self.hasher.hash_one(client) % self.shards.len().max(1) as u64;
        let shard = self.shards.get(usize::try_from(at).unwrap_or_default())?;
        // Nothing in a shard's calls panics half-way through a change.
        Some(shard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(mut shard) = self.limits.shard(&self.client) {
            shard.in_flight.leave(self.rule, self.client.clone());
        }
    }
}

/// So many clients are remembered for `limit_requests`: about 16 MB by address, 40 MB by the longest header values.
const CLIENTS: usize = 65_536;
const SHARDS: usize = 16;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use model::id::RouteId;

    #[test]
    fn a_permit_that_is_dropped_makes_room_for_the_next() {
        let limits = Limits::new();
        let rule = Rule::of(&RouteId::from("r"));
        let first = limits.enter(rule, ClientKey::V4(1), 1).unwrap();
        assert!(limits.enter(rule, ClientKey::V4(1), 1).is_none());
        drop(first);
        assert!(limits.enter(rule, ClientKey::V4(1), 1).is_some());
    }

    #[test]
    fn a_listener_counts_connections_by_address_and_nothing_is_kept_of_those_that_left() {
        let limits = Limits::new();
        let take = |listener: &str, client: &str| {
            let limit = ConnectionLimit { per_client: 2 };
            limits.connect(&ListenerId::from(listener), client.parse().unwrap(), limit)
        };
        let held = [("192.0.2.1", "::ffff:192.0.2.1"), ("2001:db8::1", "2001:db8::2:3")]
            .map(|(one, two)| (take("web", one).unwrap(), take("web", two).unwrap()));
        assert!(take("web", "192.0.2.1").is_none() && take("web", "2001:db8:0:0:ffff::").is_none());
        assert!(take("web", "192.0.2.2").is_some() && take("web", "2001:db8:0:1::1").is_some());
        assert!(take("other", "192.0.2.1").is_some());
        // A route of the same name has counts of its own.
        let route = Rule::of(&RouteId::from("web"));
        assert!(limits.enter(route, ClientKey::of_address("192.0.2.1".parse().unwrap()), 1).is_some());
        drop(held);
        assert!(take("web", "192.0.2.1").is_some());
        assert!(limits.shards.iter().all(|shard| shard.lock().unwrap().in_flight.is_empty()));
    }

    #[test]
    fn a_limit_is_exact_over_threads() {
        let limits = Limits::new();
        let rule = Rule::of(&RouteId::from("r"));
        let pace = Pace::new(0.001, 100);
        let passed: usize = std::thread::scope(|scope| {
            let ask = |_| {
                let limits = &limits;
                scope.spawn(move || {
                    (0..100).filter(|_| limits.take(Timestamp::ZERO, rule, ClientKey::V4(7), pace).is_ok()).count()
                })
            };
            let threads: Vec<_> = (0..4).map(ask).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(passed, 100);
    }
}
