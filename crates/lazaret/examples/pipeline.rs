//! The pipeline stage by stage. Without its last stage, clusters with passive checks are refused.

use lazaret::config::{ClusterConfig, DestinationConfig, HealthCheckConfig, PassiveHealthCheckConfig};
use lazaret::{Builder, Lazaret, Pipeline};

/// A proxy with passive checks, over the stages given.
pub fn build(pipeline: Pipeline) -> Builder {
    Lazaret::builder().pipeline(pipeline).listener("web", "127.0.0.1:0").route("all", "/{**rest}", "cluster1").cluster(
        ClusterConfig {
            cluster_id: "cluster1".to_owned(),
            health_check: Some(HealthCheckConfig {
                passive: Some(PassiveHealthCheckConfig::default()),
                ..Default::default()
            }),
            destinations: vec![DestinationConfig::new("destination1", "http://127.0.0.1:8000/")],
            ..Default::default()
        },
    )
}

#[allow(dead_code, clippy::print_stdout)]
fn main() -> Result<(), lazaret::Error> {
    let pipeline = Pipeline::new().affinity_lookup().load_balancing().affinity_setting().passive_health_checks();
    let running = build(pipeline).build()?.start()?;
    if let Some(address) = running.address("web") {
        println!("listening on http://{address}/, control API on http://{}/", running.control_address());
    }
    running.wait();
    Ok(())
}
