//! A planned stop: the VIPs are taken off the interface first, or stay, as `on_exit` says.
//!
//! It takes no longer than [`STOP_LIMIT`]; what the kernel still holds then is named in the journal.

use std::time::Duration;

use model::time::Timestamp;
use model::vip::OnExit;

use crate::core::{Core, Output, Phase};
use crate::event::Event;
use crate::timers::{Timer, Timers};

/// The longest time a stop takes.
pub const STOP_LIMIT: Duration = Duration::from_secs(2);

impl Core {
    pub(crate) fn begin_stop(&mut self, now: Timestamp) {
        match self.phase {
            Phase::Starting | Phase::Running => {}
            Phase::Stopping | Phase::Stopped => return,
        }
        self.phase = Phase::Stopping;
        self.say(Event::Stopping);
        self.cycle.abandon();
        self.timers = Timers::default();
        self.timers.set(Timer::Stop, Some(now + STOP_LIMIT));
        // One more look at the kernel, begun after this point, must confirm that nothing is left.
        self.confirm_stop_after = self.reading.asked;
        self.commands.lift_waits();
        self.read_addresses(now);
    }

    /// Whether addresses may be changed in this phase.
    pub(crate) fn may_change(&self) -> bool {
        match (self.phase, self.config.on_exit) {
            (Phase::Running, OnExit::Withdraw | OnExit::Keep) | (Phase::Stopping, OnExit::Withdraw) => true,
            (Phase::Stopping, OnExit::Keep) => false,
            (Phase::Starting | Phase::Stopped, OnExit::Withdraw | OnExit::Keep) => false,
        }
    }

    /// Stopping becomes Stopped once nothing is under way and nothing is left to do.
    pub(crate) fn try_to_end(&mut self) {
        let is_stopping = match self.phase {
            Phase::Stopping => true,
            Phase::Starting | Phase::Running | Phase::Stopped => false,
        };
        if !is_stopping || !self.commands.is_idle() {
            return;
        }
        let is_done = match self.config.on_exit {
            OnExit::Keep => true,
            OnExit::Withdraw => self.reading.seen > self.confirm_stop_after && self.pending_changes().is_empty(),
        };
        if is_done {
            self.end();
        }
    }

    pub(crate) fn give_up_stopping(&mut self) {
        let keys: Vec<_> = self.pending_changes().into_iter().map(|change| change.key).collect();
        if !keys.is_empty() {
            self.say(Event::LeftBehind { keys });
        }
        self.end();
    }

    fn end(&mut self) {
        self.phase = Phase::Stopped;
        self.outputs.push_back(Output::Stopped);
    }
}
