//! What a destination's attempts of late came to: the ground on which it is compared with its cluster.
//!
//! Late is the last ten seconds; where these hold too few attempts to say anything, as many times ten seconds as hold enough,
//! up to two minutes: at one request each two seconds ten seconds are five requests.
//!
//! First tries and repeats are kept apart: they do not say the same ([`crate::comparison`]).

use std::num::NonZeroU64;

use model::outcome::{FailureKind, Outcome, OutcomeClass, Try};
use model::passive::Plain500;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Attempts, by what they say of a destination. Neutral is none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Came to something good.
    pub ok: u64,
    /// Failed: no connection, no head in time, broken off, 502, 503, 504.
    pub failed: u64,
    /// Answered 500 (or 5xx that counts like it).
    pub plain_500: u64,
    /// Asked for less: neither good nor failed, and no part of [`Self::total`].
    #[serde(default, skip_serializing_if = "is_none")]
    pub asked: u64,
}

impl Counts {
    /// What one outcome counts as.
    pub fn of(outcome: &Outcome) -> Self {
        match outcome.class {
            OutcomeClass::Ok => Self { ok: 1, ..Self::default() },
            OutcomeClass::ConnFail | OutcomeClass::Timeout | OutcomeClass::Cut => Self { failed: 1, ..Self::default() },
            OutcomeClass::AppFail if is_plain_500(outcome) => Self { plain_500: 1, ..Self::default() },
            OutcomeClass::AppFail => Self { failed: 1, ..Self::default() },
            OutcomeClass::Overload => Self { asked: 1, ..Self::default() },
            OutcomeClass::Slow | OutcomeClass::Neutral => Self::default(),
        }
    }

    /// Those that failed.
    pub fn failures(&self, plain_500: Plain500) -> u64 {
        match plain_500 {
            Plain500::Counts => self.failed.saturating_add(self.plain_500),
            Plain500::Passes => self.failed,
        }
    }

    /// All that came to something good or failed.
    pub fn total(&self) -> u64 {
        self.ok.saturating_add(self.failed).saturating_add(self.plain_500)
    }

    /// Without `part`, which is a part of it.
    pub fn less(self, part: Self) -> Self {
        Self {
            ok: self.ok.saturating_sub(part.ok),
            failed: self.failed.saturating_sub(part.failed),
            plain_500: self.plain_500.saturating_sub(part.plain_500),
            asked: self.asked.saturating_sub(part.asked),
        }
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        Self {
            ok: self.ok.saturating_add(other.ok),
            failed: self.failed.saturating_add(other.failed),
            plain_500: self.plain_500.saturating_add(other.plain_500),
            asked: self.asked.saturating_add(other.asked),
        }
    }
}

/// Recordings keep many windows, and few of them have any.
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// An answer of 500, or a failure of which only the class is known (a storm keeps no more): it is not held to be the
/// server's own.
fn is_plain_500(outcome: &Outcome) -> bool {
    let by_status = matches!(outcome.failure, None | Some(FailureKind::Status));
    by_status && matches!(outcome.status, None | Some(500))
}

/// Attempts by their place among their request's tries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) first: Counts,
    pub(crate) repeat: Counts,
}

impl Tally {
    /// First tries and repeats together.
    pub(crate) fn all(self) -> Counts {
        self.first.and(self.repeat)
    }

    /// Without `part`, which is a part of it.
    pub(crate) fn less(self, part: Self) -> Self {
        Self { first: self.first.less(part.first), repeat: self.repeat.less(part.repeat) }
    }

    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self { first: self.first.and(other.first), repeat: self.repeat.and(other.repeat) }
    }
}

/// How far a comparison looks back, and whether its first tries alone are enough to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// In ten seconds.
    pub(crate) tens: u32,
    pub(crate) ground: Ground,
}

/// Which tries are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ground {
    /// There are enough of these.
    FirstTries,
    /// All, each kind with its like.
    AllTries,
}

/// The last two minutes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Window {
    first: Rings,
    /// Made when the first of them comes: most destinations never see one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repeat: Option<Box<Rings>>,
}

/// The last ten seconds in buckets of one, the last two minutes in buckets of ten.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Rings {
    fine: Ring,
    coarse: Ring,
}

/// Buckets of equal length, the oldest overwritten by the newest.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ring {
    /// Of one bucket.
    seconds: NonZeroU64,
    /// One at least.
    buckets: Vec<Counts>,
    /// Number of the newest bucket since the start.
    newest: u64,
}

