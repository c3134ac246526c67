//! The core: inputs in, outputs out.

use std::sync::Arc;

use model::id::ClusterId;
use model::time::Timestamp;
use model::view::HealthView;

use crate::input::Input;
use crate::output::Output;
use crate::passive::Needs;
use crate::registry::Registry;

/// Decides who is healthy.
#[derive(Debug)]
pub struct Core {
    registry: Registry,
    view: Arc<HealthView>,
}

/// Inputs that named what the core does not know (any more); harmless, but worth a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ignored {
    /// Outcomes, sums and quiet slots for slots that are not in use.
    pub slots: u64,
    /// Probe results for tickets that are not in flight.
    pub tickets: u64,
    /// Values set for destinations that do not exist, or whose check is off.
    pub destinations: u64,
}

impl Core {
    /// With the built-in policies alone. `seed` drives the jitter of probes and nothing else.
    pub fn new(seed: u64) -> Self {
        Self::with_registry(seed, Registry::default())
    }

    /// With policies written by others as well.
    pub fn with_registry(_seed: u64, registry: Registry) -> Self {
        Self { registry, view: Arc::default() }
    }

    /// Takes one input at `now`. Then drain [`Self::poll_output`] and ask [`Self::poll_timeout`]. A `now` before an
    /// earlier one counts as that one.
    pub fn handle(&mut self, _now: Timestamp, _input: Input) {
        let _ = &self.registry;
    }

    /// The next effect, in order.
    pub fn poll_output(&mut self) -> Option<Output> {
        None
    }

    /// When [`Input::TimerDue`] is wanted; `None`: not at all.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        None
    }

    /// The picture at this moment. Clusters that did not change are shared with the one before.
    pub fn view(&mut self) -> Arc<HealthView> {
        self.view.clone()
    }

    /// What the cluster's passive policies want to hear of: decides what workers report for it.
    pub fn needs(&self, _cluster: &ClusterId) -> Needs {
        Needs::Nothing
    }

    /// What was ignored so far.
    pub fn ignored(&self) -> Ignored {
        Ignored::default()
    }
}
