//! Scrapes, read back as text.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use model::available::Because;
use model::event::{Cause, Evidence};
use model::health::{HealthPair, Switch};
use model::id::{ClusterId, DestinationId, Revision, Slot};
use model::outcome::{FailureKind, OutcomeClass};
use model::time::Timestamp;
use model::view::{ClusterHealth, Counter, DestinationHealth, HealthView, NodeStatus};

use super::*;

fn view(names: &[&str]) -> HealthView {
    let destination = |(slot, name): (usize, &&str)| DestinationHealth {
        id: DestinationId::from(*name),
        slot: Slot(slot as u32),
        health: HealthPair::new(Health::Healthy, Health::Unknown),
        because: Because::Health,
        is_available: true,
        status: NodeStatus::Healthy,
        counter: Counter::default(),
        probed_at: None,
        probe_failure: None,
        probe_status: None,
        next_probe_at: None,
        reactivation_at: None,
        changed_at: None,
        is_gated: false,
        share: model::ratio::Ratio::ONE,
        would_eject: Vec::new(),
        last_transition: None,
    };
    let cluster = ClusterHealth {
        id: ClusterId::from("api"),
        active: Switch::On,
        passive: Switch::Off,
        destinations: names.iter().enumerate().map(destination).collect(),
        available: (0..names.len() as u32).collect(),
        is_panic: false,
    };
    HealthView { revision: Revision(1), at: Timestamp::from_secs(1), clusters: vec![Arc::new(cluster)] }
}

fn scrape(metrics: &Metrics, health: &HealthView) -> String {
    let view =
        ScrapeView { health, in_flight: &|slot| slot.0 + 5, core_age: Duration::from_secs(2), is_draining: false };
    metrics.scrape(&view, Format::Classic)
}

fn has(text: &str, line: &str) {
    assert!(text.lines().any(|one| one == line), "{line} is missing in\n{text}");
}

