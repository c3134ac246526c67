//! The verdicts in the two shapes that cross processes: APISIX's checkers and our health document.
//!
//! Both read verdicts, never availability: panic and guards keep a destination in use, not healthy.

use std::net::IpAddr;

use apisix::checker::{Checker, CheckerList, Counter, Node};
use apisix::health::{ClusterStatus, HealthDocument, NodeReport, Probed};
use model::active::ProbeKind;
use model::cluster::Cluster;
use model::view::{ClusterHealth, DestinationHealth, NodeStatus};

use super::Clock;
use super::clusters::{configured, is_on};
use crate::context::{Context, Published, Vitals};

/// Every cluster as a checker.
pub fn checkers(published: &Published, vitals: &Vitals) -> CheckerList {
    CheckerList(published.health.clusters.iter().map(|health| checker(published, health, vitals)).collect())
}

/// One cluster as a checker. A cluster without checks is answered for, too.
pub fn checker(published: &Published, health: &ClusterHealth, vitals: &Vitals) -> Checker {
    let config = cluster(published, health);
    let active = config.and_then(|config| config.health_check.active.as_ref());
    let kind = match active.map(|active| active.kind) {
        Some(ProbeKind::Tcp) => "tcp",
        Some(ProbeKind::Grpc) => "grpc",
        Some(ProbeKind::Http) | None => "http",
    };
    let probed_host = active.and_then(|active| active.request.host.as_deref());
    let nodes = health.destinations.iter().map(|destination| {
        let (ip, port) = place(config, destination);
        Node {
            hostname: probed_host.map_or_else(|| ip.clone(), str::to_owned),
            ip,
            port,
            status: Some(status(destination, vitals).as_str().to_owned()),
            counter: Counter {
                success: destination.counter.success.into(),
                http_failure: destination.counter.http_failure.into(),
                tcp_failure: destination.counter.tcp_failure.into(),
                timeout_failure: destination.counter.timeout_failure.into(),
            },
            is_purged: false,
        }
    });
    Checker { name: format!("/apisix/upstreams/{}", health.id), kind: Some(kind.to_owned()), nodes: nodes.collect() }
}

/// Every cluster as our own document.
pub fn health_document(context: &Context, published: &Published, vitals: &Vitals, clock: &Clock) -> HealthDocument {
    let clusters = published.health.clusters.iter().map(|health| {
        let config = cluster(published, health);
        let probed = match (is_on(health.active), is_on(health.passive)) {
            (true, _) => Probed::Active,
            (false, true) => Probed::PassiveOnly,
            (false, false) => Probed::None,
        };
        let nodes = health.destinations.iter().map(|destination| {
            let (ip, port) = place(config, destination);
            let verdict_at = destination.probed_at.max(destination.changed_at);
            NodeReport {
                id: destination.id.to_string(),
                ip,
                port,
                status: status(destination, vitals).as_str().to_owned(),
                probed,
                verdict_age_ms: verdict_at.map(|at| clock.age_ms(at)),
            }
        });
        ClusterStatus { id: health.id.to_string(), nodes: nodes.collect() }
    });
    HealthDocument {
        instance: context.instance.as_str().to_owned(),
        revision: published.health.revision.0,
        core_age_ms: clock.age_ms(context.core_ran_at(published)),
        draining: vitals.is_draining,
        clusters: clusters.collect(),
    }
}

/// In a planned stop every node is unhealthy, also before the core has said so.
fn status(destination: &DestinationHealth, vitals: &Vitals) -> NodeStatus {
    if vitals.is_draining { NodeStatus::Unhealthy } else { destination.status }
}

fn cluster<'a>(published: &'a Published, health: &ClusterHealth) -> Option<&'a Cluster> {
    published.config.clusters.iter().find(|cluster| cluster.id == health.id)
}

/// Host and port of a node. A destination that was resolved to several addresses carries its own in its id.
fn place(config: Option<&Cluster>, destination: &DestinationHealth) -> (String, u16) {
    let Some(found) = config.and_then(|config| configured(config, destination)) else { return (String::new(), 0) };
    let resolved = destination.id.as_str().strip_prefix(found.id.as_str()).and_then(|rest| rest.strip_prefix('['));
    let host = resolved.and_then(|rest| rest.strip_suffix(']')).unwrap_or(&found.address.host);
    let host = match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        Ok(IpAddr::V4(_)) | Err(_) => host.to_owned(),
    };
    (host, found.address.port)
}
