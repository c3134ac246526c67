//! An active policy of one's own: Healthy after a successful probe, Unhealthy after any other.

use lazaret::config::{ActiveHealthCheckConfig, ClusterConfig, DestinationConfig, HealthCheckConfig};
use lazaret::{ActivePolicy, ActiveVerdict, Builder, ClusterProbes, Evidence, Health, Lazaret, ProbeResult, Timestamp};

/// Judges each probe by itself.
#[derive(Debug)]
pub struct FirstUnsuccessfulResponse;

impl ActivePolicy for FirstUnsuccessfulResponse {
    fn name(&self) -> &str {
        "FirstUnsuccessfulResponse"
    }

    fn on_probes(&mut self, _: Timestamp, _: &ClusterProbes<'_>, results: &[ProbeResult]) -> Vec<ActiveVerdict> {
        results
            .iter()
            .map(|result| {
                let health = if result.failure.is_none() { Health::Healthy } else { Health::Unhealthy };
                ActiveVerdict { slot: result.slot, health, evidence: Evidence::default() }
            })
            .collect()
    }
}

/// A proxy in front of `address` whose probes are judged by the policy above.
pub fn build(address: &str) -> Builder {
    Lazaret::builder()
        .active_policy("FirstUnsuccessfulResponse", || FirstUnsuccessfulResponse)
        .listener("web", "127.0.0.1:0")
        .route("all", "/{**rest}", "cluster1")
        .cluster(ClusterConfig {
            cluster_id: "cluster1".to_owned(),
            health_check: Some(HealthCheckConfig {
                active: Some(ActiveHealthCheckConfig {
                    interval: Some(std::time::Duration::from_millis(100)),
                    policy: Some("FirstUnsuccessfulResponse".to_owned()),
                    path: Some("/health".to_owned()),
                    ..Default::default()
                }),
                ..Default::default()
            }),
            destinations: vec![DestinationConfig::new("destination1", address)],
            ..Default::default()
        })
}

#[allow(dead_code, clippy::print_stdout)]
fn main() -> Result<(), lazaret::Error> {
    let running = build("http://127.0.0.1:8000/").build()?.start()?;
    if let Some(address) = running.address("web") {
        println!("listening on http://{address}/, control API on http://{}/", running.control_address());
    }
    running.wait();
    Ok(())
}