#[test]
fn sums_of_workers_come_together() {
    let metrics = Metrics::new();
    let (cluster, a) = (ClusterId::from("api"), DestinationId::from("a"));
    for worker in [metrics.worker(), metrics.worker()] {
        worker.request(Some(&cluster), 204, "");
        worker.request(None, 404, "no_route");
        worker.attempt(&cluster, &a, OutcomeClass::ConnFail);
        worker.stale_connection(&cluster, &a, FailureKind::Closed);
        worker.retry(&cluster);
        worker.retry_denied(&cluster, "budget");
    }
    let text = scrape(&metrics, &view(&["a"]));
    has(&text, r#"lazaret_requests_total{cluster="api",status="2xx",reason=""} 2"#);
    has(&text, r#"lazaret_requests_total{cluster="",status="4xx",reason="no_route"} 2"#);
    has(&text, r#"lazaret_attempts_total{cluster="api",destination="a",outcome="conn_fail"} 2"#);
    has(&text, r#"lazaret_stale_connections_total{cluster="api",destination="a",reason="closed"} 2"#);
    has(&text, r#"lazaret_retries_total{cluster="api"} 2"#);
    has(&text, r#"lazaret_retry_denied_total{cluster="api",reason="budget"} 2"#);
}

#[test]
fn places_that_are_kept_count_into_the_same_sums_until_their_destination_is_gone() {
    let metrics = Metrics::new();
    let (cluster, a) = (ClusterId::from("api"), DestinationId::from("a"));
    let worker = metrics.worker();
    let (attempts, requests) = (worker.attempts_of(&cluster, &a), worker.requests_of(&cluster));
    for _ in 0..3 {
        attempts.count(OutcomeClass::Ok);
        requests.count(200);
    }
    requests.count(499);
    worker.attempt(&cluster, &a, OutcomeClass::Ok);
    worker.request(Some(&cluster), 200, "");
    let text = scrape(&metrics, &view(&["a"]));
    has(&text, r#"lazaret_attempts_total{cluster="api",destination="a",outcome="ok"} 4"#);
    has(&text, r#"lazaret_requests_total{cluster="api",status="2xx",reason=""} 4"#);
    has(&text, r#"lazaret_requests_total{cluster="api",status="4xx",reason=""} 1"#);
    assert!(attempts.is_shown() && requests.is_shown());
    scrape(&metrics, &view(&["b"]));
    assert!(!attempts.is_shown() && requests.is_shown());
    worker.attempts_of(&cluster, &a).count(OutcomeClass::Ok);
    let text = scrape(&metrics, &view(&["a"]));
    has(&text, r#"lazaret_attempts_total{cluster="api",destination="a",outcome="ok"} 1"#);
}

#[test]
fn what_is_gone_is_forgotten_without_a_scrape() {
    let metrics = Metrics::new();
    let (cluster, a, gone) = (ClusterId::from("api"), DestinationId::from("a"), ClusterId::from("gone"));
    let worker = metrics.worker();
    let kept = worker.attempts_of(&cluster, &a);
    let of_gone = [worker.attempts_of(&cluster, &DestinationId::from("b")), worker.attempts_of(&gone, &a)];
    let requests = worker.requests_of(&gone);
    metrics.probe(&DestinationKey::new("api", "a"), None);
    metrics.probe(&DestinationKey::new("api", "b"), None);
    metrics.forget_gone(&view(&["a"]));
    assert!(kept.is_shown() && !requests.is_shown() && of_gone.iter().all(|sums| !sums.is_shown()));
    assert_eq!(lock(&metrics.health).len(), 1);
}

#[test]
fn the_present_is_read_from_the_view() {
    let text = scrape(&Metrics::default(), &view(&["a", "b\"c"]));
    has(&text, r#"lazaret_destination_health{cluster="api",destination="a",check="active",health="healthy"} 1"#);
    has(&text, r#"lazaret_destination_health{cluster="api",destination="a",check="active",health="unhealthy"} 0"#);
    has(&text, r#"lazaret_destination_health{cluster="api",destination="a",check="passive",health="unknown"} 1"#);
    has(&text, r#"lazaret_destination_in_flight{cluster="api",destination="b\"c"} 6"#);
    has(&text, r#"lazaret_cluster_available_destinations{cluster="api"} 2"#);
    has(&text, "lazaret_core_age_seconds 2");
}

#[test]
fn events_are_counted() {
    let metrics = Metrics::new();
    let key = DestinationKey::new("api", "a");
    metrics.probe(&key, None);
    metrics.probe(&key, Some(FailureKind::Refused));
    metrics.event(&EventKind::Transition(Transition {
        destination: key,
        check: CheckKind::Active,
        from: Health::Healthy,
        to: Health::Unhealthy,
        cause: Cause::Reactivation,
        evidence: Evidence::default(),
    }));
    metrics.event(&EventKind::Config { applied: true, summary: String::new() });
    metrics.event(&EventKind::Config { applied: false, summary: String::new() });
    metrics.journal_lost();
    metrics.recorder(4096, Duration::from_millis(2500));
    metrics.recorder_folder(8192);
    metrics.recorder_lost(RecorderLoss::Disk);
    let text = scrape(&metrics, &view(&["a"]));
    has(&text, r#"lazaret_probes_total{cluster="api",destination="a",result="passed"} 1"#);
    has(&text, r#"lazaret_probes_total{cluster="api",destination="a",result="refused"} 1"#);
    has(&text, r#"lazaret_transitions_total{cluster="api",destination="a",check="active",to="unhealthy"} 1"#);
    has(&text, r#"lazaret_config_reloads_total{result="applied"} 1"#);
    has(&text, "lazaret_config_stale 1");
    has(&text, "lazaret_journal_lost_total 1");
    has(&text, "lazaret_recorder_bytes 4096");
    has(&text, "lazaret_recorder_span_seconds 2.5");
    has(&text, "lazaret_recorder_folder_bytes 8192");
    has(&text, r#"lazaret_recorder_lost_total{reason="disk"} 1"#);
    has(&text, r#"lazaret_recorder_lost_total{reason="queue"} 0"#);
}

#[test]
fn series_of_removed_destinations_vanish_and_the_others_keep_their_counts() {
    let metrics = Metrics::new();
    let worker = metrics.worker();
    let (cluster, stays) = (ClusterId::from("api"), DestinationId::from("stays"));
    let count = |text: &str| text.lines().filter(|line| !line.starts_with('#')).count();
    let mut first = None;
    for round in 0..500_u32 {
        let name = format!("renamed{round}");
        worker.attempt(&cluster, &stays, OutcomeClass::Ok);
        worker.attempt(&cluster, &DestinationId::from(&*name), OutcomeClass::Ok);
        metrics.probe(&DestinationKey::new("api", &*name), None);
        let text = scrape(&metrics, &view(&["stays", &name]));
        assert_eq!(count(&text), *first.get_or_insert(count(&text)));
        let line = format!(r#"lazaret_attempts_total{{cluster="api",destination="stays",outcome="ok"}} {}"#, round + 1);
        has(&text, &line);
        has(&text, &format!(r#"lazaret_attempts_total{{cluster="api",destination="{name}",outcome="ok"}} 1"#));
    }
    assert!(!scrape(&metrics, &view(&["stays"])).contains("renamed"));
}

#[test]
fn open_metrics_is_sent_when_asked_for() {
    let health = view(&["a"]);
    let view = ScrapeView { health: &health, in_flight: &|_| 0, core_age: Duration::ZERO, is_draining: true };
    assert_eq!(Format::from_accept("text/plain"), Format::Classic);
    let format = Format::from_accept("application/openmetrics-text; version=1.0.0,text/plain;q=0.5");
    let text = Metrics::default().scrape(&view, format);
    assert!(text.ends_with("# EOF\n"), "{text}");
    has(&text, "lazaret_draining 1");
}

#[test]
fn what_is_kept_or_held_back_and_what_shadows_would_do_is_told() {
    let metrics = Metrics::new();
    let mut view = view(&["a", "b"]);
    let cluster = Arc::make_mut(&mut view.clusters[0]);
    cluster.destinations[0].because = Because::Guard;
    cluster.destinations[0].would_eject = vec![model::id::PolicyName::from("Burst")];
    cluster.destinations[1].share = model::ratio::Ratio::new(0.25).unwrap();
    let text = scrape(&metrics, &view);
    has(&text, r#"lazaret_destination_kept{cluster="api",destination="a",because="guard"} 1"#);
    has(&text, r#"lazaret_would_eject{cluster="api",destination="a",policy="Burst"} 1"#);
    has(&text, r#"lazaret_destination_share{cluster="api",destination="a"} 1"#);
    has(&text, r#"lazaret_destination_share{cluster="api",destination="b"} 0.25"#);
    assert!(!text.contains(r#"lazaret_destination_kept{cluster="api",destination="b""#), "{text}");
}
