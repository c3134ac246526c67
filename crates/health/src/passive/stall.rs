//! `Stall`: requests wait, and nothing comes.
//!
//! - Signal: pulses: how many requests wait for their response head, when a byte or an end last came, and the 99th
//!   percentile of the time to first byte. Outcomes are blind here: a server that hangs gives none until a timeout.
//! - Trip: at least `minimum` wait and nothing has come for max(`at_least`, `factor` x that percentile), while another
//!   destination of the cluster has moved in that time. Event streams do not wait for a head; long polls raise the
//!   percentile.
//! - Suspicion: nothing of its weight, and a probe at once; it cuts nothing and ejects nothing. Until a byte comes, a
//!   probe passes, or 10 s have passed.
//! - Statistic: none of its own.
//! - Cold start: without a percentile `at_least` alone.

use std::time::Duration;

use model::passive::{PassivePolicy as AllOptions, Stall as Options};
use model::ratio::Ratio;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::first::first_success;
use super::{Around, BuiltIn, Needs, PassivePolicy, PassiveSettings, PassiveState, Proof, Suspicion, Verdict};
use crate::input::{OutcomeEvent, Pulse};

/// The policy with its suspicion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    options: Options,
    suspect_since: Option<Timestamp>,
}

impl Stall {
    /// Nothing seen.
    pub fn new(options: Options) -> Self {
        Self { options, suspect_since: None }
    }
}

impl PassivePolicy for Stall {
    fn name(&self) -> &str {
        "Stall"
    }

    fn needs(&self) -> Needs {
        Needs::Failures
    }

    fn as_built_in(&self) -> Option<BuiltIn> {
        Some(BuiltIn::Stall(self.clone()))
    }

    fn on_outcome(&mut self, _: Timestamp, _: &PassiveState, _: &OutcomeEvent) -> Option<Verdict> {
        None
    }

    fn on_sums(&mut self, _: Timestamp, destination: &PassiveState, ok: u64) -> Option<Verdict> {
        if ok > 0 {
            self.suspect_since = None;
        }
        first_success(destination, ok)
    }

    fn on_pulse(&mut self, now: Timestamp, pulse: &Pulse, around: &Around) {
        let typical = pulse.first_byte_p99.unwrap_or_default().as_secs_f64() * self.options.factor;
        let typical = Duration::try_from_secs_f64(typical).unwrap_or(Duration::MAX);
        let patience = self.options.at_least.max(typical);
        let silent_since = pulse.moved_at.max(pulse.waiting_since);
        match self.suspect_since {
            // Clients that give up end their wait, and not the silence.
            Some(since) if pulse.moved_at < since => {}
            Some(_) => self.suspect_since = None,
            None => {
                let is_silent = now.since(silent_since) >= patience;
                if is_silent && pulse.waiting >= self.options.minimum && around.moved_at > silent_since {
                    self.suspect_since = Some(now);
                }
            }
        }
    }

    fn on_probe_passed(&mut self, _: Timestamp) {
        self.suspect_since = None;
    }

    fn suspicion(&self) -> Option<Suspicion> {
        self.suspect_since.map(|_| Suspicion { proof: Proof::Outright, share: Ratio::ZERO })
    }

    fn due_at(&self) -> Option<Timestamp> {
        self.suspect_since.map(|since| since + SUSPECT_FOR)
    }

    fn on_due(&mut self, now: Timestamp) {
        self.suspect_since = self.suspect_since.filter(|since| now.since(*since) < SUSPECT_FOR);
    }

    fn on_ejected(&mut self, _: Timestamp) {
        self.suspect_since = None;
    }

    fn on_reactivated(&mut self, _: Timestamp) {
        self.suspect_since = None;
    }

    fn on_configured(&mut self, settings: &PassiveSettings) {
        if let AllOptions::Stall(options) = settings.options {
            self.options = options;
        }
    }
}

/// After so long without any sign it is tried again.
const SUSPECT_FOR: Duration = Duration::from_secs(10);
