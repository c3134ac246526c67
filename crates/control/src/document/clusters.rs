//! Clusters and destinations with everything that is known of them: `GET /api/clusters`,
//! `GET /api/destinations/{cluster}/{id}`.

use std::collections::BTreeMap;

use model::active::{ActivePolicy, ProbeKind};
use model::available::{AvailablePolicy, Because};
use model::cluster::Cluster;
use model::destination::Destination;
use model::health::{Health, Switch};
use model::outcome::OutcomeClass;
use model::view::{ClusterHealth, Counter, DestinationHealth, NodeStatus};
use serde::{Deserialize, Serialize};

use super::Clock;
use super::clock::millis;
use super::event::{ChangeDocument, EventDocument};
use crate::context::{Context, Published};

/// `GET /api/clusters`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClustersDocument {
    /// Random per process.
    pub instance: String,
    /// Number of the last event that is part of it: events after it go on from here.
    pub revision: u64,
    /// When it was written.
    pub at: String,
    /// Milliseconds since the health core last ran its timers.
    pub core_age_ms: u64,
    /// A planned stop is under way.
    pub draining: bool,
    /// The configuration that was read last was refused; an older one runs.
    pub config_stale: bool,
    /// What keeps the process from carrying traffic, in words.
    pub troubles: Vec<String>,
    /// In the order of the configuration.
    pub clusters: Vec<ClusterDocument>,
}

/// One cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClusterDocument {
    /// Its id.
    pub id: String,
    /// The policy that joins both values.
    pub available_policy: String,
    /// Its active check; absent: off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<ActiveDocument>,
    /// Its passive check; absent: off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passive: Option<PassiveDocument>,
    /// All destinations are used because too few are healthy.
    pub panic: bool,
    /// Destinations, those included that this document leaves out.
    pub total: u32,
    /// Destinations with status `healthy` or `mostly_healthy`.
    pub healthy: u32,
    /// Destinations that traffic may use.
    pub available: u32,
    /// In the order of the configuration.
    pub destinations: Vec<DestinationDocument>,
}

/// An active check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActiveDocument {
    /// `http` or `tcp`.
    pub kind: ProbeKind,
    /// The policy's name.
    pub policy: String,
    /// From start to start.
    pub interval_ms: u64,
    /// How long a probe may take.
    pub timeout_ms: u64,
}

/// A passive check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassiveDocument {
    /// Names of the policies.
    pub policies: Vec<String>,
    /// Names of those that are judged and not enforced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shadow: Vec<String>,
    /// How long an ejection lasts at least (under `compat: yarp` never shorter than the window); absent: as the policy
    /// has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reactivation_ms: Option<u64>,
}

/// One destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DestinationDocument {
    /// Its id.
    pub id: String,
    /// Where requests go; absent while a reload is taking it away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Its share.
    pub weight: u32,
    /// Health by probes.
    pub active: Health,
    /// Health by traffic.
    pub passive: Health,
    /// Status in APISIX's words.
    pub status: NodeStatus,
    /// Whether traffic may use it.
    pub available: bool,
    /// Why.
    pub because: Because,
    /// One request at a time, until it has proved itself.
    pub gated: bool,
    /// The part of its weight that it gets, between 0 and 1: below 1 while it is suspect or comes back.
    #[serde(default = "whole")]
    pub share: f64,
    /// Policies that are not enforced and would have it out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub would_eject: Vec<String>,
    /// Requests in flight.
    pub in_flight: u32,
    /// Attempts that ended, by the class of their outcome, since the destination was configured; classes without any
    /// are absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outcomes: BTreeMap<OutcomeClass, u64>,
    /// Consecutive counts.
    pub counter: Counter,
    /// The last judged probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_probe: Option<ProbeDocument>,
    /// When the next probe starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_probe: Option<Moment>,
    /// When its ejection ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reactivation: Option<Moment>,
    /// When one of its values last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<String>,
    /// That change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition: Option<ChangeDocument>,
}

/// Whoever does not tell of shares gives the whole.
fn whole() -> f64 {
    1.0
}

/// A probe's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeDocument {
    /// When it was judged.
    pub at: String,
    /// How long ago.
    pub age_ms: u64,
    /// How it failed; absent: it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Status of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// A moment ahead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// When.
    pub at: String,
    /// In how many milliseconds; 0: it is due.
    pub in_ms: u64,
}

/// `GET /api/destinations/{cluster}/{id}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DestinationPage {
    /// Random per process.
    pub instance: String,
    /// Number of the last event that is part of it.
    pub revision: u64,
    /// Its cluster, with this destination alone in it.
    pub cluster: ClusterDocument,
    /// Its last events, oldest first.
    pub recent: Vec<EventDocument>,
}

impl ClustersDocument {
    /// The whole picture of one snapshot.
    pub fn new(context: &Context, published: &Published, clock: &Clock) -> Self {
        let vitals = context.process.vitals();
        let clusters = published.health.clusters.iter();
        Self {
            instance: context.instance.as_str().to_owned(),
            revision: published.health.revision.0,
            at: clock.text(clock.now),
            core_age_ms: clock.age_ms(context.core_ran_at(published)),
            draining: vitals.is_draining,
            config_stale: context.metrics.is_config_stale(),
            troubles: vitals.troubles.iter().map(ToString::to_string).collect(),
            clusters: clusters.map(|cluster| ClusterDocument::new(context, published, cluster, clock)).collect(),
        }
    }
}

