//! `lazaret status`: every cluster and destination at a glance.

use control::document::clusters::{ClusterDocument, ClustersDocument, DestinationDocument, ProbeDocument};
use model::health::Health;

use crate::cli::exit::Exit;

use super::http::Client;
use super::table::table;
use super::{Common, conclude, fetch, print, words};

/// What `status` is told.
#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    common: Common,
}

/// Prints the status.
pub(in crate::cli) fn run(arguments: &Arguments) -> Exit {
    conclude(async || {
        let client = Client::new(arguments.common.target.for_reading()?);
        let document: ClustersDocument = fetch(&client, "/api/clusters").await?;
        print(arguments.common.format, &document, render);
        Ok(if document.clusters.iter().all(|cluster| cluster.healthy > 0) { Exit::Done } else { Exit::NoneHealthy })
    })
}

/// The document as text.
fn render(document: &ClustersDocument) -> String {
    let age = words::span(document.core_age_ms);
    let mut text = format!("{}  revision {}  health core ran {age} ago\n", document.instance, document.revision);
    if document.draining {
        text.push_str("a planned stop is under way\n");
    }
    if document.config_stale {
        text.push_str("the configuration that was read last is refused; an older one runs\n");
    }
    for trouble in &document.troubles {
        text.push_str(&format!("trouble: {trouble}\n"));
    }
    for cluster in &document.clusters {
        text.push('\n');
        text.push_str(&head(cluster));
        let mut rows = vec![COLUMNS.map(str::to_owned).to_vec()];
        rows.extend(cluster.destinations.iter().map(|destination| row(cluster, destination)));
        text.push_str(&table("  ", &rows));
    }
    text
}

/// A cluster in one line.
pub(super) fn head(cluster: &ClusterDocument) -> String {
    let panic = if cluster.panic { "  PANIC: all are used because too few are healthy" } else { "" };
    let ClusterDocument { id, total, healthy, available, .. } = cluster;
    format!("cluster {id}  {healthy} of {total} healthy, {available} in use{panic}\n")
}

const COLUMNS: [&str; 8] =
    ["DESTINATION", "ADDRESS", "ACTIVE", "PASSIVE", "STATUS", "AVAILABLE", "IN FLIGHT", "LAST PROBE"];

fn row(cluster: &ClusterDocument, destination: &DestinationDocument) -> Vec<String> {
    let available = if destination.available { "yes" } else { "no" };
    let because = destination.because.as_str();
    let because = match destination.share {
        // One that gets nothing has no part to tell of.
        share if share < 1.0 && destination.available => format!("{because}, {:.0} % of its weight", share * 100.0),
        _ => because.to_owned(),
    };
    vec![
        destination.id.clone(),
        destination.address.clone().unwrap_or_default(),
        value(cluster.active.as_ref(), destination.active),
        value(cluster.passive.as_ref(), destination.passive),
        destination.status.as_str().to_owned(),
        format!("{available} ({because})"),
        destination.in_flight.to_string(),
        destination.last_probe.as_ref().map(probe).unwrap_or_default(),
    ]
}

/// What a check says, where there is one.
fn value<T>(check: Option<&T>, health: Health) -> String {
    check.map_or("off", |_| health.as_str()).to_owned()
}

/// A probe's result in a few words.
pub(super) fn probe(probe: &ProbeDocument) -> String {
    let result = match (&probe.failure, probe.status) {
        (None, None) => "passed".to_owned(),
        (None, Some(status)) => format!("passed ({status})"),
        (Some(failure), None) => failure.clone(),
        (Some(failure), Some(status)) => format!("{failure} ({status})"),
    };
    format!("{result}, {} ago", words::span(probe.age_ms))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::explain::tests::sample;
    use super::*;

    #[test]
    fn a_part_of_the_weight_stands_beside_the_reason_for_being_in_use_and_not_where_it_is_out() {
        let mut cluster = sample();
        cluster.destinations.iter_mut().for_each(|one| one.share = 0.1);
        let cells = cluster.destinations.iter().map(|one| row(&cluster, one).swap_remove(5));
        assert_eq!(cells.collect::<Vec<_>>(), ["no (unhealthy)", "yes (health, 10 % of its weight)"]);
    }

    #[test]
    fn a_status_is_a_table_per_cluster() {
        let document = ClustersDocument {
            instance: "5eed".to_owned(),
            revision: 12,
            at: "2026-01-02T03:04:05.000Z".to_owned(),
            core_age_ms: 10,
            draining: false,
            config_stale: true,
            troubles: vec!["listener web does not accept".to_owned()],
            clusters: vec![sample()],
        };
        let expected = "\
5eed  revision 12  health core ran 10 ms ago
the configuration that was read last is refused; an older one runs
trouble: listener web does not accept

cluster api  1 of 2 healthy, 1 in use
  DESTINATION  ADDRESS                 ACTIVE     PASSIVE    STATUS            AVAILABLE       IN FLIGHT  LAST PROBE
  a            http://10.0.0.11:8000/  unhealthy  unhealthy  mostly_unhealthy  no (unhealthy)  0          status (500), 2 s ago
  b            http://10.0.0.12:8000/  healthy    unknown    healthy           yes (health)    3          passed (200), 1.5 s ago
";
        assert_eq!(render(&document), expected);
    }
}
