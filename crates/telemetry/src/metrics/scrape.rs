//! Builds one scrape: sums from the shards, figures from the view, both limited to what is configured now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::available::Because;
use model::health::{CheckKind, Health};
use model::id::{ClusterId, DestinationId, Slot};
use model::outcome::OutcomeClass;
use model::view::{ClusterHealth, HealthView};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::{Metrics, lock};
use crate::names::{self, Name};
use crate::process::ProcessFigures;

/// The present, as a scrape shows it.
pub struct ScrapeView<'a> {
    /// Every configured cluster and destination.
    pub health: &'a HealthView,
    /// Requests in flight at a destination.
    pub in_flight: &'a dyn Fn(Slot) -> u32,
    /// Time since the health core last ran its timers.
    pub core_age: Duration,
    /// A planned stop is under way.
    pub is_draining: bool,
}

/// How a scrape is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The classic text format, version 0.0.4: what is sent unless OpenMetrics is asked for.
    Classic,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The format that an Accept header asks for.
    pub fn from_accept(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Classic }
    }

    /// Its media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Classic => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

pub(super) fn render(metrics: &Metrics, view: &ScrapeView<'_>, format: Format) -> String {
    let mut page = Page::default();
    page.add(names::BUILD_INFO, Kind::Gauge, vec![("version", env!("CARGO_PKG_VERSION").to_owned())], 1.0);
    metrics.forget_gone(view.health);
    traffic(metrics, &mut page);
    checks(metrics, &mut page);
    health(view, &mut page);
    process(metrics, view, &mut page);

    let mut registry = Registry::default();
    registry.register_collector(Box::new(page));
    let mut out = String::new();
    let written = match format {
        Format::Classic => prometheus_text::encode(&mut out, &registry),
        Format::OpenMetrics => text::encode(&mut out, &registry),
    };
    // Writing to a String fails only when a collector does, and ours has no failure of its own.
    debug_assert!(written.is_ok());
    out
}

/// What is configured.
pub(super) struct Known<'a>(BTreeMap<&'a ClusterId, BTreeSet<&'a DestinationId>>);

impl<'a> Known<'a> {
    /// What `health` has.
    pub(super) fn of(health: &'a HealthView) -> Self {
        let ids = |cluster: &'a ClusterHealth| cluster.destinations.iter().map(|destination| &destination.id).collect();
        Self(health.clusters.iter().map(|cluster| (&cluster.id, ids(cluster))).collect())
    }

    /// Whether the cluster, or this destination of it, is there.
    pub(super) fn has(&self, cluster: &ClusterId, destination: Option<&DestinationId>) -> bool {
        match (self.0.get(cluster), destination) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(known), Some(destination)) => known.contains(destination),
        }
    }
}

fn traffic(metrics: &Metrics, page: &mut Page) {
    let mut unbuffered = 0;
    for shard in lock(&metrics.shards).iter() {
        let present = shard.present();
        unbuffered += present.unbuffered;
        for (cluster, open) in present.tunnels {
            page.add(names::TUNNELS_OPEN, Kind::Gauge, vec![("cluster", cluster.to_string())], open as f64);
        }
        for (cluster, waiting) in present.waiting {
            page.add(names::QUEUE_WAITING, Kind::Gauge, vec![("cluster", cluster.to_string())], waiting as f64);
        }
        shard.visit_listeners(|listener, counts| {
            let labels = |name, word: &str| vec![("listener", listener.to_string()), (name, word.to_owned())];
            for (result, sum) in &counts.handshakes {
                page.add(names::TLS_HANDSHAKES, Kind::Counter, labels("result", result), *sum as f64);
            }
            for (reason, sum) in &counts.refused {
                page.add(names::CONNECTIONS_REFUSED, Kind::Counter, labels("reason", reason), *sum as f64);
            }
        });
        shard.visit(|cluster, counts| {
            let cluster = || ("cluster", cluster.map_or("", ClusterId::as_str).to_owned());
            let told = counts.requests.iter().map(|((class, reason), sum)| (*class, *reason, *sum));
            let forwarded = counts.forwarded.read().map(|(class, sum)| (class, "", sum));
            for (class, reason, sum) in told.chain(forwarded) {
                let status = if class == 0 { "none".to_owned() } else { format!("{class}xx") };
                let labels = vec![cluster(), ("status", status), ("reason", reason.to_owned())];
                page.add(names::REQUESTS, Kind::Counter, labels, sum as f64);
            }
            for (destination, sums) in &counts.attempts {
                for (class, sum) in OutcomeClass::ALL.iter().zip(sums.read()).filter(|(_, sum)| *sum > 0) {
                    let labels = vec![
                        cluster(),
                        ("destination", destination.to_string()),
                        ("outcome", class.as_str().to_owned()),
                    ];
                    page.add(names::ATTEMPTS, Kind::Counter, labels, sum as f64);
                }
            }
            for ((destination, how), sum) in &counts.stale {
                let labels =
                    vec![cluster(), ("destination", destination.to_string()), ("reason", how.as_str().to_owned())];
                page.add(names::STALE_CONNECTIONS, Kind::Counter, labels, *sum as f64);
            }
            if counts.local_failures > 0 {
                page.add(names::LOCAL_FAILURES, Kind::Counter, vec![cluster()], counts.local_failures as f64);
            }
            if counts.retries > 0 {
                page.add(names::RETRIES, Kind::Counter, vec![cluster()], counts.retries as f64);
            }
            for (reason, sum) in &counts.retry_denied {
                let labels = vec![cluster(), ("reason", (*reason).to_owned())];
                page.add(names::RETRY_DENIED, Kind::Counter, labels, *sum as f64);
            }
            for (result, sum) in &counts.queued {
                let labels = vec![cluster(), ("result", (*result).to_owned())];
                page.add(names::QUEUED, Kind::Counter, labels, *sum as f64);
            }
        });
    }
    page.add(names::UNBUFFERED, Kind::Counter, vec![], unbuffered as f64);
}

