//! From the board to the core: how requests in flight are doing.
//!
//! Workers count who waits for a response head and sort times to first byte into buckets; this turns the counts of one
//! tick into what policies look at: since when somebody waits, a percentile of late, and a mean that follows peaks at once.
//!
//! Thousands of destinations may carry nothing: only those are looked at that were stirred, have somebody in flight, or had
//! a response head within the last half minute or so (until their mean is forgotten, which is told once).

use std::sync::Arc;
use std::time::Duration;

use board::Board;
use board::first_byte::{BUCKETS, middle};
use health::{Core, Input, Pulse};
use model::id::Slot;
use model::time::Timestamp;

/// What was seen of each destination.
#[derive(Default)]
pub struct Pulses {
    /// Whose pulses are wanted: the very list that the core gave.
    wanted: Arc<[Slot]>,
    /// By slot; `None`: not wanted.
    seen: Vec<Option<Box<Seen>>>,
    /// Where something may be going on.
    lively: Vec<Slot>,
}

struct Seen {
    /// When `counts` and `weights` are from.
    at: Timestamp,
    counts: [u32; BUCKETS],
    /// Samples by bucket, each worth half after [`HALF_LIFE`].
    weights: [f64; BUCKETS],
    /// Seconds, and when the last sample came; `None` before the first.
    peak: Option<(f64, Timestamp)>,
    /// Samples and their seconds, each worth half after [`MEAN_HALF_LIFE`].
    recent: (f64, f64),
    slowest: Slowest,
    waiting_since: Option<Timestamp>,
    /// What was last told.
    told: Option<Pulse>,
}

/// Whether a destination must be looked at in the next tick, too.
#[derive(PartialEq, Eq)]
enum Look {
    Again,
    WhenStirred,
}

impl Pulses {
    /// At these slots something may have happened. Anything else is where it was, or in flight.
    pub fn stir(&mut self, slots: &[Slot]) {
        self.lively.extend_from_slice(slots);
    }

    /// Takes the pulses of those slots that the core wants to hear of and where there is something to tell; the board hears
    /// of their latencies. `None` when there is nothing to tell, and no doubt that wants to be looked at.
    pub fn take<S>(&mut self, board: &Board<S>, core: &Core, now: Timestamp) -> Option<Input> {
        let pulses = self.pulses(board, core.pulse_slots(), now);
        (!pulses.is_empty() || core.is_doubting()).then_some(Input::PulsesTaken { pulses })
    }

    fn pulses<S>(&mut self, board: &Board<S>, wanted: &Arc<[Slot]>, now: Timestamp) -> Vec<Pulse> {
        if !Arc::ptr_eq(&self.wanted, wanted) {
            self.want(board, Arc::clone(wanted), now);
        }
        let mut lively = std::mem::take(&mut self.lively);
        // Mostly two runs in order: those of the last tick, and the stirred.
        lively.sort();
        lively.dedup();
        let mut pulses = Vec::with_capacity(lively.len());
        lively.retain(|&slot| {
            let Some(seen) = self.seen.get_mut(slot.index()).and_then(Option::as_mut) else { return false };
            let (pulse, look) = seen.look(board, slot, now);
            // A quiet neighbour of one that was stirred has no news.
            let is_news = seen.told.replace(pulse) != Some(pulse);
            if is_news || look == Look::Again {
                board.set_latency(slot, pulse.latency);
                pulses.push(pulse);
            }
            look == Look::Again
        });
        self.lively = lively;
        pulses
    }

    /// Others are wanted from here on; all of them are told once.
    fn want<S>(&mut self, board: &Board<S>, wanted: Arc<[Slot]>, now: Timestamp) {
        let mut before = std::mem::take(&mut self.seen);
        let end = wanted.iter().map(|slot| slot.index() + 1).max().unwrap_or_default();
        self.seen.resize_with(end, || None);
        for &slot in wanted.iter() {
            let kept = before.get_mut(slot.index()).and_then(Option::take);
            if let Some(place) = self.seen.get_mut(slot.index()) {
                *place = Some(kept.unwrap_or_else(|| Box::new(Seen::new(now, board.first_bytes(slot)))));
            }
        }
        self.seen.iter_mut().flatten().for_each(|seen| seen.told = None);
        self.lively.extend_from_slice(&wanted);
        self.wanted = wanted;
    }
}

/// The greatest bucket that had a sample, in this stretch of time and in the one before.
struct Slowest {
    since: Timestamp,
    now: Option<usize>,
    before: Option<usize>,
}

