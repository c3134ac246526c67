//! A probe request of one's own: the destination's address with a fixed path.

use lazaret::config::{ActiveHealthCheckConfig, ClusterConfig, DestinationConfig, HealthCheckConfig};
use lazaret::{Builder, BuiltInBuilder, Lazaret, ProbeBuilder, ProbeMessage, ProbeOrder};

/// Probes `/api/probe-health` below the destination's own path.
#[derive(Debug)]
pub struct FixedPath;

impl ProbeBuilder for FixedPath {
    fn build(&self, order: &ProbeOrder) -> ProbeMessage {
        let target = format!("{}/api/probe-health", order.base.path.trim_end_matches('/'));
        ProbeMessage { target, ..BuiltInBuilder.build(order) }
    }
}

/// A proxy in front of `address` that probes the fixed path.
pub fn build(address: &str) -> Builder {
    Lazaret::builder()
        .probe_builder(FixedPath)
        .listener("web", "127.0.0.1:0")
        .route("all", "/{**rest}", "cluster1")
        .cluster(ClusterConfig {
            cluster_id: "cluster1".to_owned(),
            health_check: Some(HealthCheckConfig {
                active: Some(ActiveHealthCheckConfig {
                    interval: Some(std::time::Duration::from_millis(100)),
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
