//! Retry budgets: what clusters earn and what expires, from the sums of successes and the clock.
//!
//! Each successful attempt pays in and the floor pays in at each tick, while the balance leaks (figures and reasons in
//! [`retry::budget`]). Paid from sums, so that a request that succeeds pays nothing itself.

use std::collections::BTreeMap;

use board::Board;
use model::id::{ClusterId, Slot};
use model::time::Timestamp;
use retry::budget::{Cost, FLOOR_PER_SECOND, income, leak};

/// The clusters' places among the board's budgets.
#[derive(Default)]
pub struct Budgets {
    places: BTreeMap<ClusterId, Account>,
    next: u32,
}

struct Account {
    place: u32,
    /// Up to when the time is accounted for; `None`: it has nothing yet.
    at: Option<Timestamp>,
}

impl Budgets {
    /// The cluster's place; the same while the process lives.
    pub fn place(&mut self, cluster: &ClusterId) -> u32 {
        if let Some(account) = self.places.get(cluster) {
            return account.place;
        }
        let place = self.next;
        self.next = self.next.saturating_add(1);
        self.places.insert(cluster.clone(), Account { place, at: None });
        place
    }

    /// Pays for successes.
    pub fn earn<S>(&self, board: &Board<S>, sums: &BTreeMap<Slot, u64>, owners: &BTreeMap<Slot, ClusterId>) {
        for (slot, &ok) in sums {
            if let Some(account) = owners.get(slot).and_then(|cluster| self.places.get(cluster)) {
                let amount = ok.saturating_mul(u64::from(Cost::DEPOSIT.0));
                board.deposit(account.place, u32::try_from(amount).unwrap_or(u32::MAX), u32::MAX);
            }
        }
    }

    /// Gives those that are new their first income, so that a failure right after the start (or after a reload) may be
    /// retried. Before their snapshot is published.
    pub fn open<S>(&mut self, board: &Board<S>, now: Timestamp) {
        for Account { place, at } in self.places.values_mut().filter(|account| account.at.is_none()) {
            *at = Some(now);
            board.deposit(*place, FLOOR_PER_SECOND, u32::MAX);
        }
    }

    /// Lets time pass, for all that are open. For the tick: over shorter spans the leak is lost to rounding.
    pub fn advance<S>(&mut self, board: &Board<S>, now: Timestamp) {
        for Account { place, at } in self.places.values_mut() {
            let Some(before) = at.replace(now) else { continue };
            let elapsed = now.since(before);
            // Lost against a retry at the same time: the next tick takes it.
            let _ = board.withdraw(*place, leak(board.balance(*place), elapsed));
            board.deposit(*place, income(elapsed), u32::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn traffic_pays_a_fifth_that_expires_and_the_floor_always_pays() {
        let board = Board::new(1, Arc::new(()));
        let mut budgets = Budgets::default();
        let cluster = ClusterId::from("a");
        let place = budgets.place(&cluster);
        let mut now = Timestamp::ZERO;
        budgets.open(&board, now);
        budgets.open(&board, now);
        assert_eq!(board.balance(place), 3000, "the first income comes once");
        let owners = BTreeMap::from([(Slot(0), cluster.clone())]);
        budgets.earn(&board, &BTreeMap::from([(Slot(0), 1000)]), &owners);
        assert_eq!(board.balance(place), 203_000);
        for _ in 0..1000 {
            now = now + std::time::Duration::from_millis(100);
            budgets.advance(&board, now);
        }
        // What traffic paid has expired after 100 s; what is left is the floor's.
        assert!((29_000..=31_000).contains(&board.balance(place)), "{}", board.balance(place));
        assert_eq!(budgets.place(&cluster), place);
        assert_ne!(budgets.place(&ClusterId::from("b")), place);
    }
}
