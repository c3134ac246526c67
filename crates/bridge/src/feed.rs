//! From the board to the core: successes as sums, failures one by one. Trials that passed are told one by one as well, and
//! so is every success where a policy wants each: then no sum holds it.
//!
//! The core judges a failure with the successes around it, so the sums of a drain go before its events. A drain right
//! after the first failure looks at the destinations that failed; the tick looks at all where something happened.

use std::collections::BTreeMap;

use board::{Drained, Ended, Reader, Successes};
use health::{Input, OutcomeEvent, Sum};
use model::id::Slot;
use model::outcome::{Outcome, OutcomeClass};
use model::time::Timestamp;
use retry::Trends;

/// Whose successes are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Those that have an event in the same drain.
    Failed,
    /// All.
    All,
}

/// What a drain brought.
#[derive(Default)]
pub struct Taken {
    /// Successes that no event tells, by slot, above zero.
    sums: BTreeMap<Slot, Successes>,
    /// With [`Reach::All`]: where something may have happened since the last one, in order.
    pub stirred: Vec<Slot>,
    events: Vec<OutcomeEvent>,
}

/// Takes out what stands on the board; `is_known` says whether a slot is a destination's. Of merged events only the class and the count are left: they began after the
/// last drain at the earliest that can be told (`since`) and ended by `now`.
pub fn take(
    reader: &mut Reader,
    is_known: impl Fn(Slot) -> bool,
    reach: Reach,
    since: Timestamp,
    now: Timestamp,
) -> Taken {
    let mut taken = Taken::default();
    reader.drain(|drained| match drained {
        Drained::Event { slot, worker: _, ok_before, ended } => {
            taken.sums.entry(slot).or_default().ok += ok_before;
            let Ended { picked_at, ended_at: at, which, outcome } = ended;
            taken.events.push(OutcomeEvent { slot, picked_at, at, which, outcome });
        }
        Drained::Merged { slot, class, which, count } => {
            taken.sums.entry(slot).or_default();
            let event = OutcomeEvent { slot, picked_at: since, at: now, which, outcome: outline(class) };
            taken.events.extend((0..count).map(|_| event));
        }
    });
    match reach {
        Reach::All => {
            taken.stirred = reader.stirred();
            taken.stirred.retain(|slot| is_known(*slot));
            taken.stirred.iter().for_each(|&slot| add(taken.sums.entry(slot).or_default(), reader.ok_since(slot)));
        }
        Reach::Failed => taken.sums.iter_mut().for_each(|(&slot, sum)| add(sum, reader.ok_since(slot))),
    }
    taken.sums.retain(|_, sum| sum.ok > 0);
    taken
}

impl Taken {
    /// Counts all of it for the trends.
    pub fn count(&self, trends: &mut Trends, now: Timestamp) {
        self.sums.iter().for_each(|(&slot, sum)| trends.succeeded(slot, sum.ok, now));
        self.events.iter().for_each(|event| trends.ended(event.slot, event.outcome.class, now));
    }

    /// How many succeeded where; a destination may come more than once.
    pub fn successes(&self) -> impl Iterator<Item = (Slot, u64)> {
        let told = self.events.iter().filter(|event| event.outcome.class == OutcomeClass::Ok);
        self.sums.iter().map(|(&slot, sum)| (slot, sum.ok)).chain(told.map(|event| (event.slot, 1)))
    }

    /// The sums, then the events.
    pub fn into_inputs(self) -> impl Iterator<Item = Input> {
        let sums: Vec<Sum> =
            self.sums.into_iter().map(|(slot, Successes { ok, repeats })| Sum { slot, ok, repeats }).collect();
        let sums = (!sums.is_empty()).then_some(Input::SumsTaken { sums });
        sums.into_iter().chain(self.events.into_iter().map(Input::OutcomeSeen))
    }
}

fn add(sum: &mut Successes, new: Successes) {
    sum.ok += new.ok;
    sum.repeats += new.repeats;
}