impl Window {
    /// Adds attempts that ended now.
    pub(crate) fn add(&mut self, now: Timestamp, which: Try, counts: Counts) {
        match which {
            Try::First => self.first.add(now, counts),
            Try::Repeat => self.repeat.get_or_insert_default().add(now, counts),
        }
    }

    /// The shortest time in which `enough` first tries ended; where all that is kept holds fewer, in which `enough` of any
    /// did, or all that is kept.
    pub(crate) fn reach(&self, now: Timestamp, enough: u64) -> Reach {
        let within =
            |total: &dyn Fn(Tally) -> u64| (1..=MOST_TENS).find(|tens| total(self.total(now, *tens)) >= enough);
        match within(&|tally| tally.first.total()) {
            Some(tens) => Reach { tens, ground: Ground::FirstTries },
            None => {
                let tens = within(&|tally| tally.all().total()).unwrap_or(MOST_TENS);
                Reach { tens, ground: Ground::AllTries }
            }
        }
    }

    /// All that is not older than so many times ten seconds, to the bucket.
    pub(crate) fn total(&self, now: Timestamp, tens: u32) -> Tally {
        self.tally(|rings| rings.total(now, tens))
    }

    /// All that came after the second of `since`, ten seconds at most.
    pub(crate) fn after(&self, now: Timestamp, since: Timestamp) -> Tally {
        self.tally(|rings| rings.after(now, since))
    }

    /// Adds all that another one holds.
    pub(crate) fn put_in(&mut self, other: &Self) {
        self.first.join(&other.first, Counts::and);
        if let Some(repeat) = &other.repeat {
            self.repeat.get_or_insert_default().join(repeat, Counts::and);
        }
    }

    /// Takes all out that another one holds, which is a part of this one.
    pub(crate) fn take_out(&mut self, other: &Self) {
        self.first.join(&other.first, Counts::less);
        if let (Some(own), Some(repeat)) = (&mut self.repeat, &other.repeat) {
            own.join(repeat, Counts::less);
        }
    }

    /// Nothing seen.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn tally(&self, total: impl Fn(&Rings) -> Counts) -> Tally {
        Tally { first: total(&self.first), repeat: self.repeat.as_deref().map(total).unwrap_or_default() }
    }
}

impl Default for Rings {
    fn default() -> Self {
        Self { fine: Ring::new(NonZeroU64::MIN, 10), coarse: Ring::new(TEN, MOST_TENS as usize) }
    }
}

impl Rings {
    fn add(&mut self, now: Timestamp, counts: Counts) {
        self.fine.add(now, counts);
        self.coarse.add(now, counts);
    }

    fn total(&self, now: Timestamp, tens: u32) -> Counts {
        if tens <= 1 { self.fine.total(now, 10) } else { self.coarse.total(now, u64::from(tens)) }
    }

    fn after(&self, now: Timestamp, since: Timestamp) -> Counts {
        self.fine.total(now, self.fine.number(now).saturating_sub(self.fine.number(since)))
    }

    fn join(&mut self, other: &Self, how: impl Fn(Counts, Counts) -> Counts + Copy) {
        self.fine.join(&other.fine, how);
        self.coarse.join(&other.coarse, how);
    }
}

impl Ring {
    fn new(seconds: NonZeroU64, n: usize) -> Self {
        Self { seconds, buckets: vec![Counts::default(); n], newest: 0 }
    }

    fn add(&mut self, now: Timestamp, counts: Counts) {
        self.advance(now);
        let place = self.place(self.newest);
        if let Some(bucket) = self.buckets.get_mut(place) {
            *bucket = bucket.and(counts);
        }
    }

    /// Over the newest `n` buckets as of now.
    fn total(&self, now: Timestamp, n: u64) -> Counts {
        let number = self.number(now).max(self.newest);
        let oldest = (number + 1).saturating_sub(n.min(self.len()));
        let kept = (oldest..=self.newest).filter_map(|one| self.buckets.get(self.place(one)));
        kept.fold(Counts::default(), |sum, one| sum.and(*one))
    }

