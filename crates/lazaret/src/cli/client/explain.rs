//! `lazaret explain CLUSTER [DESTINATION]`: why each destination is in use or not, in words.

use control::document::clusters::{ClusterDocument, ClustersDocument, DestinationDocument, DestinationPage};
use control::document::event::{EventDocument, EventPage, EventWord};
use serde::Serialize;

use crate::cli::exit::Exit;

use super::http::{Client, encode};
use super::status::{head, probe};
use super::{Common, Failure, conclude, fetch, print, words};

/// What `explain` is told.
#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Id of the cluster.
    cluster: String,
    /// Id of one of its destinations; all of them unless given.
    destination: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Past events that are shown for a whole cluster.
const RECENT: usize = 20;

/// Prints the explanation.
pub(in crate::cli) fn run(arguments: &Arguments) -> Exit {
    conclude(async || {
        let client = Client::new(arguments.common.target.for_reading()?);
        let explanation = match &arguments.destination {
            Some(destination) => of_destination(&client, &arguments.cluster, destination).await?,
            None => of_cluster(&client, &arguments.cluster).await?,
        };
        print(arguments.common.format, &explanation, render);
        Ok(Exit::Done)
    })
}

/// A cluster (with one destination or all) and what happened to it.
#[derive(Serialize)]
struct Explanation {
    cluster: ClusterDocument,
    /// Oldest first.
    recent: Vec<EventDocument>,
}

async fn of_destination(client: &Client, cluster: &str, destination: &str) -> Result<Explanation, Failure> {
    let path = format!("/api/destinations/{}/{}", encode(cluster), encode(destination));
    let DestinationPage { cluster, recent, .. } = fetch(client, &path).await?;
    Ok(Explanation { cluster, recent })
}

async fn of_cluster(client: &Client, id: &str) -> Result<Explanation, Failure> {
    let document: ClustersDocument = fetch(client, "/api/clusters").await?;
    let known: Vec<String> = document.clusters.iter().map(|cluster| cluster.id.clone()).collect();
    let found = document.clusters.into_iter().find(|cluster| cluster.id == id);
    let cluster =
        found.ok_or_else(|| Failure::failed(format!("cluster {id} not found; there are: {}", known.join(", "))))?;
    let path = format!("/api/journal?cluster={}&limit={RECENT}", encode(id));
    let EventPage { events, .. } = fetch(client, &path).await?;
    Ok(Explanation { cluster, recent: events })
}

/// The explanation as text.
fn render(explanation: &Explanation) -> String {
    let cluster = &explanation.cluster;
    let mut text = head(cluster);
    text.push_str(&checks(cluster));
    for destination in &cluster.destinations {
        text.push('\n');
        text.push_str(&of(cluster, destination, &explanation.recent));
    }
    if !explanation.recent.is_empty() {
        text.push_str("\nrecent, oldest first:\n");
        for event in &explanation.recent {
            let whose = event.subject.as_ref().map_or("", |subject| subject.destination.as_str());
            text.push_str(&format!("  {}  {whose}  {}\n", event.at, words::what(event)));
        }
    }
    text
}

fn checks(cluster: &ClusterDocument) -> String {
    let active = cluster.active.as_ref().map_or_else(
        || "off".to_owned(),
        |active| {
            let kind = match active.kind {
                model::active::ProbeKind::Http => "HTTP",
                model::active::ProbeKind::Tcp => "TCP",
                model::active::ProbeKind::Grpc => "gRPC",
            };
            let (interval, timeout) = (words::span(active.interval_ms), words::span(active.timeout_ms));
            format!("{kind} probe every {interval}, timeout {timeout}, judged by {}", active.policy)
        },
    );
    let passive = cluster.passive.as_ref().map_or_else(
        || "off".to_owned(),
        |passive| {
            let policies = format!("judged by {}", passive.policies.join(", "));
            let period = passive.reactivation_ms.map(|period| format!(", ejections last {}", words::span(period)));
            policies + &period.unwrap_or_default()
        },
    );
    let policy = &cluster.available_policy;
    format!("  active check: {active}\n  passive check: {passive}\n  who is in use: decided by {policy}\n")
}

