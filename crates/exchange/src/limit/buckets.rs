//! The buckets of many clients in bounded memory: when there is no room, the one that was idle longest makes it.
//!
//! Who is forgotten starts anew with a full bucket. So a crowd larger than the table is held back less than the limit
//! says, and never more.

use std::collections::BTreeMap;
use std::time::Duration;

use model::time::Timestamp;

use super::bucket::{Bucket, Pace};
use super::{ClientKey, Rule};

type Key = (Rule, ClientKey);

/// Buckets by rule and client.
#[derive(Debug)]
pub struct Buckets {
    room: usize,
    buckets: BTreeMap<Key, Used>,
    /// From the idlest on.
    order: BTreeMap<u64, Key>,
    uses: u64,
}

#[derive(Clone, Copy, Debug)]
struct Used {
    bucket: Bucket,
    last: u64,
}

impl Buckets {
    /// Room for so many clients; at least one.
    pub fn new(room: usize) -> Self {
        Self { room: room.max(1), buckets: BTreeMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    /// Takes a token of the client's; how long until there is one again where there is none.
    pub fn take(&mut self, now: Timestamp, rule: Rule, client: ClientKey, pace: Pace) -> Result<(), Duration> {
        self.uses += 1;
        let key = (rule, client);
        match self.buckets.get_mut(&key) {
            Some(used) => {
                let place = self.order.remove(&used.last);
                used.last = self.uses;
                self.order.insert(self.uses, place.unwrap_or(key));
                used.bucket.take(now, pace)
            }
            None => {
                self.make_room(now);
                let mut bucket = Bucket::default();
                let taken = bucket.take(now, pace);
                self.order.insert(self.uses, key.clone());
                self.buckets.insert(key, Used { bucket, last: self.uses });
                taken
            }
        }
    }

    /// Clients that are remembered.
    pub fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Forgets some of the idlest whose buckets are full, and the idlest of all where there is no room.
    fn make_room(&mut self, now: Timestamp) {
        for _ in 0..SWEPT {
            let Some((&last, key)) = self.order.first_key_value() else { return };
            let is_full = self.buckets.get(key).is_none_or(|used| used.bucket.is_full(now));
            if !is_full && self.buckets.len() < self.room {
                return;
            }
            if let Some(key) = self.order.remove(&last) {
                self.buckets.remove(&key);
            }
        }
    }
}

/// Two go for one that comes: the table shrinks when a crowd is over.
const SWEPT: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use model::id::RouteId;

    fn take(buckets: &mut Buckets, millis: u64, client: u32, pace: Pace) -> bool {
        let rule = Rule::of(&RouteId::from("r"));
        buckets.take(Timestamp::from_millis(millis), rule, ClientKey::V4(client), pace).is_ok()
    }

    #[test]
    fn clients_and_routes_have_buckets_of_their_own() {
        let mut buckets = Buckets::new(10);
        let pace = Pace::new(1.0, 1);
        assert!(take(&mut buckets, 0, 1, pace) && !take(&mut buckets, 0, 1, pace));
        assert!(take(&mut buckets, 0, 2, pace));
        let other = Rule::of(&RouteId::from("s"));
        assert!(buckets.take(Timestamp::ZERO, other, ClientKey::V4(1), pace).is_ok());
    }

    #[test]
    fn the_table_never_outgrows_its_room_and_the_idlest_goes_first() {
        let mut buckets = Buckets::new(3);
        let pace = Pace::new(0.001, 1);
        for client in 1..=3 {
            assert!(take(&mut buckets, 0, client, pace));
        }
        // Client 1 is asked for again: 2 is the idlest now.
        assert!(!take(&mut buckets, 1, 1, pace));
        assert!(take(&mut buckets, 2, 4, pace));
        assert!(!take(&mut buckets, 3, 1, pace), "it is still remembered");
        assert!(take(&mut buckets, 3, 2, pace), "it was forgotten");
        for client in 0..1_000 {
            take(&mut buckets, 4, client, pace);
            assert!(buckets.len() <= 3 && buckets.order.len() == buckets.buckets.len());
        }
    }

    #[test]
    fn full_buckets_are_forgotten_as_others_come() {
        let mut buckets = Buckets::new(1_000);
        let pace = Pace::new(10.0, 1);
        for client in 0..500 {
            take(&mut buckets, 0, client, pace);
        }
        for client in 1_000..1_500 {
            take(&mut buckets, 10_000, client, pace);
        }
        assert_eq!(buckets.len(), 500, "those of the first crowd are gone");
    }
}
