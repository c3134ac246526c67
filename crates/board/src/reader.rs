//! The core's side of the board: takes events out and keeps account of what it has seen.

use std::sync::Arc;

use model::id::{Slot, WorkerId};
use model::outcome::{OutcomeClass, Try};

use crate::event::{Ended, Entry};
use crate::record::{KINDS, Record, kinds};
use crate::shared::{STIR, Shared, WorkerState};
use crate::sync::Ordering;

/// What a drain brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// One attempt.
    Event {
        /// Where.
        slot: Slot,
        /// Who saw it.
        worker: WorkerId,
        /// Successes of this worker at this destination before it that no event tells, as far as none was told yet.
        ok_before: u64,
        /// How and when.
        ended: Ended,
    },
    /// Attempts whose details were lost because the ring was full.
    Merged {
        /// Where.
        slot: Slot,
        /// Of which class.
        class: OutcomeClass,
        /// Which of their requests' tries they were.
        which: Try,
        /// How many; above zero.
        count: u32,
    },
}

/// Attempts at one destination that ended well, and that no event tells of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Successes {
    /// All of them.
    pub ok: u64,
    /// Those of them that were not the first try of their request.
    pub repeats: u64,
}

/// Takes events out. There is one per board, ever: it alone knows what was told.
pub struct Reader {
    shared: Arc<Shared>,
    workers: Vec<Account>,
    taken: Vec<(WorkerId, Entry)>,
}

/// What was already told of one worker.
#[derive(Default)]
struct Account {
    /// [`WorkerState::overflowed`] at the last drain.
    overflowed: u64,
    /// By slot.
    slots: Vec<SlotAccount>,
    /// [`WorkerState::stirs`] at the last look.
    stirs: Vec<u32>,
}

#[derive(Clone, Copy, Default)]
struct SlotAccount {
    /// Silent successes.
    ok: u64,
    /// The same at the last [`Reader::ok_since`].
    summed: u64,
    /// Those of them that are told as repeats.
    repeats: u64,
    /// [`Record::merged`].
    merged: [u32; KINDS],
}

impl Reader {
    pub(crate) fn claim(shared: &Arc<Shared>) -> Option<Self> {
        let was_claimed = shared.reader_claimed.swap(true, Ordering::Acquire);
        let workers = shared.workers.iter().map(|_| Account::default()).collect();
        (!was_claimed).then(|| Self { shared: Arc::clone(shared), workers, taken: Vec::new() })
    }

    /// Hands out all events that stand in the rings now, in the order of their ends (those of one worker in the order in
    /// which it saw them), then what was merged. An event that comes later, or that does not fit into this round's
    /// bound of one ring per worker, wakes the waker.
    pub fn drain(&mut self, mut each: impl FnMut(Drained)) {
        self.shared.wake.clear();
        let mut taken = std::mem::take(&mut self.taken);
        for (id, state) in states(&self.shared) {
            for _ in 0..state.ring.capacity() {
                let Some(entry) = state.ring.pop() else { break };
                taken.push((id, entry));
            }
        }
        taken.sort_by_key(|(_, entry)| entry.ended.ended_at);
        for (worker, entry) in taken.drain(..) {
            let told = self.account(worker, entry.slot);
            let ok_before = entry.ok.saturating_sub(told.ok);
            told.ok = told.ok.max(entry.ok);
            each(Drained::Event { slot: entry.slot, worker, ok_before, ended: entry.ended });
        }
        self.taken = taken;
        self.drain_merged(&mut each);
    }

    /// Successes at a destination that no call has told and no event tells, all workers together. For the core's tick. The
    /// counts that come with events do not tell repeats apart: the repeats among those since the last call are told here.
    pub fn ok_since(&mut self, slot: Slot) -> Successes {
        let shared = Arc::clone(&self.shared);
        let mut sum = Successes::default();
        for (id, state) in states(&shared) {
            let Some(record) = state.records.get(slot.0) else { continue };
            // First the whole, then the part, and written the other way round: of each success that is seen it is known whether
            // it was a repeat. One that ends between the two may be told with an earlier success, and none is left over.
            let ok = record.silent_ok();
            let repeats = record.ok_repeats();
            let told = self.account(id, slot);
            sum.ok += ok.saturating_sub(told.ok);
            told.ok = told.ok.max(ok);
            let new = repeats.saturating_sub(told.repeats).min(told.ok - told.summed);
            sum.repeats += new;
            (told.summed, told.repeats) = (told.ok, told.repeats + new);
        }
        sum
    }

    /// Slots where an attempt may have begun or ended since the last call, in order, with up to seven quiet neighbours
    /// each. What happens to a request in flight stirs nothing. For the core's tick: all other slots are as they were.
    pub fn stirred(&mut self) -> Vec<Slot> {
        let shared = Arc::clone(&self.shared);
        let mut blocks = Vec::new();
        for (id, state) in states(&shared) {
            let Some(account) = self.workers.get_mut(id.index()) else { continue };
            for (block, stirs) in state.stirs.entries() {
                let stirs = stirs.load(Ordering::Acquire);
                let place = block as usize;
                if account.stirs.len() <= place {
                    account.stirs.resize(place + 1, 0);
                }
                // The vector was grown to hold it.
                if std::mem::replace(&mut account.stirs[place], stirs) != stirs {
                    blocks.push(block);
                }
            }
        }
        blocks.sort_unstable();
        blocks.dedup();
        blocks.into_iter().flat_map(|block| (0..STIR).map(move |n| Slot(block * STIR + n))).collect()
    }

    fn drain_merged(&mut self, each: &mut impl FnMut(Drained)) {
        let shared = Arc::clone(&self.shared);
        for (id, state) in states(&shared) {
            let overflowed = state.overflowed();
            let Some(account) = self.workers.get_mut(id.index()) else { continue };
            if account.overflowed == overflowed {
                continue;
            }
            account.overflowed = overflowed;
            for (slot, record) in state.records.entries() {
                self.tell_merged(id, Slot(slot), record, each);
            }
        }
    }

    fn tell_merged(&mut self, id: WorkerId, slot: Slot, record: &Record, each: &mut impl FnMut(Drained)) {
        let merged = record.merged();
        let told = std::mem::replace(&mut self.account(id, slot).merged, merged);
        for (((class, which), now), before) in kinds().zip(merged).zip(told) {
            let count = now.wrapping_sub(before);
            if count > 0 {
                each(Drained::Merged { slot, class, which, count });
            }
        }
    }

    fn account(&mut self, worker: WorkerId, slot: Slot) -> &mut SlotAccount {
        let (worker, slot) = (worker.index(), slot.index());
        if self.workers.len() <= worker {
            self.workers.resize_with(worker + 1, Account::default);
        }
        // Both indexes lie within: the vectors were grown to hold them.
        let slots = &mut self.workers[worker].slots;
        if slots.len() <= slot {
            slots.resize(slot + 1, SlotAccount::default());
        }
        &mut slots[slot]
    }
}

fn states(shared: &Shared) -> impl Iterator<Item = (WorkerId, &WorkerState)> {
    // There are fewer workers than u32::MAX.
    shared.workers.iter().enumerate().map(|(id, state)| (WorkerId(id as u32), &**state))
}
