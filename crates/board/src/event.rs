//! One attempt's end as an event, and its form in the ring: four words.
//!
//! ```text
//!   word 0   63      32 31    16 15 13   12    11     4  3        2           1          0
//!            | slot    | status |  -  | repeat | failure | has failure | has status | client gone, retryable |
//!   word 1   class in the upper byte, when the destination was picked (56 bits of nanoseconds: two years)
//!   word 2   when the attempt ended
//!   word 3   successes of this worker at this destination up to here that no event tells
//! ```

use model::id::Slot;
use model::outcome::{FailureKind, Outcome, OutcomeClass, Try};
use model::time::Timestamp;

/// How and when an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// When the destination was picked. A policy can tell by it whether the attempt began before an ejection.
    pub picked_at: Timestamp,
    /// When it was over.
    pub ended_at: Timestamp,
    /// Which of its request's tries it was.
    pub which: Try,
    /// What it came to.
    pub outcome: Outcome,
}

/// What stands in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) slot: Slot,
    pub(crate) ended: Ended,
    /// The worker's successes there since the start that no event tells.
    pub(crate) ok: u64,
}

pub(crate) const WORDS: usize = 4;

impl Entry {
    pub(crate) fn to_words(self) -> [u64; WORDS] {
        let Outcome { class, failure, status, retryable, client_gone } = self.ended.outcome;
        let flags = flag(retryable, RETRYABLE)
            | flag(client_gone, CLIENT_GONE)
            | flag(status.is_some(), HAS_STATUS)
            | flag(failure.is_some(), HAS_FAILURE)
            | flag(self.ended.which == Try::Repeat, REPEAT);
        let failure = failure.map_or(0, FailureKind::code);
        let status = status.unwrap_or_default();
        let first = u64::from(self.slot.0) << 32 | u64::from(status) << 16 | u64::from(failure) << 4 | flags;
        let picked_at = self.ended.picked_at.as_nanos().min(MAX_PICKED_AT);
        let second = u64::from(class.code()) << CLASS_SHIFT | picked_at;
        [first, second, self.ended.ended_at.as_nanos(), self.ok]
    }

    /// `None` for words that no entry has.
    pub(crate) fn from_words([first, second, ended_at, ok]: [u64; WORDS]) -> Option<Self> {
        let has = |flag| first & flag != 0;
        let failure = if has(HAS_FAILURE) { Some(FailureKind::from_code((first >> 4) as u8)?) } else { None };
        let outcome = Outcome {
            class: OutcomeClass::from_code((second >> CLASS_SHIFT) as u8)?,
            failure,
            status: has(HAS_STATUS).then_some((first >> 16) as u16),
            retryable: has(RETRYABLE),
            client_gone: has(CLIENT_GONE),
        };
        let ended = Ended {
            picked_at: Timestamp::from_nanos(second & MAX_PICKED_AT),
            ended_at: Timestamp::from_nanos(ended_at),
            which: if has(REPEAT) { Try::Repeat } else { Try::First },
            outcome,
        };
        Some(Self { slot: Slot((first >> 32) as u32), ended, ok })
    }
}

fn flag(is_set: bool, flag: u64) -> u64 {
    if is_set { flag } else { 0 }
}

const RETRYABLE: u64 = 1;
const CLIENT_GONE: u64 = 2;
const HAS_STATUS: u64 = 4;
const HAS_FAILURE: u64 = 8;
const REPEAT: u64 = 1 << 12;
const CLASS_SHIFT: u32 = 56;
const MAX_PICKED_AT: u64 = (1 << CLASS_SHIFT) - 1;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_class_failure_and_flag_comes_back_from_the_words() {
        let failures = FailureKind::ALL.into_iter().map(Some).chain([None]);
        for failure in failures {
            for class in OutcomeClass::ALL {
                for bits in 0..4_u32 {
                    let outcome = Outcome {
                        class,
                        failure,
                        status: (bits != 0).then_some(500 + bits as u16),
                        retryable: bits & 1 == 1,
                        client_gone: bits & 2 == 2,
                    };
                    let ended = Ended {
                        picked_at: Timestamp::from_secs(86_400 * 365),
                        ended_at: Timestamp::from_nanos(u64::MAX - 7),
                        which: Try::of_number(1 + (bits & 1) as u8),
                        outcome,
                    };
                    let entry = Entry { slot: Slot(u32::MAX - bits), ended, ok: u64::from(bits) << 40 };
                    assert_eq!(Entry::from_words(entry.to_words()), Some(entry));
                }
            }
        }
    }

    #[test]
    fn words_that_stand_for_nothing_are_no_entry() {
        assert_eq!(Entry::from_words([0, u64::MAX, 0, 0]), None);
        assert_eq!(Entry::from_words([HAS_FAILURE | 0xff << 4, 0, 0, 0]), None);
    }
}