impl ClusterDocument {
    /// One cluster of a snapshot.
    pub fn new(context: &Context, published: &Published, health: &ClusterHealth, clock: &Clock) -> Self {
        let config = published.config.clusters.iter().find(|cluster| cluster.id == health.id);
        let is_draining = context.process.vitals().is_draining;
        let destinations = health.destinations.iter().map(|destination| {
            let configured = config.and_then(|config| configured(config, destination));
            let traffic = Traffic {
                in_flight: context.process.in_flight(destination.slot),
                outcomes: context.metrics.outcomes(&health.id, &destination.id),
            };
            DestinationDocument::new(destination, configured, traffic, is_draining, clock)
        });
        let destinations: Vec<_> = destinations.collect();
        let healthy = destinations.iter().filter(|one| is_healthy(one.status)).count();
        let checks = config.map(|config| &config.health_check);
        Self {
            id: health.id.to_string(),
            available_policy: checks
                .map_or_else(String::new, |checks| available_word(&checks.available_destinations_policy)),
            active: checks.and_then(|checks| checks.active.as_ref()).map(|active| ActiveDocument {
                kind: active.kind,
                policy: active_word(&active.policy),
                interval_ms: millis(active.interval),
                timeout_ms: millis(active.timeout),
            }),
            passive: checks.and_then(|checks| checks.passive.as_ref()).map(|passive| PassiveDocument {
                policies: passive.policies.iter().map(|policy| policy.name().to_owned()).collect(),
                shadow: passive.shadow.iter().map(|policy| policy.name().to_owned()).collect(),
                reactivation_ms: config.and_then(|config| passive.ejection_period(config.compat)).map(millis),
            }),
            panic: health.is_panic,
            total: u32::try_from(destinations.len()).unwrap_or(u32::MAX),
            healthy: u32::try_from(healthy).unwrap_or(u32::MAX),
            available: u32::try_from(health.available.len()).unwrap_or(u32::MAX),
            destinations,
        }
    }

    /// Whether a check of this cluster is on.
    pub fn is_checked(&self) -> bool {
        self.active.is_some() || self.passive.is_some()
    }
}

/// What its traffic is and has been.
struct Traffic {
    in_flight: u32,
    /// By [`OutcomeClass::code`].
    outcomes: [u64; OutcomeClass::ALL.len()],
}

impl DestinationDocument {
    fn new(
        health: &DestinationHealth,
        configured: Option<&Destination>,
        traffic: Traffic,
        is_draining: bool,
        clock: &Clock,
    ) -> Self {
        let moment = |at| Moment { at: clock.text(at), in_ms: clock.until_ms(at) };
        Self {
            id: health.id.to_string(),
            address: configured.map(|configured| configured.address.to_string()),
            weight: configured.map_or(0, |configured| configured.weight),
            active: health.health.active,
            passive: health.health.passive,
            status: if is_draining { NodeStatus::Unhealthy } else { health.status },
            available: health.is_available,
            because: health.because,
            gated: health.is_gated,
            share: health.share.get(),
            would_eject: health.would_eject.iter().map(ToString::to_string).collect(),
            in_flight: traffic.in_flight,
            outcomes: OutcomeClass::ALL.into_iter().zip(traffic.outcomes).filter(|(_, count)| *count > 0).collect(),
            counter: health.counter,
            last_probe: health.probed_at.map(|at| ProbeDocument {
                at: clock.text(at),
                age_ms: clock.age_ms(at),
                failure: health.probe_failure.map(|failure| failure.as_str().to_owned()),
                status: health.probe_status,
            }),
            next_probe: health.next_probe_at.map(moment),
            reactivation: health.reactivation_at.map(moment),
            changed_at: health.changed_at.map(|at| clock.text(at)),
            last_transition: health.last_transition.as_ref().map(|last| ChangeDocument::new(last, |at| clock.text(at))),
        }
    }
}

/// The configured destination behind a health entry. A name with several addresses has entries `id[address]`.
pub(crate) fn configured<'a>(cluster: &'a Cluster, health: &DestinationHealth) -> Option<&'a Destination> {
    let find = |id: &str| cluster.destinations.iter().find(|destination| destination.id.as_str() == id);
    let id = health.id.as_str();
    find(id).or_else(|| id.strip_suffix(']').and_then(|id| id.rsplit_once('[')).and_then(|(id, _)| find(id)))
}

/// Whether a status counts as healthy: APISIX sends traffic to both.
pub fn is_healthy(status: NodeStatus) -> bool {
    match status {
        NodeStatus::Healthy | NodeStatus::MostlyHealthy => true,
        NodeStatus::MostlyUnhealthy | NodeStatus::Unhealthy | NodeStatus::Unknown => false,
    }
}

/// Whether a check is on.
pub(crate) fn is_on(switch: Switch) -> bool {
    match switch {
        Switch::On => true,
        Switch::Off => false,
    }
}

fn available_word(policy: &AvailablePolicy) -> String {
    match policy {
        AvailablePolicy::HealthyAndUnknown => "HealthyAndUnknown".to_owned(),
        AvailablePolicy::HealthyOrPanic => "HealthyOrPanic".to_owned(),
        AvailablePolicy::PanicThreshold(_) => "PanicThreshold".to_owned(),
        AvailablePolicy::Custom(name) => name.to_string(),
    }
}

fn active_word(policy: &ActivePolicy) -> String {
    match policy {
        ActivePolicy::ConsecutiveFailures { .. } => "ConsecutiveFailures".to_owned(),
        ActivePolicy::Custom(name) => name.to_string(),
    }
}
