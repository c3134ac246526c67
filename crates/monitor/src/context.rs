//! What a monitor is made of: the ways to destinations and people, and the parts written by others.

use std::sync::Arc;

use health::Registry;
use telemetry::journal::Journal;
use telemetry::metrics::Metrics;
use upstream::Connector;

use crate::names::Names;
use crate::probe::{ProbeBuilder, ProbeSender};
use crate::spool::Spool;

/// What a monitor works with.
pub struct Context<I, R> {
    /// The way to destinations, for probes; its clock is the monitor's.
    pub connector: Connector<I, R>,
    /// Where events go.
    pub journal: Arc<Journal>,
    /// Where probes are counted.
    pub metrics: Arc<Metrics>,
    /// Threads that carry traffic.
    pub workers: usize,
    /// Drives the jitter of probes and nothing else.
    pub seed: u64,
    /// The names of the first configuration's destinations, as far as they were answered.
    pub names: Names,
    /// Where the flight recorder writes, as the configuration says; nowhere: it keeps memory alone.
    pub spool: Option<Spool>,
    /// What was written by others.
    pub extensions: Extensions,
}

/// What takes the place of built-in parts, registered in code.
#[derive(Clone, Default)]
pub struct Extensions {
    /// Active, passive and availability policies by name.
    pub health: Registry,
    /// Balancing policies by name.
    pub balancing: balance::Policies,
    /// Makes the request of each HTTP probe in place of the built-in builder.
    pub probe_builder: Option<Arc<dyn ProbeBuilder>>,
    /// Sends each HTTP probe in place of the built-in client.
    pub probe_sender: Option<Arc<dyn ProbeSender>>,
}
