//! How many connections each client has at a listener, where that is limited.
//!
//! One table per process, since the kernel spreads a client's connections over all workers. An entry lives as long as
//! one of its connections, so the table has never more entries than the process has connections, which its descriptors
//! bound. A connection costs one short lock at its start and one at its end, and only where there is a limit.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::entry::ConnectionLimit;
use model::id::ListenerId;

/// The connections of limited listeners. Copies are the same table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    taken: Arc<Mutex<HashMap<Key, u32>>>,
}

type Key = (ListenerId, IpAddr);

/// One connection's place, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Tallied {
    tally: Tally,
    key: Key,
}

impl Tally {
    /// A place for one more connection of `client`; `None` when it has as many as it may have.
    pub(crate) fn take(&self, listener: &ListenerId, client: IpAddr, limit: ConnectionLimit) -> Option<Tallied> {
        let key = (listener.clone(), block(client));
        let mut taken = self.lock();
        let count = taken.entry(key.clone()).or_default();
        if *count >= limit.per_client {
            return None;
        }
        *count += 1;
        drop(taken);
        Some(Tallied { tally: self.clone(), key })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, u32>> {
        // A count is changed whole or not at all.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Tallied {
    fn drop(&mut self) {
        let mut taken = self.tally.lock();
        if let Some(count) = taken.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.key);
            }
        }
    }
}

/// Whom an address counts for: a host has a whole /64 of IPv6 to itself.
fn block(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(u128::from(address) & (u128::MAX << 64))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TWO: ConnectionLimit = ConnectionLimit { per_client: 2 };

    fn client(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_client_has_no_more_places_than_its_limit_until_one_is_given_back() {
        let (tally, web) = (Tally::default(), ListenerId::from("web"));
        let one = tally.take(&web, client("192.0.2.1"), TWO).unwrap();
        let _two = tally.take(&web, client("::ffff:192.0.2.1"), TWO).unwrap();
        assert!(tally.take(&web, client("192.0.2.1"), TWO).is_none());
        assert!(tally.take(&web, client("192.0.2.2"), TWO).is_some());
        assert!(tally.take(&ListenerId::from("other"), client("192.0.2.1"), TWO).is_some());
        drop(one);
        assert!(tally.take(&web, client("192.0.2.1"), TWO).is_some());
    }

    #[test]
    fn an_ipv6_client_counts_by_its_64_and_nothing_is_kept_of_those_that_left() {
        let (tally, web) = (Tally::default(), ListenerId::from("web"));
        let one = tally.take(&web, client("2001:db8::1"), TWO);
        let two = tally.take(&web, client("2001:db8::2:3"), TWO);
        assert!(tally.take(&web, client("2001:db8:0:0:ffff::"), TWO).is_none());
        assert!(tally.take(&web, client("2001:db8:0:1::1"), TWO).is_some());
        drop((one, two));
        assert!(tally.lock().is_empty());
    }
}
