//! From the board to the core: how requests in flight are doing.
//!
//! Workers count who waits for a response head and sort times to first byte into buckets; this turns the counts of one
//! tick into what policies look at: since when somebody waits, a percentile of late, and a mean that follows peaks at once.

use std::collections::BTreeMap;
use std::time::Duration;

use board::Board;
use board::first_byte::{BUCKETS, middle};
use health::{Input, Pulse};
use model::id::Slot;
use model::time::Timestamp;

/// What was seen of each destination.
#[derive(Default)]
pub struct Pulses {
    slots: BTreeMap<Slot, Seen>,
}

struct Seen {
    at: Timestamp,
    counts: [u32; BUCKETS],
    /// Samples by bucket, each worth half after [`HALF_LIFE`].
    weights: [f64; BUCKETS],
    /// Seconds, and when the last sample came; `None` before the first.
    peak: Option<(f64, Timestamp)>,
    /// Samples and their seconds, each worth half after [`MEAN_HALF_LIFE`].
    recent: (f64, f64),
    waiting_since: Option<Timestamp>,
}

impl Pulses {
    /// Takes the pulses of `slots`; those that are not among them any more are forgotten. Nothing for no slots.
    pub fn take<S>(&mut self, board: &Board<S>, slots: &[Slot], now: Timestamp) -> Option<Input> {
        self.slots.retain(|slot, _| slots.binary_search(slot).is_ok());
        let pulses: Vec<Pulse> = slots.iter().map(|slot| self.pulse(board, *slot, now)).collect();
        (!pulses.is_empty()).then_some(Input::PulsesTaken { pulses })
    }

    fn pulse<S>(&mut self, board: &Board<S>, slot: Slot, now: Timestamp) -> Pulse {
        let counts = board.first_bytes(slot);
        let seen = self.slots.entry(slot).or_insert_with(|| Seen::new(now, counts));
        seen.add(now, counts);
        let waiting = board.waiting(slot);
        seen.waiting_since = (waiting > 0).then(|| seen.waiting_since.unwrap_or(now));
        Pulse {
            slot,
            waiting,
            waiting_since: seen.waiting_since.unwrap_or(Timestamp::MAX),
            moved_at: board.last_progress(slot),
            first_byte_p99: seen.p99(),
            latency: seen.peak.map(|(peak, _)| Duration::from_secs_f64(peak)),
            mean: seen.mean(),
        }
    }
}

impl Seen {
    fn new(at: Timestamp, counts: [u32; BUCKETS]) -> Self {
        Self { at, counts, weights: [0.0; BUCKETS], peak: None, recent: (0.0, 0.0), waiting_since: None }
    }

    fn add(&mut self, now: Timestamp, counts: [u32; BUCKETS]) {
        let elapsed = now.since(self.at).as_secs_f64();
        let kept = libm::exp2(-elapsed / HALF_LIFE);
        let (mut n, mut sum) = (0.0, 0.0);
        for (bucket, ((weight, count), before)) in self.weights.iter_mut().zip(counts).zip(self.counts).enumerate() {
            let new = f64::from(count.wrapping_sub(before));
            *weight = *weight * kept + new;
            n += new;
            sum += new * middle(bucket).as_secs_f64();
        }
        (self.at, self.counts) = (now, counts);
        let left = libm::exp2(-elapsed / MEAN_HALF_LIFE);
        self.recent = (self.recent.0 * left + n, self.recent.1 * left + sum);
        if n > 0.0 {
            let mean = sum / n;
            // A slower tick counts at once, a faster one by the time that has passed: of one that gets little traffic, too,
            // a peak is forgotten after so long.
            let moved = |(peak, at): (f64, Timestamp)| {
                let kept = libm::exp2(-now.since(at).as_secs_f64() / HALF_LIFE);
                mean.max(mean + (peak - mean) * kept)
            };
            self.peak = Some((self.peak.map_or(mean, moved), now));
        }
    }

    fn mean(&self) -> Option<Duration> {
        let (n, seconds) = self.recent;
        (n >= LEAST).then(|| Duration::from_secs_f64(seconds / n))
    }

