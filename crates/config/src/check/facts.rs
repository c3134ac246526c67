//! What follows from a configuration without running it: where probes go, and how long a failure can go unseen.

use std::time::Duration;

use model::active::{ActiveCheck, ActivePolicy, ProbeKind, ProbeRound};
use model::cluster::Cluster;
use model::config::Config;
use model::probe_uri;
use serde::Serialize;

use crate::timespan;

/// What follows for one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClusterFacts {
    /// Its id.
    pub cluster: String,
    /// Where each destination is probed; empty without an active check.
    pub probes: Vec<ProbeTarget>,
    /// How long a failure can go unseen by probes; `None` without an active check, and with a custom policy.
    pub worst_detection: Option<Detection>,
}

/// Where a destination is probed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProbeTarget {
    /// Its id.
    pub destination: String,
    /// The URL; for tcp probes `tcp://host:port`; where none can be made, why.
    pub url: String,
}

/// The longest time from a failure to the verdict, when the failure comes right after a passed probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Detection {
    /// The destination takes connections and never answers.
    #[serde(serialize_with = "as_text")]
    pub hang: Duration,
    /// The destination refuses connections.
    #[serde(serialize_with = "as_text")]
    pub refused: Duration,
}

/// The facts of each cluster, in the order of the file.
pub fn of(config: &Config) -> Vec<ClusterFacts> {
    config.clusters.iter().map(of_cluster).collect()
}

/// The facts of one cluster.
pub fn of_cluster(cluster: &Cluster) -> ClusterFacts {
    let active = cluster.health_check.active.as_ref();
    let target = |check: &ActiveCheck| -> Vec<ProbeTarget> {
        let probe = |destination: &model::destination::Destination| {
            let base = destination.health.as_ref().unwrap_or(&destination.address);
            let url = match (check.kind, probe_uri::fault(&check.request)) {
                (ProbeKind::Http, None) => probe_uri::url(base, &check.request),
                (ProbeKind::Http, Some(fault)) => format!("no URL, every probe fails: {fault}"),
                (ProbeKind::Tcp, _) => format!("tcp://{}:{}", base.host, base.port),
                (ProbeKind::Grpc, _) => {
                    let service = check.request.service.as_deref().unwrap_or_default();
                    format!("grpc://{}:{}/{service}", base.host, base.port)
                }
            };
            ProbeTarget { destination: destination.id.to_string(), url }
        };
        cluster.destinations.iter().map(probe).collect()
    };
    ClusterFacts {
        cluster: cluster.id.to_string(),
        probes: active.map(target).unwrap_or_default(),
        worst_detection: active.and_then(worst_detection),
    }
}

/// The longest times to a verdict of ConsecutiveFailures.
///
/// The failure comes right after a probe has passed, so the first probe to fail starts one interval later, 5 % jitter
/// included; each further one comes after the confirm interval, or when the interval is over, whichever is earlier.
pub fn worst_detection(check: &ActiveCheck) -> Option<Detection> {
    let ActivePolicy::ConsecutiveFailures { threshold } = check.policy else {
        return None;
    };
    let interval = check.interval.saturating_add(check.interval / 20);
    let more = threshold.saturating_sub(1);
    let hang_step =
        check.timeout.saturating_add(check.confirm_interval).max(EARLY_SPACING).min(interval).max(check.timeout);
    let hang = interval.saturating_add(hang_step.saturating_mul(more)).saturating_add(check.timeout);
    // The first early probe may follow at once, those behind it keep their distance.
    let first = check.confirm_interval.min(AFTER_REFUSAL).min(interval);
    let further = first.max(EARLY_SPACING).min(interval);
    let mut refused = interval;
    if more > 0 {
        refused = refused.saturating_add(first).saturating_add(further.saturating_mul(more - 1));
    }
    if check.round == ProbeRound::Cluster {
        // A round is judged when its slowest probe has ended.
        refused = refused.saturating_add(check.timeout.saturating_mul(threshold));
    }
    Some(Detection { hang, refused })
}

fn as_text<S: serde::Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&timespan::format(*span))
}

const AFTER_REFUSAL: Duration = Duration::from_millis(250);
const EARLY_SPACING: Duration = Duration::from_secs(1);
