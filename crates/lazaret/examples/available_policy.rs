//! An availability policy of one's own: never fewer than two destinations; the first ones fill up.

use lazaret::config::{
    ClusterConfig, DestinationConfig, HealthCheckConfig, PassiveHealthCheckConfig, PassivePolicyConfig,
};
use lazaret::{AvailablePolicy, Builder, Candidates, Lazaret, Selection, policies};

/// The good ones, and others in the order of the file until there are two.
#[derive(Debug)]
pub struct AtLeastTwo;

impl AvailablePolicy for AtLeastTwo {
    fn select(&self, cluster: &Candidates<'_>) -> Selection {
        let mut indexes = cluster.not_unhealthy();
        for index in cluster.all() {
            if indexes.len() >= 2 {
                break;
            }
            if !indexes.contains(&index) {
                indexes.push(index);
            }
        }
        Selection { indexes, is_panic: false }
    }
}

/// A proxy in front of `addresses` with the policy above.
pub fn build(addresses: &[&str]) -> Builder {
    Lazaret::builder()
        .available_policy("AtLeastTwo", || AtLeastTwo)
        .listener("web", "127.0.0.1:0")
        .route("all", "/{**rest}", "cluster1")
        .cluster(ClusterConfig {
            cluster_id: "cluster1".to_owned(),
            health_check: Some(HealthCheckConfig {
                available_destinations_policy: Some("AtLeastTwo".into()),
                // Named, so that it comes without the guards of the default set: this policy is the guard.
                passive: Some(PassiveHealthCheckConfig {
                    policies: vec![PassivePolicyConfig::named(policies::TRANSPORT_FAILURE_RATE)],
                    ..Default::default()
                }),
                ..Default::default()
            }),
            destinations: (1..)
                .zip(addresses)
                .map(|(number, address)| DestinationConfig::new(&format!("destination{number}"), address))
                .collect(),
            ..Default::default()
        })
}

#[allow(dead_code, clippy::print_stdout)]
fn main() -> Result<(), lazaret::Error> {
    let running = build(&["http://127.0.0.1:8000/"]).build()?.start()?;
    if let Some(address) = running.address("web") {
        println!("listening on http://{address}/, control API on http://{}/", running.control_address());
    }
    running.wait();
    Ok(())
}
