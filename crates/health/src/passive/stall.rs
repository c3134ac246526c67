//! `Stall`: requests wait, and nothing comes.
//!
//! - Signal: pulses: how many requests wait for their response head, when a byte or an end last came, and how long the first
//!   byte usually takes. Outcomes are blind here: a server that hangs gives none until a timeout.
//! - Trip: at least `minimum` wait and nothing has come for max(`at_least`, `factor` x the usual time), while another
//!   destination of the cluster has moved in that time.
//! - The usual time is the 99th percentile of late; of too few answers for one (long polls alone) the slowest of the last
//!   minutes in the whole cluster. Where no answer is known at all, nobody can tell silence from patience.
//! - Where probes run, one is asked for shortly before, and one that passes acquits: the destination is alive, and its
//!   requests take their time. Until it moves again, or has been silent for three times as long and for longer than its slowest
//!   answer of the last minutes took: a health page may answer while the rest hangs. Where no probes run, it must have been
//!   silent for longer than that answer at once. Event streams do not wait for a head.
//! - Suspicion: nothing of its weight, and a probe at once; it cuts nothing and ejects nothing. Until a byte comes, a
//!   probe passes, or 10 s have passed; then it has as long again to answer.
//! - Statistic: none of its own.
//! - Cold start: nothing before the cluster's first answer.
//!
//! ```text
//!   Calm ── silent, nearly long enough ──> Asking ── long enough ──> Suspect
//!    ^ ^                                     │ probe passed            │ │
//!    │ └──── moved, or too few wait ─────────┤ <── probe passed ───────┘ │ moved, 10 s
//!    │                                       v                           │
//!    ├───────────────── moved ─────────── Acquitted ── three times ─┐    │
//!    └─────────────── moved, 10 s ─────── Overruled <───────────────┘    │
//!      ^                                                                 │
//!      └─────────────────────────────────────────────────────────────────┘
//! ```

use std::time::Duration;

use model::health::Switch;
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
    phase: Phase,
    /// Silence counts from here on at the earliest: the last suspicion ended without a sign.
    counted_from: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
enum Phase {
    Calm,
    Asking {
        since: Timestamp,
    },
    Suspect {
        since: Timestamp,
    },
    /// Suspect although its probes pass: what they ask may answer while the rest hangs.
    Overruled {
        since: Timestamp,
    },
    /// By a probe that passed then.
    Acquitted {
        at: Timestamp,
    },
}

impl Stall {
    /// Nothing seen.
    pub fn new(options: Options) -> Self {
        Self { options, phase: Phase::Calm, counted_from: Timestamp::ZERO }
    }

    /// How long a silence is none; `None`: nobody knows.
    fn patience(&self, pulse: &Pulse, around: &Around) -> Option<Duration> {
        let usual = pulse.first_byte_p99.or(around.slowest)?.as_secs_f64() * self.options.factor;
        let usual = Duration::try_from_secs_f64(usual).unwrap_or(Duration::MAX);
        let least = match around.probes {
            Switch::On => Duration::ZERO,
            Switch::Off => pulse.slowest.unwrap_or_default(),
        };
        Some(self.options.at_least.max(usual).max(least))
    }

    /// What a silence comes to that a probe has spoken for.
    fn overrule(&self, now: Timestamp, pulse: &Pulse, around: &Around) -> Phase {
        let silent_since = pulse.moved_at.max(pulse.waiting_since).max(self.counted_from);
        let is_stalled = pulse.waiting >= self.options.minimum && around.moved_at > silent_since;
        let longest = self.patience(pulse, around).map(|patience| {
            let usual = patience.saturating_mul(A_PROBE_COUNTS_FOR);
            usual.max(pulse.slowest.unwrap_or_default())
        });
        match longest {
            Some(longest) if is_stalled && now.since(silent_since) >= longest => Phase::Overruled { since: now },
            Some(_) | None => self.phase,
        }
    }