/// An outcome of which only the class is known. Retryable: nginx's arithmetic counts it.
fn outline(class: OutcomeClass) -> Outcome {
    Outcome { class, failure: None, status: None, retryable: true, client_gone: false }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use std::sync::Arc;

    use board::Board;
    use model::id::WorkerId;
    use model::outcome::{FailureKind, Try};

    use super::*;

    fn refused(at: u64) -> Ended {
        let outcome = Outcome {
            class: OutcomeClass::ConnFail,
            failure: Some(FailureKind::Refused),
            status: None,
            retryable: true,
            client_gone: false,
        };
        let (picked_at, ended_at) = (Timestamp::from_millis(at), Timestamp::from_millis(at + 1));
        Ended { picked_at, ended_at, which: Try::First, outcome }
    }

    #[test]
    fn sums_go_before_events_and_every_success_is_told_once() {
        let board = Board::new(1, Arc::new(()));
        let worker = board.worker(WorkerId(0)).unwrap();
        let mut reader = board.reader().unwrap();
        let (good, bad) = (Slot(3), Slot(5));
        (0..3).for_each(|_| worker.succeeded(good));
        worker.count(good, OutcomeClass::Ok, Try::Repeat);
        worker.succeeded(bad);
        worker.report(bad, refused(7));
        worker.succeeded(bad);

        let now = Timestamp::from_millis(10);
        let is_known = |slot| slot == good || slot == bad;
        let taken = take(&mut reader, is_known, Reach::Failed, Timestamp::ZERO, now);
        let inputs: Vec<Input> = taken.into_inputs().collect();
        assert_eq!(inputs[0], Input::SumsTaken { sums: vec![Sum { slot: bad, ok: 2, repeats: 0 }] });
        assert!(matches!(inputs[1], Input::OutcomeSeen(OutcomeEvent { slot: Slot(5), .. })));
        assert_eq!(inputs.len(), 2);

        let taken = take(&mut reader, is_known, Reach::All, Timestamp::ZERO, now);
        assert_eq!(taken.stirred, [good, bad]);
        let inputs: Vec<Input> = taken.into_inputs().collect();
        assert_eq!(inputs, [Input::SumsTaken { sums: vec![Sum { slot: good, ok: 4, repeats: 1 }] }]);
        let taken = take(&mut reader, is_known, Reach::All, Timestamp::ZERO, now);
        assert_eq!((taken.stirred.len(), taken.into_inputs().count()), (0, 0));
    }

    #[test]
    fn a_success_that_is_told_by_itself_stands_in_no_sum_and_pays_and_shows_a_trend_once() {
        let board = Board::new(1, Arc::new(()));
        let worker = board.worker(WorkerId(0)).unwrap();
        let mut reader = board.reader().unwrap();
        let slot = Slot(2);
        let passed = Outcome { failure: None, status: Some(200), ..outline(OutcomeClass::Ok) };
        let ended = |at| Ended { outcome: passed, ..refused(at) };
        (0..2).for_each(|_| worker.succeeded(slot));
        worker.report(slot, ended(7));
        let now = Timestamp::from_millis(10);
        let taken = take(&mut reader, |_| true, Reach::All, Timestamp::ZERO, now);
        assert_eq!(taken.successes().map(|(_, count)| count).sum::<u64>(), 3);
        let mut trends = Trends::default();
        (0..3).for_each(|_| trends.ended(slot, OutcomeClass::Timeout, now));
        taken.count(&mut trends, now);
        assert_eq!(trends.changes(now), [], "three of six");
        trends.ended(slot, OutcomeClass::Timeout, now);
        assert_eq!(trends.changes(now), [(slot, board::Trend::Failing)], "four of seven");
        let inputs: Vec<Input> = taken.into_inputs().collect();
        assert_eq!(inputs[0], Input::SumsTaken { sums: vec![Sum { slot, ok: 2, repeats: 0 }] });
        assert!(matches!(inputs[1..], [Input::OutcomeSeen(OutcomeEvent { slot: Slot(2), .. })]));
    }

    #[test]
    fn a_storm_loses_details_but_no_failure() {
        let board = Board::with_ring(1, Arc::new(()), 4);
        let worker = board.worker(WorkerId(0)).unwrap();
        let mut reader = board.reader().unwrap();
        (0..10).for_each(|at| worker.report(Slot(1), refused(at)));
        let now = Timestamp::from_millis(20);
        let taken = take(&mut reader, |_| true, Reach::Failed, Timestamp::ZERO, now);
        let classes = taken.into_inputs().filter(
            |input| matches!(input, Input::OutcomeSeen(event) if event.outcome.class == OutcomeClass::ConnFail),
        );
        assert_eq!(classes.count(), 10);
    }
}
