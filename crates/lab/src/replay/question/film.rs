//! What a drawing of an answer needs: since when each destination served in which way, and how many attempts failed when.

use std::time::Duration;

use model::time::Timestamp;

/// How a destination serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving {
    /// With all of its weight.
    In,
    /// With a part of it.
    Part,
    /// Not at all.
    Out,
    /// It is not there.
    Gone,
}

/// Since when it was how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane(Vec<(Timestamp, Serving)>);

impl Lane {
    pub(super) fn turn(&mut self, at: Timestamp, to: Serving) {
        if self.0.last().is_none_or(|(_, last)| *last != to) {
            self.0.push((at, to));
        }
    }

    /// The changes, oldest first.
    pub fn changes(&self) -> &[(Timestamp, Serving)] {
        &self.0
    }
}

/// Failed attempts over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures {
    from: Timestamp,
    /// Of one bin.
    pub width: Duration,
    /// As they were, per bin.
    pub recorded: Vec<u64>,
    /// Those of destinations that would have been out, per bin.
    pub spared: Vec<u64>,
}

/// Whom a failure would have met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// A destination that would have been in, too.
    In,
    /// One that would have been out.
    Out,
}

impl Failures {
    pub(super) fn new(from: Timestamp, until: Timestamp) -> Self {
        let width = (until.since(from) / BINS).max(Duration::from_millis(100));
        Self { from, width, recorded: vec![0; BINS as usize], spared: vec![0; BINS as usize] }
    }

    pub(super) fn count(&mut self, at: Timestamp, met: Met) {
        let bin = at.since(self.from).as_nanos() / self.width.as_nanos();
        let bin = usize::try_from(bin).unwrap_or(usize::MAX).min(BINS as usize - 1);
        let spared = u64::from(met == Met::Out);
        self.recorded.iter_mut().skip(bin).take(1).for_each(|count| *count += 1);
        self.spared.iter_mut().skip(bin).take(1).for_each(|count| *count += spared);
    }
}

/// Bins of a drawing.
const BINS: u32 = 240;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_where_they_were_and_never_beyond_the_last_bin() {
        let mut failures = Failures::new(Timestamp::from_secs(100), Timestamp::from_secs(340));
        assert_eq!(failures.width, Duration::from_secs(1));
        for (second, met) in [(100, Met::In), (101, Met::Out), (101, Met::In), (339, Met::Out), (5000, Met::In)] {
            failures.count(Timestamp::from_secs(second), met);
        }
        let filled = |bins: &[u64]| bins.iter().copied().enumerate().filter(|(_, n)| *n > 0).collect::<Vec<_>>();
        assert_eq!(filled(&failures.recorded), [(0, 1), (1, 2), (239, 2)]);
        assert_eq!(filled(&failures.spared), [(1, 1), (239, 1)]);
    }

    #[test]
    fn a_lane_keeps_changes_alone() {
        let mut lane = Lane::default();
        for (second, serving) in [(1, Serving::In), (2, Serving::In), (3, Serving::Out), (4, Serving::Part)] {
            lane.turn(Timestamp::from_secs(second), serving);
        }
        let seconds: Vec<u64> = lane.changes().iter().map(|(at, _)| at.as_nanos() / 1_000_000_000).collect();
        assert_eq!(seconds, [1, 3, 4]);
    }
}
