//! Clusters in code: active checks, passive checks and the availability policy of the YARP documentation's samples.

use std::time::Duration;

use lazaret::config::{
    ActiveHealthCheckConfig, ClusterConfig, DestinationConfig, HealthCheckConfig, PassiveHealthCheckConfig,
    PassivePolicyConfig,
};
use lazaret::{Builder, Lazaret, policies};

/// Probes every 10 s with a path and a query; five failures in a row make Unhealthy.
pub fn active() -> ClusterConfig {
    ClusterConfig {
        cluster_id: "cluster1".to_owned(),
        health_check: Some(HealthCheckConfig {
            active: Some(ActiveHealthCheckConfig {
                interval: Some(Duration::from_secs(10)),
                timeout: Some(Duration::from_secs(10)),
                policy: Some(policies::CONSECUTIVE_FAILURES.to_owned()),
                threshold: Some(5),
                path: Some("/api/health".to_owned()),
                query: Some("?foo=bar".to_owned()),
                ..Default::default()
            }),
            ..Default::default()
        }),
        destinations: vec![
            DestinationConfig::new("destination1", "https://localhost:10000"),
            DestinationConfig {
                health: Some("https://localhost:10010".to_owned()),
                ..DestinationConfig::new("destination2", "https://localhost:10010")
            },
        ],
        ..Default::default()
    }
}

/// Half of the transports failing ejects for two minutes.
pub fn passive() -> ClusterConfig {
    ClusterConfig {
        cluster_id: "cluster2".to_owned(),
        health_check: Some(HealthCheckConfig {
            passive: Some(PassiveHealthCheckConfig {
                policies: vec![PassivePolicyConfig {
                    rate_limit: Some(0.5),
                    ..PassivePolicyConfig::named(policies::TRANSPORT_FAILURE_RATE)
                }],
                reactivation_period: Some(Duration::from_secs(120)),
                ..Default::default()
            }),
            ..Default::default()
        }),
        destinations: vec![
            DestinationConfig::new("destination1", "https://localhost:10000"),
            DestinationConfig::new("destination2", "https://localhost:10010"),
        ],
        ..Default::default()
    }
}

/// All destinations are used when none is good.
pub fn available() -> ClusterConfig {
    ClusterConfig {
        cluster_id: "cluster3".to_owned(),
        health_check: Some(HealthCheckConfig {
            available_destinations_policy: Some(policies::HEALTHY_OR_PANIC.into()),
            passive: Some(PassiveHealthCheckConfig::default()),
            ..Default::default()
        }),
        ..passive()
    }
}

/// All three behind one listener.
pub fn build() -> Builder {
    Lazaret::builder()
        .listener("web", "127.0.0.1:0")
        .route("one", "/one/{**rest}", "cluster1")
        .route("two", "/two/{**rest}", "cluster2")
        .route("three", "/three/{**rest}", "cluster3")
        .cluster(active())
        .cluster(passive())
        .cluster(available())
}

#[allow(dead_code, clippy::print_stdout)]
fn main() -> Result<(), lazaret::Error> {
    let running = build().build()?.start()?;
    if let Some(address) = running.address("web") {
        println!("listening on http://{address}/, control API on http://{}/", running.control_address());
    }
    running.wait();
    Ok(())
}