    fn p99(&self) -> Option<Duration> {
        let total: f64 = self.weights.iter().sum();
        if total < FEWEST {
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
/// Below so many samples of late there is no percentile.
const FEWEST: f64 = 20.0;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use std::sync::Arc;

    use model::id::WorkerId;

    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn one(input: Option<Input>) -> Pulse {
        let Some(Input::PulsesTaken { pulses }) = input else { panic!("no pulse") };
        pulses[0]
    }

    #[test]
    fn waiting_counts_from_the_tick_that_first_saw_it_and_ends_with_the_head() {
        let board = Board::new(1, Arc::new(()));
        let worker = board.worker(WorkerId(0)).unwrap();
        let mut pulses = Pulses::default();
        let slots = [Slot(4)];
        let flight = worker.start(Slot(4));
        assert_eq!(one(pulses.take(&board, &slots, at(100))).waiting_since, at(100));
        let pulse = one(pulses.take(&board, &slots, at(200)));
        assert_eq!((pulse.waiting, pulse.waiting_since, pulse.moved_at), (1, at(100), Timestamp::ZERO));
        flight.answered(at(250), Duration::from_millis(150));
        let pulse = one(pulses.take(&board, &slots, at(300)));
        assert_eq!((pulse.waiting, pulse.waiting_since, pulse.moved_at), (0, Timestamp::MAX, at(250)));
        drop(flight);
        assert_eq!(board.waiting(Slot(4)), 0);
        assert!(pulses.take(&board, &[], at(400)).is_none());
    }

    #[test]
    fn the_percentile_is_of_late_and_the_mean_follows_peaks_at_once() {
        let board = Board::new(1, Arc::new(()));
        let worker = board.worker(WorkerId(0)).unwrap();
        let mut pulses = Pulses::default();
        let slots = [Slot(0)];
        let _ = pulses.take(&board, &slots, at(0));
        let answer = |millis: u64, n| {
            (0..n).for_each(|_| worker.start(Slot(0)).answered(at(1), Duration::from_millis(millis)));
        };
        answer(1, 95);
        answer(100, 5);
        let pulse = one(pulses.take(&board, &slots, at(100)));
        let p99 = pulse.first_byte_p99.unwrap();
        assert!((80..130).contains(&p99.as_millis()), "{p99:?}");
        let slow = pulse.latency.unwrap();
        answer(1, 100);
        let later = one(pulses.take(&board, &slots, at(200))).latency.unwrap();
        assert!(later < slow && later > slow / 2, "{later:?} {slow:?}");
        answer(100, 100);
        assert!(one(pulses.take(&board, &slots, at(300))).latency.unwrap() > Duration::from_millis(80));
        for tick in 4..1000 {
            answer(1, 10);
            let _ = pulses.take(&board, &slots, at(tick * 100));
        }
        let pulse = one(pulses.take(&board, &slots, at(100_000)));
        assert!(pulse.first_byte_p99.unwrap() < Duration::from_millis(2));
        assert!(pulse.latency.unwrap() < Duration::from_millis(2));
    }

    #[test]
    fn a_peak_is_forgotten_by_time_however_few_requests_come_and_the_mean_knows_no_peaks() {
        let board = Board::new(1, Arc::new(()));
        let worker = board.worker(WorkerId(0)).unwrap();
        let mut pulses = Pulses::default();
        let slot = Slot(0);
        let mut tick = |millis: u64, took: Option<u64>| {
            if let Some(took) = took {
                worker.start(slot).answered(at(millis), Duration::from_millis(took));
            }
            one(pulses.take(&board, &[slot], at(millis)))
        };
        tick(0, None);
        assert!(tick(100, Some(1000)).latency.unwrap() > Duration::from_millis(900));
        (2..200).for_each(|n| _ = tick(100 * n, None));
        assert_eq!(tick(20_000, None).mean, None);
        let last = tick(20_100, Some(10));
        // Two half-lives: a quarter of it is left.
        let latency = last.latency.unwrap();
        assert!(latency > Duration::from_millis(220) && latency < Duration::from_millis(290), "{latency:?}");
        assert!(last.mean.unwrap() < Duration::from_millis(15), "{:?}", last.mean);
    }
}
