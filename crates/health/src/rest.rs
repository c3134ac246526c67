//! What the destinations of a cluster came to together, those left out that a check calls Unhealthy: the other side of
//! every comparison, kept as a sum so that a failure costs the same in a cluster of a thousand.
//!
//! ```text
//!   built (one pass) ──a count: added here, too──> kept ──somebody's health moved: one pass over who counts──> kept
//!     ^                                              │
//!     └────────────── a configuration came ──────────┘
//! ```
//! Buckets have the same beginnings everywhere, so that the sum of windows is a window.

use model::outcome::Try;
use model::time::Timestamp;

use crate::available::is_unhealthy;
use crate::cluster::ClusterState;
use crate::window::{Counts, Tally, Window};

/// The sum, and who is in it.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    window: Window,
    /// By place.
    is_in: Vec<bool>,
    /// [`crate::effects::Effects::moves`] at the last look at who is Unhealthy.
    moves: u64,
}

impl Rest {
    /// All that counts, apart from the destination at `index`, over the time that `total` takes.
    pub(crate) fn but(&self, index: usize, own: Tally, total: impl Fn(&Window) -> Tally) -> Tally {
        let all = total(&self.window);
        if self.is_in.get(index) == Some(&true) { all.less(own) } else { all }
    }
}

impl ClusterState {
    /// Attempts of the destination at `index` ended now.
    pub(crate) fn count(&mut self, index: usize, now: Timestamp, which: Try, counts: Counts) {
        let Some(destination) = self.destinations.get_mut(index) else { return };
        destination.traffic.window.add(now, which, counts);
        if let Some(rest) = self.rest.as_mut().filter(|rest| rest.is_in.get(index) == Some(&true)) {
            rest.window.add(now, which, counts);
        }
    }

    /// What the destination at `index` came to is nothing any more.
    pub(crate) fn forget_counts(&mut self, index: usize) {
        let Some(destination) = self.destinations.get_mut(index) else { return };
        if let Some(rest) = self.rest.as_mut().filter(|rest| rest.is_in.get(index) == Some(&true)) {
            rest.window.take_out(&destination.traffic.window);
        }
        destination.traffic.window.clear();
    }

    /// The sum, brought up to date with who is Unhealthy. `moves`: how often anybody's health has moved so far.
    pub(crate) fn rest(&mut self, moves: u64) -> &Rest {
        let (active, passive) = (self.active(), self.passive());
        let rest = self.rest.get_or_insert_with(|| Rest {
            window: Window::default(),
            is_in: vec![false; self.destinations.len()],
            moves: moves.wrapping_sub(1),
        });
        if rest.moves != moves {
            rest.moves = moves;
            for (one, is_in) in self.destinations.iter().zip(&mut rest.is_in) {
                let is_wanted = !is_unhealthy(one.health, active, passive);
                match (std::mem::replace(is_in, is_wanted), is_wanted) {
                    (false, true) => rest.window.put_in(&one.traffic.window),
                    (true, false) => rest.window.take_out(&one.traffic.window),
                    (false, false) | (true, true) => {}
                }
            }
        }
        rest
    }

    /// What [`Rest::but`] must be: the same by one pass over the cluster.
    pub(crate) fn summed_rest(&self, index: usize, total: impl Fn(&Window) -> Tally) -> Tally {
        let others = self.destinations.iter().enumerate().filter(|(place, _)| *place != index);
        let counted = others.filter(|(_, one)| !is_unhealthy(one.health, self.active(), self.passive()));
        counted.fold(Tally::default(), |sum, (_, one)| sum.and(total(&one.traffic.window)))
    }
}
