//! Retry budgets: what clusters may spend, from the sums of successes and what is gone from the board.
//!
//! Each cluster's [`Ledger`] hears of both at the tick, and its balance on the board is set to what it says (figures and
//! reasons in [`retry::budget`]). Counted from sums, so that a request that succeeds pays nothing itself: only a retry
//! writes the balance.

use std::collections::BTreeMap;

use board::Board;
use model::id::{ClusterId, Slot};
use model::retry::RetryBudget;
use model::time::Timestamp;
use retry::budget::{Cost, Ledger};

/// The clusters' places among the board's budgets.
#[derive(Default)]
pub struct Budgets {
    places: BTreeMap<ClusterId, Account>,
    next: u32,
}

struct Account {
    place: u32,
    rules: RetryBudget,
    /// `None`: it has nothing yet.
    open: Option<Open>,
}

struct Open {
    ledger: Ledger,
    /// The balance after the last look: what is missing since then was spent.
    left: Cost,
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
        self.places.insert(cluster.clone(), Account { place, rules, open: None });
        place
    }

    /// Counts successes: what they bring is there from the next [`Budgets::advance`] on.
    pub fn earn(
        &mut self,
        successes: impl Iterator<Item = (Slot, u64)>,
        owners: &BTreeMap<Slot, ClusterId>,
        now: Timestamp,
    ) {
        for (slot, count) in successes {
            let Some(account) = owners.get(&slot).and_then(|cluster| self.places.get_mut(cluster)) else { continue };
            if let Some(open) = &mut account.open {
                open.ledger.earn(now, account.rules, count);
            }
        }
    }

    /// Gives those that are new their first income, so that a failure right after the start (or after a reload) may be
    /// retried. Before their snapshot is published.
    pub fn open<S>(&mut self, board: &Board<S>, now: Timestamp) {
        for Account { place, rules, open } in self.places.values_mut().filter(|account| account.open.is_none()) {
            let mut ledger = Ledger::new(now);
            let left = ledger.left(now, *rules);
            board.deposit(*place, left.0, u32::MAX);
            *open = Some(Open { ledger, left });
        }
    }

    /// Lets time pass, for all that are open. For the tick.
    pub fn advance<S>(&mut self, board: &Board<S>, now: Timestamp) {
        for Account { place, rules, open } in self.places.values_mut() {
            let Some(Open { ledger, left }) = open else { continue };
            let balance = board.balance(*place);
            ledger.spend(now, i64::from(left.0) - i64::from(balance));
            let target = ledger.left(now, *rules);
            *left = match target.0.checked_sub(balance) {
                Some(more) => {
                    board.deposit(*place, more, u32::MAX);
                    target
                }
                None if board.withdraw(*place, balance - target.0) => target,
                // Retries have taken from it meanwhile: the next tick sees how much.
                None => Cost(balance),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    struct World {
        board: Arc<Board<()>>,
        budgets: Budgets,
        owners: BTreeMap<Slot, ClusterId>,
        now: Timestamp,
    }

    /// One cluster, just opened, and its place.
    fn world(rules: RetryBudget) -> (World, u32) {
        let mut budgets = Budgets::default();
        let cluster = ClusterId::from("a");
        let place = budgets.place(&cluster, rules);
        let mut world = World {
            board: Board::new(1, Arc::new(())),
            budgets,
            owners: BTreeMap::from([(Slot(0), cluster)]),
            now: Timestamp::ZERO,
        };
        world.budgets.open(&world.board, world.now);
        (world, place)
    }

    impl World {
        fn earn(&mut self, ok: u64) {
            self.budgets.earn([(Slot(0), ok)].into_iter(), &self.owners, self.now);
        }

        fn tick(&mut self) {
            self.now = self.now + Duration::from_millis(100);
            self.budgets.advance(&self.board, self.now);
        }
    }

    #[test]
    fn traffic_pays_a_fifth_that_expires_and_the_floor_is_always_there() {
        let (mut world, place) = world(RetryBudget::NATIVE);
        world.budgets.open(&world.board, world.now);
        assert_eq!(world.board.balance(place), 3000, "the first income comes once");
        world.earn(1000);
        world.tick();
        assert_eq!(world.board.balance(place), 200_000);
        (0..100).for_each(|_| world.tick());
        assert_eq!(world.board.balance(place), 30_000);
        assert_eq!(world.budgets.place(&ClusterId::from("a"), RetryBudget::NATIVE), place);
        assert_ne!(world.budgets.place(&ClusterId::from("b"), RetryBudget::NATIVE), place);
    }

    #[test]
    fn what_retries_took_comes_back_after_ten_seconds_and_not_before() {
        let (mut world, place) = world(RetryBudget::NATIVE);
        let mut taken = Vec::new();
        for _ in 0..300 {
            world.earn(10);
            world.tick();
            taken.push((0..10).filter(|_| world.board.withdraw(place, 1000)).count());
        }
        for ten in taken.windows(100) {
            // One tick may spend what the next one learns of.
            assert!(ten.iter().sum::<usize>() <= 202, "{taken:?}");
        }
        assert!(taken.iter().sum::<usize>() >= 560, "{taken:?}");
    }

    #[test]
    fn a_retry_that_is_given_back_costs_nothing() {
        let (mut world, place) = world(RetryBudget::NATIVE);
        (0..100).for_each(|_| world.tick());
        assert!(world.board.withdraw(place, 1000));
        world.tick();
        world.board.deposit(place, 1000, u32::MAX);
        world.tick();
        assert_eq!(world.board.balance(place), 30_000);
    }

    #[test]
    fn a_reload_changes_what_traffic_pays() {
        let (mut world, place) = world(RetryBudget { percent: 0, per_second: 0 });
        world.earn(1000);
        world.tick();
        assert_eq!(world.board.balance(place), 0, "nothing is paid, nothing may be repeated");
        assert_eq!(world.budgets.place(&ClusterId::from("a"), RetryBudget { percent: 50, per_second: 0 }), place);
        world.earn(10);
        world.tick();
        assert_eq!(world.board.balance(place), 5000);
    }
}