    /// What a silence comes to that nobody suspects yet.
    fn listen(&self, now: Timestamp, pulse: &Pulse, around: &Around) -> Phase {
        let silent_since = pulse.moved_at.max(pulse.waiting_since).max(self.counted_from);
        let Some(patience) = self.patience(pulse, around) else { return Phase::Calm };
        if pulse.waiting < self.options.minimum || around.moved_at <= silent_since {
            return Phase::Calm;
        }
        let silent = now.since(silent_since);
        let asked_at = match (around.probes, self.phase) {
            (Switch::On, Phase::Asking { since }) if since >= silent_since => Some(since),
            (Switch::On | Switch::Off, _) => None,
        };
        let is_heard = around.probes == Switch::Off || asked_at.is_some_and(|at| now.since(at) >= A_PROBE_TAKES);
        let asks_after = patience.saturating_sub(ASKED_BEFORE).max(patience / 2);
        match asked_at {
            _ if is_heard && silent >= patience => Phase::Suspect { since: now },
            Some(since) => Phase::Asking { since },
            None if around.probes == Switch::On && silent >= asks_after => Phase::Asking { since: now },
            None => Phase::Calm,
        }
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
            self.phase = Phase::Calm;
        }
        first_success(destination, ok)
    }

    fn on_pulse(&mut self, now: Timestamp, pulse: &Pulse, around: &Around) {
        self.phase = match self.phase {
            // Clients that give up end their wait, and not the silence.
            Phase::Suspect { since } | Phase::Overruled { since } if pulse.moved_at < since => self.phase,
            Phase::Suspect { .. } | Phase::Overruled { .. } => Phase::Calm,
            Phase::Acquitted { at } if pulse.moved_at < at && pulse.waiting > 0 => self.overrule(now, pulse, around),
            Phase::Acquitted { .. } | Phase::Calm | Phase::Asking { .. } => self.listen(now, pulse, around),
        };
    }

    fn on_probe_passed(&mut self, now: Timestamp) {
        self.phase = match self.phase {
            Phase::Asking { .. } | Phase::Suspect { .. } => Phase::Acquitted { at: now },
            Phase::Calm | Phase::Acquitted { .. } | Phase::Overruled { .. } => self.phase,
        };
    }

    fn asks_at(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Asking { since } => Some(since),
            Phase::Calm | Phase::Suspect { .. } | Phase::Overruled { .. } | Phase::Acquitted { .. } => None,
        }
    }

    fn suspicion(&self) -> Option<Suspicion> {
        match self.phase {
            Phase::Suspect { .. } | Phase::Overruled { .. } => {
                Some(Suspicion { proof: Proof::Outright, share: Ratio::ZERO })
            }
            Phase::Calm | Phase::Asking { .. } | Phase::Acquitted { .. } => None,
        }
    }

    fn due_at(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Suspect { since } | Phase::Overruled { since } => Some(since + SUSPECT_FOR),
            Phase::Calm | Phase::Asking { .. } | Phase::Acquitted { .. } => None,
        }
    }

    fn on_due(&mut self, now: Timestamp) {
        if self.due_at().is_some_and(|at| at <= now) {
            (self.phase, self.counted_from) = (Phase::Calm, now);
        }
    }

    fn on_ejected(&mut self, _: Timestamp) {
        self.phase = Phase::Calm;
    }

    fn on_reactivated(&mut self, _: Timestamp) {
        self.phase = Phase::Calm;
    }

    fn on_configured(&mut self, settings: &PassiveSettings) {
        if let AllOptions::Stall(options) = settings.options {
            self.options = options;
        }
    }
}

/// After so long without any sign it is tried again.
const SUSPECT_FOR: Duration = Duration::from_secs(10);
/// A probe that passes makes silence count only after so many times the patience.
const A_PROBE_COUNTS_FOR: u32 = 3;
/// A probe that was asked for has so long to pass before weight is taken.
const A_PROBE_TAKES: Duration = Duration::from_millis(250);
/// It is asked for so long before the suspicion may begin, or half of the patience where that is less: with a tick between,
/// the suspicion is no later for it.
const ASKED_BEFORE: Duration = Duration::from_millis(400);
