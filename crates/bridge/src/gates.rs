//! When the gate of a destination that was ejected opens for the next trial request.
//!
//! A worker leaves the gate shut after a trial that came to something: only the core can say what follows from it. It
//! opens here, once for each
//! - destination that came to stand behind its gate, for it was out before or took everything;
//! - drain with outcomes after which the destination still stands behind its gate.
//!
//! A late outcome of a request that was sent before the ejection opens it, too; so two trials may overlap then. The other
//! way round, a trial whose clock was read just before the gate came up would shut it for a whole lease.

use std::collections::BTreeSet;

use health::Input;
use model::id::Slot;
use model::view::HealthView;

/// The gates that stand.
#[derive(Default)]
pub struct Gates {
    standing: BTreeSet<Slot>,
    heard: BTreeSet<Slot>,
}

impl Gates {
    /// `health` is about to be published. Gives the gates that stand from here on and did not before: to be opened
    /// before anybody sees them.
    pub fn published(&mut self, health: &HealthView) -> Vec<Slot> {
        let destinations = health.clusters.iter().flat_map(|cluster| &cluster.destinations);
        let behind = destinations.filter(|destination| destination.is_gated && destination.is_available);
        let standing: BTreeSet<Slot> = behind.map(|destination| destination.slot).collect();
        let new = standing.difference(&self.standing).copied().collect();
        self.standing = standing;
        new
    }

    /// The core is about to hear what requests came to.
    pub fn heard(&mut self, input: &Input) {
        let slots: Vec<Slot> = match input {
            Input::OutcomeSeen(event) => vec![event.slot],
            Input::SumsTaken { sums } => sums.iter().map(|sum| sum.slot).collect(),
            Input::Configured { .. }
            | Input::ConfigRefused { .. }
            | Input::Probed(_)
            | Input::TimerDue
            | Input::PulsesTaken { .. }
            | Input::HealthSet(_)
            | Input::HealthRestored(_)
            | Input::DrainStarted
            | Input::SlotQuiet { .. } => Vec::new(),
        };
        self.heard.extend(slots.into_iter().filter(|slot| self.standing.contains(slot)));
    }

    /// All that follows from what was heard is published. Gives the gates that still stand: the next one may try.
    pub fn settled(&mut self) -> Vec<Slot> {
        let heard = std::mem::take(&mut self.heard);
        heard.intersection(&self.standing).copied().collect()
    }
}
