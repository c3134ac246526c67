//! Destinations, clusters and checks to start from.

use std::collections::BTreeMap;

use model::active::{ActiveCheck, ActivePolicy, ProbeKind, ProbeRequest, ProbeRound, ProbeStart, StatusRange};
use model::address::Url;
use model::available::AvailablePolicy;
use model::balancing::LoadBalancing;
use model::cluster::{Cluster, Compat, HealthCheck, UpstreamHost, UpstreamTls};
use model::destination::{Destination, Tier};
use model::guards::Guards;
use model::passive::{MaxFails, PassiveCheck, PassivePolicy, TransportFailureRate};
use model::retry::RetryRules;
use model::timeouts::Timeouts;

use super::secs;

/// A destination at an address of its own.
pub fn destination(id: &str) -> Destination {
    Destination {
        id: id.into(),
        address: Url::parse(&format!("http://{id}.test/")).unwrap(),
        health: None,
        host: None,
        weight: 1,
        max_fails: None,
        tier: Tier::Primary,
        max_connections: None,
    }
}

/// A cluster without checks, whose policy never panics.
pub fn cluster(id: &str, destinations: &[&str]) -> Cluster {
    Cluster {
        id: id.into(),
        compat: Compat::None,
        load_balancing: LoadBalancing::default(),
        session_affinity: None,
        health_check: HealthCheck {
            available_destinations_policy: AvailablePolicy::HealthyAndUnknown,
            active: None,
            passive: None,
            guards: Guards::default(),
        },
        retry: RetryRules::native(),
        queue: Default::default(),
        timeouts: Timeouts::NATIVE,
        tls: UpstreamTls::default(),
        host: UpstreamHost::default(),
        http: Default::default(),
        outbound: Default::default(),
        family: Default::default(),
        metadata: BTreeMap::new(),
        destinations: destinations.iter().map(|id| destination(id)).collect(),
    }
}

/// Changes a value and gives it back: `with(cluster, |c| ...)`.
pub fn with<T>(mut value: T, change: impl FnOnce(&mut T)) -> T {
    change(&mut value);
    value
}

/// Every 5 s, 2 s timeout, two failures: the native defaults, taking traffic at once.
pub fn probed() -> ActiveCheck {
    ActiveCheck {
        kind: ProbeKind::Http,
        interval: secs(5.0),
        unhealthy_interval: secs(5.0),
        timeout: secs(2.0),
        policy: ActivePolicy::ConsecutiveFailures { threshold: 2 },
        confirm_interval: secs(1.0),
        start: ProbeStart::Eligible,
        round: ProbeRound::Destination,
        request: ProbeRequest {
            method: "GET".to_owned(),
            path: None,
            query: None,
            host: None,
            headers: Vec::new(),
            expect_statuses: vec![StatusRange::SUCCESS],
            expect_body: None,
            http: None,
            service: None,
            healthy_threshold: 1,
        },
    }
}

/// A cluster with this active check.
pub fn active(id: &str, destinations: &[&str], check: ActiveCheck) -> Cluster {
    with(cluster(id, destinations), |cluster| cluster.health_check.active = Some(check))
}

/// A cluster with these passive policies.
pub fn passive(id: &str, destinations: &[&str], policies: &[PassivePolicy]) -> Cluster {
    let check = PassiveCheck::of(policies.to_vec());
    with(cluster(id, destinations), |cluster| cluster.health_check.passive = Some(check))
}

pub fn failure_rate(rate_limit: f64, window: f64, minimum: u32) -> PassivePolicy {
    PassivePolicy::TransportFailureRate(TransportFailureRate { rate_limit, window: secs(window), minimum })
}

pub fn max_fails(max_fails: u32, fail_timeout: f64) -> PassivePolicy {
    PassivePolicy::MaxFails(MaxFails { max_fails, fail_timeout: secs(fail_timeout) })
}