    /// Bucket by bucket, with one of the same length; what is older than this one's buckets is left out.
    fn join(&mut self, other: &Self, how: impl Fn(Counts, Counts) -> Counts) {
        self.advance_to(other.newest);
        let oldest = |ring: &Self| (ring.newest + 1).saturating_sub(ring.len());
        for number in oldest(self).max(oldest(other))..=other.newest {
            let place = self.place(number);
            if let (Some(own), Some(others)) = (self.buckets.get_mut(place), other.buckets.get(place)) {
                *own = how(*own, *others);
            }
        }
    }

    fn advance(&mut self, now: Timestamp) {
        self.advance_to(self.number(now));
    }

    fn advance_to(&mut self, number: u64) {
        if number <= self.newest {
            return;
        }
        let n = (number - self.newest).min(self.len());
        for one in (number + 1 - n)..=number {
            let place = self.place(one);
            if let Some(bucket) = self.buckets.get_mut(place) {
                *bucket = Counts::default();
            }
        }
        self.newest = number;
    }

    fn number(&self, now: Timestamp) -> u64 {
        now.as_nanos() / 1_000_000_000 / self.seconds
    }

    fn place(&self, number: u64) -> usize {
        (number % self.len()) as usize
    }

    /// How many buckets; never nothing, since it divides.
    fn len(&self) -> u64 {
        self.buckets.len().max(1) as u64
    }
}

/// Seconds of a coarse bucket.
const TEN: NonZeroU64 = NonZeroU64::MIN.saturating_add(9);
/// A comparison looks no further back than so many times ten seconds.
const MOST_TENS: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_leave_the_window_after_ten_seconds() {
        let mut window = Window::default();
        let ok = |n| Counts { ok: n, ..Counts::default() };
        let total = |window: &Window, at| window.total(at, 1).first;
        window.add(Timestamp::from_millis(500), Try::First, ok(3));
        window.add(Timestamp::from_millis(9_999), Try::First, ok(4));
        assert_eq!(total(&window, Timestamp::from_millis(9_999)).ok, 7);
        assert_eq!(total(&window, Timestamp::from_secs(10)).ok, 4);
        window.add(Timestamp::from_secs(11), Try::First, ok(1));
        assert_eq!(total(&window, Timestamp::from_secs(18)).ok, 5);
        assert_eq!(total(&window, Timestamp::from_secs(19)).ok, 1);
        assert_eq!(total(&window, Timestamp::from_secs(1000)).ok, 0);
        window.add(Timestamp::from_secs(1000), Try::First, ok(2));
        assert_eq!(total(&window, Timestamp::from_secs(1000)).ok, 2);
        window.clear();
        assert_eq!(total(&window, Timestamp::from_secs(1000)), Counts::default());
    }

    #[test]
    fn where_ten_seconds_hold_too_little_more_of_them_are_looked_at() {
        let mut window = Window::default();
        let one = Counts { ok: 1, ..Counts::default() };
        (0..30).for_each(|n| window.add(Timestamp::from_secs(100 + 4 * n), Try::First, one));
        let now = Timestamp::from_secs(219);
        assert_eq!(window.total(now, 1).first.ok, 2);
        let reach = window.reach(now, 10);
        assert_eq!((reach, window.total(now, 4).first.ok), (Reach { tens: 4, ground: Ground::FirstTries }, 10));
        assert_eq!(window.reach(now, 2), Reach { tens: 1, ground: Ground::FirstTries });
        assert_eq!(window.reach(now, 1_000), Reach { tens: 12, ground: Ground::AllTries });
    }

    #[test]
    fn repeats_make_up_for_first_tries_only_where_all_that_is_kept_holds_too_few_of_them() {
        let mut window = Window::default();
        let one = Counts { failed: 1, ..Counts::default() };
        let now = Timestamp::from_secs(119);
        (0..12).for_each(|n| window.add(Timestamp::from_secs(10 * n + 9), Try::First, one));
        (0..30).for_each(|_| window.add(now, Try::Repeat, one));
        assert_eq!(window.reach(now, 12), Reach { tens: 12, ground: Ground::FirstTries });
        assert_eq!(window.reach(now, 13), Reach { tens: 1, ground: Ground::AllTries });
        let Tally { first, repeat } = window.total(now, 1);
        assert_eq!((first.failed, repeat.failed), (1, 30));
        let mut sum = Window::default();
        sum.put_in(&window);
        assert_eq!(sum.total(now, 12), window.total(now, 12));
        sum.take_out(&window);
        assert_eq!(sum.total(now, 12), Tally::default());
    }
}
