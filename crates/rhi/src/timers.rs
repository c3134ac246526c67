//! Every deadline of the core, in one table.

use model::time::Timestamp;

/// What a deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The next poll cycle starts.
    Cycle,
    /// The running cycle ends, whatever is outstanding.
    CycleDeadline,
    /// A hold for unjudged nodes ends.
    Warming,
    /// The kernel may be asked for its addresses again.
    Read,
    /// A failed change of an address is tried again.
    Retry,
    /// A planned stop takes no longer.
    Stop,
}

const TIMERS: [Timer; 6] = [Timer::Cycle, Timer::CycleDeadline, Timer::Warming, Timer::Read, Timer::Retry, Timer::Stop];

/// The table.
#[derive(Clone, Debug, Default)]
pub struct Timers {
    at: [Option<Timestamp>; TIMERS.len()],
}

impl Timers {
    /// Sets or clears one.
    pub fn set(&mut self, timer: Timer, at: Option<Timestamp>) {
        self.at[timer as usize] = at;
    }

    /// When it is due.
    pub fn at(&self, timer: Timer) -> Option<Timestamp> {
        self.at[timer as usize]
    }

    /// The earliest of them.
    pub fn next(&self) -> Option<Timestamp> {
        self.at.iter().flatten().min().copied()
    }

    /// Takes one that is due out of the table, the earliest first, with when it was due.
    pub fn take_due(&mut self, now: Timestamp) -> Option<(Timer, Timestamp)> {
        let due = TIMERS.into_iter().filter_map(|timer| Some((timer, self.at(timer).filter(|at| *at <= now)?)));
        let (timer, at) = due.min_by_key(|(_, at)| *at)?;
        self.set(timer, None);
        Some((timer, at))
    }
}
