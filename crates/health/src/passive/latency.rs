//! `Latency`: answers, but far slower than the rest.
//!
//! - Signal: pulses: the mean of the time to first byte over the last few seconds, and the median of these over the cluster.
//!   The mean that follows peaks would not do: it remembers one slow answer for longer than `persist`.
//! - Trip: above `factor` x the median and above it by `difference`, for `persist`.
//! - Suspicion: median / own of the weight, in steps of a tenth, not below `least_share`; until it is no longer slow.
//!   It never ejects: slow is not sick.
//! - Statistic: kept beside the board: a sample is worth half after 2 s.
//! - Cold start: nothing without a median of two others.

use model::passive::{Latency as Options, PassivePolicy as AllOptions};
use model::ratio::Ratio;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::first::first_success;
use super::{Around, BuiltIn, Needs, PassivePolicy, PassiveSettings, PassiveState, Proof, Suspicion, Verdict};
use crate::input::{OutcomeEvent, Pulse};

/// The policy with its suspicion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    options: Options,
    slow_since: Option<Timestamp>,
    share: Option<Ratio>,
}

impl Latency {
    /// Nothing seen.
    pub fn new(options: Options) -> Self {
        Self { options, slow_since: None, share: None }
    }

    fn clear(&mut self) {
        self.slow_since = None;
        self.share = None;
    }
}

impl PassivePolicy for Latency {
    fn name(&self) -> &str {
        "Latency"
    }

    fn needs(&self) -> Needs {
        Needs::Failures
    }

    fn as_built_in(&self) -> Option<BuiltIn> {
        Some(BuiltIn::Latency(self.clone()))
    }

    fn on_outcome(&mut self, _: Timestamp, _: &PassiveState, _: &OutcomeEvent) -> Option<Verdict> {
        None
    }

    fn on_sums(&mut self, _: Timestamp, destination: &PassiveState, ok: u64) -> Option<Verdict> {
        first_success(destination, ok)
    }

    fn on_pulse(&mut self, now: Timestamp, pulse: &Pulse, around: &Around) {
        let (Some(own), Some(median)) = (pulse.mean, around.median) else { return self.clear() };
        let is_slow =
            own.as_secs_f64() > median.as_secs_f64() * self.options.factor && own > median + self.options.difference;
        if !is_slow {
            return self.clear();
        }
        let since = *self.slow_since.get_or_insert(now);
        if now.since(since) >= self.options.persist {
            let tenths = libm::round(10.0 * median.as_secs_f64() / own.as_secs_f64()) / 10.0;
            let share = tenths.clamp(self.options.least_share.get(), 1.0);
            self.share = Ratio::new(share);
        }
    }

    fn suspicion(&self) -> Option<Suspicion> {
        self.share.map(|share| Suspicion { proof: Proof::Outright, share })
    }

    fn on_ejected(&mut self, _: Timestamp) {
        self.clear();
    }

    fn on_reactivated(&mut self, _: Timestamp) {
        self.clear();
    }

    fn on_configured(&mut self, settings: &PassiveSettings) {
        if let AllOptions::Latency(options) = settings.options {
            self.options = options;
        }
    }
}
