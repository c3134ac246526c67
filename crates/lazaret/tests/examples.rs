//! Each example of the library does what it says, against real destinations.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

#[path = "../examples/active_policy.rs"]
mod active_policy;
#[path = "../examples/available_policy.rs"]
mod available_policy;
#[path = "../examples/clusters_in_code.rs"]
mod clusters_in_code;
#[path = "../examples/failure_rate_options.rs"]
mod failure_rate_options;
#[path = "../examples/passive_policy.rs"]
mod passive_policy;
#[path = "../examples/pipeline.rs"]
mod pipeline;
#[path = "../examples/probe_request.rs"]
mod probe_request;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use lazaret::{Builder, DestinationKey, Health, Pipeline, Running};
use model::health::HealthPair;
use model::passive::{PassivePolicy, TransportFailureRate};
use patients::{Behaviour, Patient};

#[test]
fn an_active_policy_of_ones_own_judges_each_probe() {
    let ward = Ward::open();
    let patient = ward.patient("one");
    let running = start(active_policy::build(&patient.url()));
    wait_for(|| pair(&running, 0).active == Health::Healthy);
    patient.set(Behaviour::Fail(404));
    wait_for(|| pair(&running, 0).active == Health::Unhealthy);
    patient.set(Behaviour::default());
    wait_for(|| pair(&running, 0).active == Health::Healthy);
    assert_eq!(pair(&running, 0).passive, Health::Unknown, "active never writes passive");
}

#[test]
fn a_passive_policy_of_ones_own_ejects_at_the_first_failure() {
    let ward = Ward::open();
    let (one, two) = (ward.patient("one"), ward.patient("two"));
    one.set(Behaviour::Die);
    let running = start(passive_policy::build(&[&one.url(), &two.url()]));
    let to = running.address("web").unwrap();
    wait_for(|| {
        assert_eq!(get(to), 200, "the other destination answers");
        pair(&running, 0).passive == Health::Unhealthy
    });
    assert_eq!(pair(&running, 1).passive, Health::Unknown);
}

#[test]
fn a_probe_request_of_ones_own_asks_for_its_path() {
    let ward = Ward::open();
    let patient = ward.patient("one");
    let running = start(probe_request::build(&patient.url()));
    // The patient counts /health apart: probes that count as requests went to the builder's own path.
    wait_for(|| patient.counts().requests >= 3);
    assert_eq!(patient.counts().probes, 0);
    assert_eq!(pair(&running, 0).active, Health::Healthy);
}

#[test]
fn clusters_in_code_have_the_values_they_say() {
    let lazaret = clusters_in_code::build().build().unwrap();
    let clusters = &lazaret.config().clusters;
    let active = clusters[0].health_check.active.as_ref().unwrap();
    assert_eq!((active.interval, active.timeout), (Duration::from_secs(10), Duration::from_secs(10)));
    assert_eq!(active.request.query.as_deref(), Some("?foo=bar"));
    let passive = clusters[1].health_check.passive.as_ref().unwrap();
    assert_eq!(passive.reactivation_period, Some(Duration::from_secs(120)));
    let half = TransportFailureRate { rate_limit: 0.5, ..TransportFailureRate::default() };
    assert_eq!(passive.policies, [PassivePolicy::TransportFailureRate(half)]);
    assert_eq!(
        clusters[2].health_check.available_destinations_policy,
        model::available::AvailablePolicy::HealthyOrPanic
    );
}

#[test]
fn options_of_the_failure_rate_hold_for_all_clusters() {
    let mut cluster = clusters_in_code::available();
    let check = cluster.health_check.as_mut().and_then(|check| check.passive.as_mut()).unwrap();
    check.policies = vec![lazaret::config::PassivePolicyConfig::named(lazaret::policies::TRANSPORT_FAILURE_RATE)];
    let lazaret = failure_rate_options::build()
        .listener("web", "127.0.0.1:0")
        .route("all", "/{**rest}", "cluster3")
        .cluster(cluster)
        .build()
        .unwrap();
    let passive = lazaret.config().clusters[0].health_check.passive.clone().unwrap();
    let expected = TransportFailureRate { rate_limit: 0.5, window: Duration::from_secs(30), minimum: 5 };
    assert_eq!(passive.policies, [PassivePolicy::TransportFailureRate(expected)]);
}

#[test]
fn a_pipeline_without_passive_checks_is_refused_where_a_cluster_has_them() {
    let whole = Pipeline::new().affinity_lookup().load_balancing().affinity_setting().passive_health_checks();
    assert!(pipeline::build(whole).build().is_ok());
    let without = Pipeline::new().affinity_lookup().load_balancing().affinity_setting();
    let error = pipeline::build(without).build().err().unwrap().to_string();
    assert!(error.contains("cluster1") && error.contains("passive_health_checks()"), "{error}");
    let without_balancing = Pipeline::new().passive_health_checks();
    assert!(pipeline::build(without_balancing).build().is_err());
}

#[test]
fn an_availability_policy_of_ones_own_keeps_two_destinations() {
    let ward = Ward::open();
    let patients = ["one", "two", "three"].map(|name| ward.patient(name));
    let urls: Vec<_> = patients.iter().map(|patient| patient.url()).collect();
    let running = start(available_policy::build(&urls.iter().map(String::as_str).collect::<Vec<_>>()));
    for id in ["destination1", "destination2", "destination3"] {
        running.health().set_passive(&DestinationKey::new("cluster1", id), Health::Unhealthy, None);
    }
    let view = running.view();
    assert_eq!(view.clusters[0].available, [0, 1]);
    assert!(view.clusters[0].destinations.iter().all(|d| d.health.passive == Health::Unhealthy));
}

#[test]
fn both_values_can_be_set_from_outside() {
    let ward = Ward::open();
    let patient = ward.patient("one");
    let running = start(active_policy::build(&patient.url()));
    wait_for(|| pair(&running, 0).active == Health::Healthy);
    let key = DestinationKey::new("cluster1", "destination1");
    running.health().set_active(&key, Health::Unhealthy);
    // It stands until a probe says otherwise, which may be at once.
    wait_for(|| pair(&running, 0).active == Health::Healthy);
    running.health().set_passive(&key, Health::Unhealthy, None);
    assert_eq!(pair(&running, 0).passive, Health::Unknown, "passive checks are off: their value stays Unknown");
}

/// Destinations and the runtime that carries them.
struct Ward(tokio::runtime::Runtime);

impl Ward {
    fn open() -> Self {
        Self(tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap())
    }

    fn patient(&self, name: &str) -> Patient {
        self.0.block_on(Patient::start(name)).unwrap()
    }
}

fn start(builder: Builder) -> Running {
    builder.workers(1).control("127.0.0.1:0").control_socket("off").build().unwrap().start().unwrap()
}

fn pair(running: &Running, index: usize) -> HealthPair {
    running.view().clusters[0].destinations[index].health
}

fn get(to: SocketAddr) -> u16 {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0)
}

fn wait_for(mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(10), "not within 10 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}
