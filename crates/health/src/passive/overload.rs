//! `Overload`: asks for less more often than the rest.
//!
//! - Signal: 429, 529, 503 with Retry-After, gRPC's RESOURCE_EXHAUSTED, HTTP/2's REFUSED_STREAM, as a share of the attempts
//!   since its last step, ten seconds at most; and the same share of the rest of its cluster, over the same time.
//! - Trip: own share above the rest's by `difference`, and z above `z`; looked at each two seconds while it asks. What all of
//!   them ask for alike lowers nobody: less for one would be more for another that is as full.
//! - Suspicion: its part so far x (1 - own) / (1 - rest), in hundredths, not below `least_share`. Where it asks no more than the
//!   rest, or has too few attempts to tell for ten seconds, it gets some of it back, twice as much with each step in a row. It never
//!   ejects: full is not sick.
//! - Statistic: the two-proportion z over the windows of the comparison with the rest.
//! - Cold start: nothing below `minimum` attempts of its own and as many of the rest.
//!
//! ```text
//!            asks more than the rest: x (1 - own) / (1 - rest)
//!   whole ─────────────────────────────────────────────────────> part ──┐ asks more again: less again
//!     ^                                                           │ ^───┘ does not: some back
//!     └──────────────────── nothing left to give back ────────────┘
//! ```

use std::time::Duration;

use model::outcome::OutcomeClass;
use model::passive::{Overload as Options, PassivePolicy as AllOptions};
use model::ratio::Ratio;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::first::first_success;
use super::{Asking, BuiltIn, Needs, PassivePolicy, PassiveSettings, PassiveState, Proof, Suspicion, Verdict};
use crate::comparison::Compared;
use crate::input::OutcomeEvent;

/// The policy with the part that it leaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overload {
    options: Options,
    share: Ratio,
    /// When the part last moved: what came before speaks of another load.
    stepped_at: Timestamp,
    looked_at: Timestamp,
    /// It has asked for less since somebody last looked.
    has_asked: bool,
    /// Steps back in a row.
    #[serde(default)]
    backs: u32,
}

impl Overload {
    /// Nothing seen.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            share: Ratio::ONE,
            stepped_at: Timestamp::ZERO,
            looked_at: Timestamp::ZERO,
            has_asked: false,
            backs: 0,
        }
    }

    fn clear(&mut self) {
        *self = Self::new(self.options);
    }

    fn asks_more(&self, own: Asking, rest: Asking) -> bool {
        let compared = Compared::of_asking(own, rest);
        compared.difference() > self.options.difference.get() && compared.z() > self.options.z
    }

    fn step(&mut self, now: Timestamp, share: f64) {
        let share = Ratio::new(libm::round(100.0 * share) / 100.0).unwrap_or(Ratio::ONE);
        if (share, self.share) != (Ratio::ONE, Ratio::ONE) {
            self.stepped_at = now;
        }
        self.share = share;
    }
}

impl PassivePolicy for Overload {
    fn name(&self) -> &str {
        "Overload"
    }

    fn needs(&self) -> Needs {
        Needs::Failures
    }

    fn as_built_in(&self) -> Option<BuiltIn> {
        Some(BuiltIn::Overload(self.clone()))
    }

    fn on_outcome(&mut self, _: Timestamp, _: &PassiveState, event: &OutcomeEvent) -> Option<Verdict> {
        self.has_asked |= event.outcome.class == OutcomeClass::Overload;
        None
    }

    fn on_sums(&mut self, _: Timestamp, destination: &PassiveState, ok: u64) -> Option<Verdict> {
        first_success(destination, ok)
    }

    fn looks_back(&self, now: Timestamp) -> Option<Timestamp> {
        let is_wanted = self.has_asked || self.share != Ratio::ONE;
        (is_wanted && now.since(self.looked_at) >= LOOK_AGAIN).then_some(self.stepped_at)
    }

    fn on_asking(&mut self, now: Timestamp, own: Asking, rest: Asking) {
        self.looked_at = now;
        self.has_asked = own.asked > 0;
        let minimum = u64::from(self.options.minimum);
        let can_tell = own.attempts >= minimum && rest.attempts >= minimum;
        let part = self.share.get();
        if can_tell && self.asks_more(own, rest) {
            // The rest asks less than this one, so not always.
            let less = part * (1.0 - own.share()) / (1.0 - rest.share());
            self.backs = 0;
            self.step(now, less.clamp(self.options.least_share.get(), 1.0));
        } else if can_tell || now.since(self.stepped_at) >= TELLS_NOTHING {
            let back = FIRST_STEP_BACK * f64::from(1_u32 << self.backs.min(MOST_DOUBLINGS));
            self.backs = self.backs.saturating_add(1);
            self.step(now, (part + back).min(1.0));
        }
    }

    fn suspicion(&self) -> Option<Suspicion> {
        (self.share != Ratio::ONE).then_some(Suspicion { proof: Proof::Outright, share: self.share })
    }

    fn due_at(&self) -> Option<Timestamp> {
        (self.share != Ratio::ONE).then_some(self.looked_at + LOOK_AGAIN)
    }

    fn on_ejected(&mut self, _: Timestamp) {
        self.clear();
    }

    fn on_reactivated(&mut self, _: Timestamp) {
        self.clear();
    }

    fn on_configured(&mut self, settings: &PassiveSettings) {
        if let AllOptions::Overload(options) = settings.options {
            self.options = options;
        }
    }
}

/// Between two looks: time for a step to show.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// With too few attempts for so long it gets a step back.
const TELLS_NOTHING: Duration = Duration::from_secs(10);
/// The part of its weight that comes back with the first step; each further one in a row gives twice as much as the one before.
/// Where it is full at some part it stays near it; where its trouble is over it is back after five.
const FIRST_STEP_BACK: f64 = 0.05;
const MOST_DOUBLINGS: u32 = 5;
