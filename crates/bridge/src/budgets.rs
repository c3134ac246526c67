//! Retry budgets: what clusters earn and what expires, from the sums of successes and the clock.
//!
//! Each successful attempt pays in and the floor pays in at each tick, while the balance leaks (figures and reasons in
//! [`retry::budget`]). Paid from sums, so that a request that succeeds pays nothing itself.

use std::collections::BTreeMap;
use std::time::Duration;

use board::{Board, Successes};
use model::id::{ClusterId, Slot};
use model::retry::RetryBudget;
use model::time::Timestamp;
use retry::budget::{deposit, income, leak};

/// The clusters' places among the board's budgets.
#[derive(Default)]
pub struct Budgets {
    places: BTreeMap<ClusterId, Account>,
    next: u32,
}

struct Account {
    place: u32,
    rules: RetryBudget,
    /// Up to when the time is accounted for; `None`: it has nothing yet.
    at: Option<Timestamp>,
}

impl Budgets {
    /// The cluster's place, the same while the process lives; from here on by these rules.
    pub fn place(&mut self, cluster: &ClusterId, rules: RetryBudget) -> u32 {
        if let Some(account) = self.places.get_mut(cluster) {
            account.rules = rules;
            return account.place;
        }
        let place = self.next;
        self.next = self.next.saturating_add(1);
        self.places.insert(cluster.clone(), Account { place, rules, at: None });
        place
    }

    /// Pays for successes.
    pub fn earn<S>(&self, board: &Board<S>, sums: &BTreeMap<Slot, Successes>, owners: &BTreeMap<Slot, ClusterId>) {
        for (slot, Successes { ok, .. }) in sums {
            if let Some(account) = owners.get(slot).and_then(|cluster| self.places.get(cluster)) {
                let amount = ok.saturating_mul(u64::from(deposit(account.rules).0));
                board.deposit(account.place, u32::try_from(amount).unwrap_or(u32::MAX), u32::MAX);
            }
        }
    }

    /// Gives those that are new their first income, so that a failure right after the start (or after a reload) may be
    /// retried. Before their snapshot is published.
    pub fn open<S>(&mut self, board: &Board<S>, now: Timestamp) {
        for Account { place, rules, at } in self.places.values_mut().filter(|account| account.at.is_none()) {
            *at = Some(now);
            board.deposit(*place, income(*rules, SECOND), u32::MAX);
        }
    }

    /// Lets time pass, for all that are open. For the tick: over shorter spans the leak is lost to rounding.
    pub fn advance<S>(&mut self, board: &Board<S>, now: Timestamp) {
        for Account { place, rules, at } in self.places.values_mut() {
            let Some(before) = at.replace(now) else { continue };
            let elapsed = now.since(before);
            // Lost against a retry at the same time: the next tick takes it.
            let _ = board.withdraw(*place, leak(board.balance(*place), elapsed));
            board.deposit(*place, income(*rules, elapsed), u32::MAX);
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn first(ok: u64) -> Successes {
        Successes { ok, repeats: 0 }
    }

    #[test]
    fn traffic_pays_a_fifth_that_expires_and_the_floor_always_pays() {
        let board = Board::new(1, Arc::new(()));
        let mut budgets = Budgets::default();
        let cluster = ClusterId::from("a");
        let place = budgets.place(&cluster, RetryBudget::NATIVE);
        let mut now = Timestamp::ZERO;
        budgets.open(&board, now);
        budgets.open(&board, now);
        assert_eq!(board.balance(place), 3000, "the first income comes once");
        let owners = BTreeMap::from([(Slot(0), cluster.clone())]);
        budgets.earn(&board, &BTreeMap::from([(Slot(0), first(1000))]), &owners);
        assert_eq!(board.balance(place), 203_000);
        for _ in 0..1000 {
            now = now + Duration::from_millis(100);
            budgets.advance(&board, now);
        }
        // What traffic paid has expired after 100 s; what is left is the floor's.
        assert!((29_000..=31_000).contains(&board.balance(place)), "{}", board.balance(place));
        assert_eq!(budgets.place(&cluster, RetryBudget::NATIVE), place);
        assert_ne!(budgets.place(&ClusterId::from("b"), RetryBudget::NATIVE), place);
    }

    #[test]
    fn a_reload_changes_what_traffic_pays() {
        let board = Board::new(1, Arc::new(()));
        let mut budgets = Budgets::default();
        let cluster = ClusterId::from("a");
        let none = RetryBudget { percent: 0, per_second: 0 };
        let place = budgets.place(&cluster, none);
        budgets.open(&board, Timestamp::ZERO);
        let owners = BTreeMap::from([(Slot(0), cluster.clone())]);
        budgets.earn(&board, &BTreeMap::from([(Slot(0), first(1000))]), &owners);
        assert_eq!(board.balance(place), 0, "nothing is paid, nothing may be repeated");
        assert_eq!(budgets.place(&cluster, RetryBudget { percent: 50, per_second: 0 }), place);
        budgets.earn(&board, &BTreeMap::from([(Slot(0), first(10))]), &owners);
        assert_eq!(board.balance(place), 5000);
    }
}
