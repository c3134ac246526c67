//! Availability policies: which destinations traffic may use, from both values.
//!
//! A policy runs for every cluster, checks on or off, whenever something it looks at has changed. Destinations of weight
//! 0 and those held out until their first passed probe are not shown to it.

mod healthy_and_unknown;
mod healthy_or_panic;
mod panic_threshold;

use std::fmt::Debug;

use model::available::AvailablePolicy as Options;
use model::health::{Health, HealthPair, Switch};
use model::id::{ClusterId, DestinationId};

pub use healthy_and_unknown::HealthyAndUnknown;
pub use healthy_or_panic::HealthyOrPanic;
pub use panic_threshold::PanicThreshold;

use crate::registry::Registry;

/// Chooses who may serve. Write one, register it under a name (`lazaret::Builder::available_policy`, which is
/// [`Registry::available`] here), and name it as a cluster's `available_destinations_policy`.
pub trait AvailablePolicy: Debug + Send {
    /// Chooses among the candidates. No side effects: the same candidates must give the same selection.
    fn select(&self, cluster: &Candidates<'_>) -> Selection;
}

/// Who stands for selection.
#[derive(Clone, Debug)]
pub struct Candidates<'a> {
    /// Which cluster.
    pub id: &'a ClusterId,
    /// Whether probes run.
    pub active: Switch,
    /// Whether traffic is judged.
    pub passive: Switch,
    /// In the order of the configuration.
    pub destinations: &'a [Candidate],
}

/// One that stands for selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub id: DestinationId,
    /// Both values; one whose check is off must not count.
    pub health: HealthPair,
    /// Share of traffic, above 0.
    pub weight: u32,
}

/// Who was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Indexes into the candidates. Order and repetitions do not matter, those out of range are dropped.
    pub indexes: Vec<usize>,
    /// Too few are good, so all are used.
    pub is_panic: bool,
}

impl Candidates<'_> {
    /// Whether a check that is on calls the candidate Unhealthy.
    pub fn is_unhealthy(&self, candidate: &Candidate) -> bool {
        is_unhealthy(candidate.health, self.active, self.passive)
    }

    /// Indexes of those that no enabled check calls Unhealthy.
    pub fn not_unhealthy(&self) -> Vec<usize> {
        let good = self.destinations.iter().enumerate().filter(|(_, candidate)| !self.is_unhealthy(candidate));
        good.map(|(index, _)| index).collect()
    }

    /// All indexes.
    pub fn all(&self) -> Vec<usize> {
        (0..self.destinations.len()).collect()
    }
}

/// Whether a check that is on says Unhealthy.
pub fn is_unhealthy(health: HealthPair, active: Switch, passive: Switch) -> bool {
    (active == Switch::On && health.active == Health::Unhealthy)
        || (passive == Switch::On && health.passive == Health::Unhealthy)
}

/// The policy that the options name; `None` for a custom one that nobody registered.
pub(crate) fn build(options: &Options, registry: &Registry) -> Option<Box<dyn AvailablePolicy>> {
    match options {
        Options::HealthyAndUnknown => Some(Box::new(HealthyAndUnknown)),
        Options::HealthyOrPanic => Some(Box::new(HealthyOrPanic)),
        Options::PanicThreshold(threshold) => Some(Box::new(PanicThreshold { threshold: *threshold })),
        Options::Custom(name) => registry.build_available(name),
    }
}