fn of(cluster: &ClusterDocument, destination: &DestinationDocument, recent: &[EventDocument]) -> String {
    let use_word = if destination.available { "in use" } else { "NOT in use" };
    let address = destination.address.as_deref().unwrap_or("");
    let mut lines = vec![format!("{}  {address}  {use_word}: {}", destination.id, words::because(destination.because))];
    let value = |is_on: bool, health: model::health::Health| if is_on { health.as_str() } else { "off" };
    lines.push(format!(
        "active {}, passive {}, status {}, weight {}, {} in flight",
        value(cluster.active.is_some(), destination.active),
        value(cluster.passive.is_some(), destination.passive),
        destination.status.as_str(),
        destination.weight,
        destination.in_flight,
    ));
    let takes = if destination.available { "takes" } else { "when in use:" };
    if destination.gated {
        lines.push(format!("{takes} one request at a time until enough of them have succeeded"));
    }
    if destination.share < 1.0 {
        let is_its = |event: &&EventDocument| {
            let whose = event.subject.as_ref().map(|subject| subject.destination.as_str());
            event.event == EventWord::Share && whose == Some(destination.id.as_str())
        };
        // The newest one tells who holds it back; it may have left the journal.
        let why = recent.iter().rev().find(is_its).map(|event| format!(": {}", words::share(event)));
        lines.push(format!("{takes} {:.0} % of its weight{}", destination.share * 100.0, why.unwrap_or_default()));
    }
    for policy in &destination.would_eject {
        lines.push(format!("{policy} (not enforced) would have it out"));
    }
    if let Some(change) = &destination.last_transition {
        let at = destination.changed_at.as_deref().map(|at| format!(" at {at}")).unwrap_or_default();
        lines.push(format!("last change{at}: {}", words::transition(change)));
    }
    if let Some(last) = &destination.last_probe {
        lines.push(format!("last probe: {}", probe(last)));
    }
    if let Some(next) = &destination.next_probe {
        lines.push(format!("next probe in {}", words::span(next.in_ms)));
    }
    if let Some(end) = &destination.reactivation {
        lines.push(format!("ejection ends in {} (at {})", words::span(end.in_ms), end.at));
    }
    lines.join("\n    ") + "\n"
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    /// A cluster with one sick and one good destination, as the API writes it.
    pub(in super::super) fn sample() -> ClusterDocument {
        let evidence = json!({"failed": 5, "total": 12, "limit": 0.3, "window_ms": 60000, "reactivation_ms": 60000,
            "last": [{"at": "2026-01-02T03:04:01.000Z", "class": "app_fail", "status": 502},
                     {"at": "2026-01-02T03:04:02.000Z", "class": "conn_fail", "failure": "refused"}]});
        serde_json::from_value(json!({
            "id": "api", "available_policy": "HealthyOrPanic",
            "active": {"kind": "http", "policy": "ConsecutiveFailures", "interval_ms": 5000, "timeout_ms": 2000},
            "passive": {"policies": ["TransportFailureRate"], "reactivation_ms": 60000},
            "panic": false, "total": 2, "healthy": 1, "available": 1,
            "destinations": [
                {"id": "a", "address": "http://10.0.0.11:8000/", "weight": 1, "active": "unhealthy",
                 "passive": "unhealthy", "status": "mostly_unhealthy", "available": false, "because": "unhealthy",
                 "gated": false, "in_flight": 0,
                 "counter": {"success": 0, "http_failure": 3, "tcp_failure": 0, "timeout_failure": 0},
                 "last_probe": {"at": "2026-01-02T03:04:03.000Z", "age_ms": 2000, "failure": "status", "status": 500},
                 "next_probe": {"at": "2026-01-02T03:04:06.000Z", "in_ms": 1000},
                 "reactivation": {"at": "2026-01-02T03:05:02.000Z", "in_ms": 57000},
                 "changed_at": "2026-01-02T03:04:02.000Z",
                 "last_transition": {"check": "passive", "from": "healthy", "to": "unhealthy", "cause": "traffic",
                                     "policy": "TransportFailureRate", "evidence": evidence}},
                {"id": "b", "address": "http://10.0.0.12:8000/", "weight": 1, "active": "healthy",
                 "passive": "unknown", "status": "healthy", "available": true, "because": "health",
                 "gated": false, "in_flight": 3,
                 "counter": {"success": 9, "http_failure": 0, "tcp_failure": 0, "timeout_failure": 0},
                 "last_probe": {"at": "2026-01-02T03:04:03.500Z", "age_ms": 1500, "status": 200},
                 "next_probe": {"at": "2026-01-02T03:04:08.500Z", "in_ms": 3500}},
            ],
        }))
        .unwrap()
    }

    #[test]
    fn an_explanation_names_values_causes_and_what_comes_next() {
        let event = json!({"event": "transition", "revision": 9, "at": "2026-01-02T03:03:50.000Z", "cluster": "api",
            "destination": "a", "check": "active", "from": "healthy", "to": "unhealthy", "cause": "probe",
            "policy": "ConsecutiveFailures",
            "evidence": {"failed": 2, "limit": 2.0, "last": [{"at": "2026-01-02T03:03:50.000Z", "failure": "timeout"}]}});
        let explanation = Explanation { cluster: sample(), recent: vec![serde_json::from_value(event).unwrap()] };
        let expected = "\
cluster api  1 of 2 healthy, 1 in use
  active check: HTTP probe every 5 s, timeout 2 s, judged by ConsecutiveFailures
  passive check: judged by TransportFailureRate, ejections last 1 min
  who is in use: decided by HealthyOrPanic

a  http://10.0.0.11:8000/  NOT in use: a check found it unhealthy
    active unhealthy, passive unhealthy, status mostly_unhealthy, weight 1, 0 in flight
    last change at 2026-01-02T03:04:02.000Z: passive healthy -> unhealthy: TransportFailureRate on traffic: 5 of 12 attempts failed within 1 min, limit 0.3, ejected for 1 min; last: status 502, refused
    last probe: status (500), 2 s ago
    next probe in 1 s
    ejection ends in 57 s (at 2026-01-02T03:05:02.000Z)

b  http://10.0.0.12:8000/  in use: no check holds anything against it
    active healthy, passive unknown, status healthy, weight 1, 3 in flight
    last probe: passed (200), 1.5 s ago
    next probe in 3.5 s

recent, oldest first:
  2026-01-02T03:03:50.000Z  a  active healthy -> unhealthy: ConsecutiveFailures on probes: 2 probes failed, limit 2; last: timeout
";
        assert_eq!(render(&explanation), expected);
    }

    #[test]
    fn a_suspect_is_shown_with_its_part_and_who_accuses_it() {
        let mut cluster = sample();
        let mut b = cluster.destinations.pop().unwrap();
        (b.share, b.would_eject) = (0.1, vec!["FailureRate".to_owned()]);
        let event = json!({"event": "share", "revision": 9, "at": "2026-01-02T03:03:50.000Z", "cluster": "api",
            "destination": "b", "share": 0.1, "share_because": "suspect", "by": "Burst"});
        let event = serde_json::from_value(event).unwrap();
        let text = of(&cluster, &b, &[event]);
        assert!(text.contains("takes 10 % of its weight: suspect by Burst\n"), "{text}");
        assert!(text.contains("FailureRate (not enforced) would have it out\n"), "{text}");
        let text = of(&cluster, &b, &[]);
        assert!(text.contains("takes 10 % of its weight\n"), "{text}");
    }

    #[test]
    fn one_that_is_not_in_use_is_not_said_to_take_anything() {
        let mut cluster = sample();
        let mut a = cluster.destinations.swap_remove(0);
        (a.share, a.gated) = (0.1, true);
        let text = of(&cluster, &a, &[]);
        assert!(text.contains("NOT in use") && !text.contains("takes"), "{text}");
        assert!(text.contains("when in use: one request at a time until enough of them have succeeded\n"), "{text}");
        assert!(text.contains("when in use: 10 % of its weight\n"), "{text}");
    }
}