fn checks(metrics: &Metrics, page: &mut Page) {
    for (key, counts) in lock(&metrics.health).iter() {
        let labels = |more: &[(&'static str, &str)]| {
            let mut labels = destination_labels(&key.cluster, &key.destination);
            labels.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
            labels
        };
        for (failure, sum) in &counts.probes {
            let result = failure.map_or("passed", |failure| failure.as_str());
            page.add(names::PROBES, Kind::Counter, labels(&[("result", result)]), *sum as f64);
        }
        for ((check, to), sum) in &counts.transitions {
            let labels = labels(&[("check", check.as_str()), ("to", to.as_str())]);
            page.add(names::TRANSITIONS, Kind::Counter, labels, *sum as f64);
        }
    }
}

fn health(view: &ScrapeView<'_>, page: &mut Page) {
    for cluster in &view.health.clusters {
        let of_cluster = || vec![("cluster", cluster.id.to_string())];
        page.add(names::CLUSTER_AVAILABLE, Kind::Gauge, of_cluster(), cluster.available.len() as f64);
        page.add(names::CLUSTER_PANIC, Kind::Gauge, of_cluster(), flag(cluster.is_panic));
        for destination in &cluster.destinations {
            let labels = || destination_labels(&cluster.id, &destination.id);
            page.add(names::DESTINATION_AVAILABLE, Kind::Gauge, labels(), flag(destination.is_available));
            page.add(names::DESTINATION_SHARE, Kind::Gauge, labels(), destination.share.get());
            if let because @ (Because::Cap | Because::Guard | Because::Panic) = destination.because {
                let labels = [labels(), vec![("because", because.as_str().to_owned())]].concat();
                page.add(names::DESTINATION_KEPT, Kind::Gauge, labels, 1.0);
            }
            for policy in &destination.would_eject {
                let labels = [labels(), vec![("policy", policy.to_string())]].concat();
                page.add(names::WOULD_EJECT, Kind::Gauge, labels, 1.0);
            }
            let in_flight = (view.in_flight)(destination.slot);
            page.add(names::DESTINATION_IN_FLIGHT, Kind::Gauge, labels(), f64::from(in_flight));
            let values =
                [(CheckKind::Active, destination.health.active), (CheckKind::Passive, destination.health.passive)];
            for (check, value) in values {
                for health in [Health::Unknown, Health::Healthy, Health::Unhealthy] {
                    let mut labels = labels();
                    labels.push(("check", check.as_str().to_owned()));
                    labels.push(("health", health.as_str().to_owned()));
                    page.add(names::DESTINATION_HEALTH, Kind::Gauge, labels, flag(health == value));
                }
            }
        }
    }
}

fn process(metrics: &Metrics, view: &ScrapeView<'_>, page: &mut Page) {
    let count = |page: &mut Page, name, labels, sum: u64| page.add(name, Kind::Counter, labels, sum as f64);
    let result = |word: &str| vec![("result", word.to_owned())];
    for (word, sum) in lock(&metrics.lookups).iter() {
        count(page, names::NAME_LOOKUPS, result(word), *sum);
    }
    count(page, names::CONFIG_RELOADS, result("applied"), metrics.applied.load(Ordering::Relaxed));
    count(page, names::CONFIG_RELOADS, result("refused"), metrics.refused.load(Ordering::Relaxed));
    page.add(names::CONFIG_STALE, Kind::Gauge, vec![], flag(metrics.is_config_stale()));
    count(page, names::CERTIFICATE_RELOADS, result("applied"), metrics.certificates.taken.load(Ordering::Relaxed));
    count(page, names::CERTIFICATE_RELOADS, result("refused"), metrics.certificates.refused.load(Ordering::Relaxed));
    let is_stale = metrics.certificates.is_stale.load(Ordering::Relaxed);
    page.add(names::CERTIFICATES_STALE, Kind::Gauge, vec![], flag(is_stale));
    page.add(names::CORE_AGE, Kind::Gauge, vec![], view.core_age.as_secs_f64());
    page.add(names::DRAINING, Kind::Gauge, vec![], flag(view.is_draining));
    count(page, names::JOURNAL_LOST, vec![], metrics.journal_lost.load(Ordering::Relaxed));
    let recorded = |of: &std::sync::atomic::AtomicU64| of.load(Ordering::Relaxed) as f64;
    page.add(names::RECORDER_BYTES, Kind::Gauge, vec![], recorded(&metrics.recorder_bytes));
    page.add(names::RECORDER_SPAN, Kind::Gauge, vec![], recorded(&metrics.recorder_millis) / 1e3);
    page.add(names::RECORDER_FOLDER, Kind::Gauge, vec![], recorded(&metrics.recorder_folder));
    for (reason, lost) in ["queue", "disk"].into_iter().zip(&metrics.recorder_lost) {
        let labels = vec![("reason", reason.to_owned())];
        count(page, names::RECORDER_LOST, labels, lost.load(Ordering::Relaxed));
    }
    for (log, file) in lock(&metrics.logs).iter() {
        let labels = || vec![("log", (*log).to_owned())];
        let counts = file.counts();
        count(page, names::LOG_LINES_DROPPED, labels(), counts.dropped_lines);
        count(page, names::LOG_REOPEN_FAILURES, labels(), counts.reopen_failures);
        count(page, names::LOG_WRITE_FAILURES, labels(), counts.write_failures);
    }
    let figures = ProcessFigures::read();
    let whole = |value: Option<u64>| value.map(|value| value as f64);
    for (name, kind, value) in [
        (names::PROCESS_CPU, Kind::Counter, figures.cpu_seconds),
        (names::PROCESS_START, Kind::Gauge, figures.start_seconds),
        (names::PROCESS_RESIDENT, Kind::Gauge, whole(figures.resident_bytes)),
        (names::PROCESS_VIRTUAL, Kind::Gauge, whole(figures.virtual_bytes)),
        (names::PROCESS_FDS, Kind::Gauge, whole(figures.open_fds)),
        (names::PROCESS_MAX_FDS, Kind::Gauge, whole(figures.max_fds)),
        (names::PROCESS_THREADS, Kind::Gauge, whole(figures.threads)),
    ] {
        if let Some(value) = value {
            page.add(name, kind, vec![], value);
        }
    }
}

type Labels = Vec<(&'static str, String)>;

fn destination_labels(cluster: &ClusterId, destination: &DestinationId) -> Labels {
    vec![("cluster", cluster.to_string()), ("destination", destination.to_string())]
}

fn flag(is_set: bool) -> f64 {
    if is_set { 1.0 } else { 0.0 }
}

type NoExemplar = [(&'static str, &'static str); 0];

/// The value as a whole number, when it is one that a float holds exactly: printed without a fraction.
fn whole_number(value: f64) -> Option<u64> {
    let is_whole = value.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&value);
    is_whole.then_some(value as u64)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
}

/// All series of one scrape, in the order in which their metrics first appear.
#[derive(Debug, Default)]
struct Page(Vec<(Name, Kind, BTreeMap<Labels, f64>)>);

impl Page {
    /// Adds to a series, which makes it when it is new: sums of several shards come together here.
    fn add(&mut self, name: Name, kind: Kind, labels: Labels, value: f64) {
        let place = match self.0.iter().position(|(known, _, _)| *known == name) {
            Some(place) => place,
            None => {
                self.0.push((name, kind, BTreeMap::new()));
                self.0.len() - 1
            }
        };
        if let Some((_, _, series)) = self.0.get_mut(place) {
            *series.entry(labels).or_default() += value;
        }
    }
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        for (name, kind, series) in &self.0 {
            let metric_type = match kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
            };
            let mut metric = encoder.encode_descriptor(name.name, name.help, None, metric_type)?;
            for (labels, value) in series {
                let mut family = metric.encode_family(labels)?;
                match (kind, whole_number(*value)) {
                    (Kind::Counter, Some(value)) => family.encode_counter::<NoExemplar, u64, f64>(&value, None)?,
                    (Kind::Counter, None) => family.encode_counter::<NoExemplar, f64, f64>(value, None)?,
                    (Kind::Gauge, Some(value)) => family.encode_gauge(&value)?,
                    (Kind::Gauge, None) => family.encode_gauge(value)?,
                }
            }
        }
        Ok(())
    }
}
