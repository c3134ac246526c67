//! Retry budgets: one number of thousandths of a token per cluster, shared by all workers.
//!
//! Only a retry takes from it; what comes in is paid by the core at its tick. Both are compare-exchange loops with a
//! bound: a claim that loses [`TRIES`] times counts as refused, which errs on the side of fewer retries.

use crate::sync::{AtomicU32, Ordering};

/// Thousandths of a token.
#[derive(Default)]
pub(crate) struct Budget(AtomicU32);

impl Budget {
    pub(crate) fn balance(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn withdraw(&self, price: u32) -> bool {
        self.change(|balance| balance.checked_sub(price))
    }

    /// A cap below the balance takes nothing away.
    pub(crate) fn deposit(&self, amount: u32, cap: u32) -> bool {
        self.change(|balance| Some(balance.saturating_add(amount).min(cap.max(balance))))
    }

    /// For the tick: time has passed.
    pub(crate) fn settle(&self, rest_of: impl Fn(u32) -> u32) -> bool {
        self.change(|balance| Some(rest_of(balance)))
    }

    /// Money carries no other memory with it, so Relaxed is enough.
    fn change(&self, change: impl Fn(u32) -> Option<u32>) -> bool {
        let mut balance = self.balance();
        for _ in 0..TRIES {
            let Some(next) = change(balance) else { return false };
            match self.0.compare_exchange(balance, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => balance = other,
            }
        }
        false
    }
}

/// With a handful of workers a second try is rare; sixteen lost ones mean a storm.
const TRIES: usize = 16;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_taken_that_is_not_there_and_nothing_kept_above_the_cap() {
        let budget = Budget::default();
        assert!(!budget.withdraw(1));
        assert!(budget.deposit(900, 1000));
        assert!(budget.deposit(900, 1000));
        assert_eq!(budget.balance(), 1000);
        assert!(budget.withdraw(600));
        assert!(!budget.withdraw(600));
        assert_eq!(budget.balance(), 400);
        assert!(budget.deposit(100, 10));
        assert_eq!(budget.balance(), 400);
        assert!(budget.settle(|balance| balance / 2 + 7));
        assert_eq!(budget.balance(), 207);
    }
}
