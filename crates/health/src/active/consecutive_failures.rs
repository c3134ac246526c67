//! `ConsecutiveFailures`: so many failed probes in a row make Unhealthy.
//!
//! - Signal: passed or failed, nothing else; each failure weighs the same whatever its kind.
//! - Trip: `threshold` failed probes in a row. Return: `healthy_threshold` passed ones in a row; from Unknown one is
//!   enough, and a Healthy destination stays so.
//! - Statistic: two counts per destination, kept by the core, so a changed threshold judges the counts as they stand at
//!   the next probe: lowered below the present count it ejects on the next failure, raised it brings nobody back.
//! - Cold start: Unknown, which takes traffic, until the first passed probe or the threshold.
//!
//! YARP's policy of this name is the same with a healthy threshold of 1.

use model::event::Evidence;
use model::health::Health;
use model::time::Timestamp;

use super::{ActivePolicy, ActiveVerdict, ClusterProbes, ProbeResult};

/// The policy with its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsecutiveFailures {
    /// Failed probes in a row that make Unhealthy; 0 acts as 1.
    pub threshold: u32,
    /// Passed probes in a row that make an Unhealthy one Healthy; 0 acts as 1.
    pub healthy_threshold: u32,
}

impl ActivePolicy for ConsecutiveFailures {
    fn name(&self) -> &str {
        "ConsecutiveFailures"
    }

    fn on_probes(&mut self, _: Timestamp, cluster: &ClusterProbes<'_>, results: &[ProbeResult]) -> Vec<ActiveVerdict> {
        results
            .iter()
            .filter_map(|result| {
                let destination = cluster.destination(result.slot)?;
                let (failures, passes) = (destination.failures_in_row, destination.passes_in_row);
                let (health, failed, limit) = if failures > 0 {
                    (failures >= self.threshold.max(1)).then_some((Health::Unhealthy, failures, self.threshold))?
                } else {
                    let is_enough = destination.health.active != Health::Unhealthy || passes >= self.healthy_threshold;
                    is_enough.then_some((Health::Healthy, 0, self.healthy_threshold))?
                };
                let evidence = Evidence {
                    failed: Some(u64::from(failed)),
                    total: (passes > 0).then_some(u64::from(passes)),
                    limit: Some(f64::from(limit.max(1))),
                    ..Evidence::default()
                };
                Some(ActiveVerdict { slot: destination.slot, health, evidence })
            })
            .collect()
    }
}