impl Slowest {
    /// Begins another stretch where this one is over.
    fn turn(&mut self, now: Timestamp) {
        let gone = now.since(self.since);
        if gone >= STRETCH {
            let before = self.now.take().filter(|_| gone < 2 * STRETCH);
            *self = Self { since: now, now: None, before };
        }
    }
}

impl Seen {
    fn new(at: Timestamp, counts: [u32; BUCKETS]) -> Self {
        Self {
            at,
            counts,
            weights: [0.0; BUCKETS],
            peak: None,
            recent: (0.0, 0.0),
            slowest: Slowest { since: at, now: None, before: None },
            waiting_since: None,
            told: None,
        }
    }

    fn look<S>(&mut self, board: &Board<S>, slot: Slot, now: Timestamp) -> (Pulse, Look) {
        // First of all: what a request that is over has left is seen then.
        let is_idle = board.in_flight(slot) == 0;
        let waiting = board.waiting(slot);
        self.slowest.turn(now);
        self.add(now, board.first_bytes(slot));
        self.waiting_since = (waiting > 0).then(|| self.waiting_since.unwrap_or(now));
        let pulse = Pulse {
            slot,
            waiting,
            waiting_since: self.waiting_since.unwrap_or(Timestamp::MAX),
            moved_at: board.last_progress(slot),
            first_byte_p99: self.p99(now),
            slowest: self.slowest.now.max(self.slowest.before).map(middle),
            latency: self.peak.map(|(peak, _)| Duration::from_secs_f64(peak)),
            mean: self.mean(now),
        };
        let is_over = is_idle && waiting == 0 && pulse.mean.is_none();
        (pulse, if is_over { Look::WhenStirred } else { Look::Again })
    }

    /// Takes new samples over. Without any there is nothing to be done: what is known grows old by itself.
    fn add(&mut self, now: Timestamp, counts: [u32; BUCKETS]) {
        if counts == self.counts {
            return;
        }
        let elapsed = now.since(self.at).as_secs_f64();
        let kept = libm::exp2(-elapsed / HALF_LIFE);
        let (mut n, mut sum) = (0.0, 0.0);
        for (bucket, ((weight, count), before)) in self.weights.iter_mut().zip(counts).zip(self.counts).enumerate() {
            let new = f64::from(count.wrapping_sub(before));
            *weight = *weight * kept + new;
            if new > 0.0 {
                n += new;
                sum += new * middle(bucket).as_secs_f64();
                self.slowest.now = self.slowest.now.max(Some(bucket));
            }
        }
        (self.at, self.counts) = (now, counts);
        let left = libm::exp2(-elapsed / MEAN_HALF_LIFE);
        self.recent = (self.recent.0 * left + n, self.recent.1 * left + sum);
        let mean = sum / n;
        // A slower tick counts at once, a faster one by the time that has passed: of one that gets little traffic, too,
        // a peak is forgotten after so long.
        let moved = |(peak, at): (f64, Timestamp)| {
            let kept = libm::exp2(-now.since(at).as_secs_f64() / HALF_LIFE);
            mean.max(mean + (peak - mean) * kept)
        };
        self.peak = Some((self.peak.map_or(mean, moved), now));
    }

    fn mean(&self, now: Timestamp) -> Option<Duration> {
        let (n, seconds) = self.recent;
        let left = n * libm::exp2(-now.since(self.at).as_secs_f64() / MEAN_HALF_LIFE);
        (left >= LEAST).then(|| Duration::from_secs_f64(seconds / n))
    }

    fn p99(&self, now: Timestamp) -> Option<Duration> {
        let total: f64 = self.weights.iter().sum();
        if total * libm::exp2(-now.since(self.at).as_secs_f64() / HALF_LIFE) < FEWEST {
            return None;
        }
        let mut left = total * 0.01;
        let slowest = self.weights.iter().enumerate().rev().find(|(_, weight)| {
            left -= **weight;
            left < 0.0
        });
        slowest.map(|(bucket, _)| middle(bucket))
    }
}

/// Seconds.
const HALF_LIFE: f64 = 10.0;
/// Seconds.
const MEAN_HALF_LIFE: f64 = 2.0;
/// Below this part of a sample there is no mean.
const LEAST: f64 = 0.1;
/// The slowest sample is known for one to two of these.
const STRETCH: Duration = Duration::from_secs(150);
/// Below so many samples of late there is no percentile.
const FEWEST: f64 = 20.0;

#[cfg(test)]
mod tests;
