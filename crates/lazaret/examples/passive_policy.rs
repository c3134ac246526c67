//! A passive policy of one's own: the first failed attempt ejects the destination.

use lazaret::config::{
    ClusterConfig, DestinationConfig, HealthCheckConfig, PassiveHealthCheckConfig, PassivePolicyConfig,
};
use lazaret::{
    Builder, Evidence, Health, Lazaret, OutcomeClass, OutcomeEvent, PassiveNeeds, PassivePolicy, PassiveState,
    PassiveVerdict, Timestamp,
};

/// One failure is enough.
#[derive(Debug)]
pub struct FirstUnsuccessfulResponse;

impl PassivePolicy for FirstUnsuccessfulResponse {
    fn name(&self) -> &str {
        "FirstUnsuccessfulResponse"
    }

    fn needs(&self) -> PassiveNeeds {
        PassiveNeeds::Failures
    }

    fn on_outcome(&mut self, _: Timestamp, _: &PassiveState, event: &OutcomeEvent) -> Option<PassiveVerdict> {
        match event.outcome.class {
            OutcomeClass::ConnFail | OutcomeClass::Timeout | OutcomeClass::Cut | OutcomeClass::AppFail => {
                // For the cluster's reactivation period, 60 s unless set.
                let evidence = Evidence { failed: Some(1), ..Evidence::default() };
                Some(PassiveVerdict::of(Health::Unhealthy, evidence))
            }
            OutcomeClass::Ok | OutcomeClass::Overload | OutcomeClass::Slow | OutcomeClass::Neutral => None,
        }
    }
}

/// A proxy in front of `addresses` whose traffic is judged by the policy above.
pub fn build(addresses: &[&str]) -> Builder {
    Lazaret::builder()
        .passive_policy("FirstUnsuccessfulResponse", |_| FirstUnsuccessfulResponse)
        .listener("web", "127.0.0.1:0")
        .route("all", "/{**rest}", "cluster1")
        .cluster(ClusterConfig {
            cluster_id: "cluster1".to_owned(),
            health_check: Some(HealthCheckConfig {
                passive: Some(PassiveHealthCheckConfig {
                    policies: vec![PassivePolicyConfig::named("FirstUnsuccessfulResponse")],
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
    let running = build(&["http://127.0.0.1:8000/", "http://127.0.0.1:8001/"]).build()?.start()?;
    if let Some(address) = running.address("web") {
        println!("listening on http://{address}/, control API on http://{}/", running.control_address());
    }
    running.wait();
    Ok(())
}
