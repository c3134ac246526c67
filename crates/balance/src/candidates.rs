//! Those that a pick may choose from: the available destinations less the excluded ones and those of weight 0.

use std::time::Duration;

use model::id::{DestinationId, DestinationIndex};

use crate::index_set::IndexSet;

/// What the policies know of a destination, whatever its health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: DestinationId,
    /// Share of traffic; 0 takes none.
    pub weight: u32,
    /// Its place when all ids are sorted without case.
    pub alphabetical: u32,
    /// What a counted failure takes off its effective weight (nginx: weight / max_fails).
    pub decay: u32,
    /// Where its id lies in 64 bits.
    pub hash: u64,
}

/// What a request is told apart by, spread over 64 bits ([`crate::affinity::hash::spread`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key(pub u64);

/// How busy destinations are.
pub trait Loads {
    /// Requests in flight, all workers together.
    fn in_flight(&self, destination: DestinationIndex) -> u32;

    /// The peak-sensitive mean of its time to first byte; `None` when nothing is known.
    fn latency(&self, destination: DestinationIndex) -> Option<Duration> {
        let _ = destination;
        None
    }
}

/// The choice of one pick.
#[derive(Clone, Copy)]
pub struct Candidates<'a> {
    members: &'a [Member],
    available: &'a [u32],
    excluded: &'a IndexSet,
    weights: Weights,
    /// Nothing is excluded and all weights are the same: the available list is the choice.
    is_plain: bool,
}

impl<'a> Candidates<'a> {
    pub(crate) fn new(members: &'a [Member], available: &'a [u32], excluded: &'a IndexSet, weights: Weights) -> Self {
        Self { members, available, excluded, weights, is_plain: weights == Weights::Equal && excluded.is_empty() }
    }

    /// The destinations, in the order of the configuration, with what is known of each.
    pub fn iter(&self) -> impl Iterator<Item = (DestinationIndex, &'a Member)> + use<'a> {
        let Self { members, excluded, .. } = *self;
        self.available
            .iter()
            .filter_map(move |&index| Some((DestinationIndex(index), members.get(index as usize)?)))
            .filter(move |(index, member)| member.weight > 0 && !excluded.contains(*index))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        if self.is_plain { self.available.len() } else { self.iter().count() }
    }

    /// The one at a place from 0 to `count() - 1`.
    pub fn nth(&self, place: usize) -> Option<DestinationIndex> {
        if self.is_plain {
            self.available.get(place).copied().map(DestinationIndex)
        } else {
            self.iter().nth(place).map(|(index, _)| index)
        }
    }

    /// The weight of a destination.
    pub fn weight(&self, index: DestinationIndex) -> u32 {
        self.members.get(index.index()).map_or(0, |member| member.weight)
    }

    /// Whether the cluster's weights are all the same, so that they need not be looked at.
    pub fn has_equal_weights(&self) -> bool {
        self.weights == Weights::Equal
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain
    }
}

/// Whether a cluster's weights differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weights {
    /// All the same, above 0.
    Equal,
    /// Some differ, or some are 0.
    Differ,
}
