//! rhi.yaml: the documented examples, the defaults, and what is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use config::load_rhi;
use model::vip::{Condition, OnExit, RhiConfig, Unreachable};

fn read(text: &str) -> RhiConfig {
    load_rhi("rhi.yaml", text.as_bytes()).unwrap_or_else(|report| panic!("{report}")).config
}

#[test]
fn the_documented_example_reads() {
    let config = read(include_str!("fixtures/rhi/example.yaml"));
    assert_eq!(config.poll_interval, Duration::from_secs(3));
    assert_eq!(config.control_url, "http://127.0.0.1:9090");
    assert_eq!(config.timeout, Duration::from_secs(5));
    assert_eq!(config.interface, "rhi0");
    assert_eq!(config.main_log.unwrap().to_str(), Some("/var/log/rhi/main.log"));
    assert_eq!(config.failure_policy.control_api_unreachable, Unreachable::Withdraw);
    assert_eq!(config.failure_policy.max_failed_polls, 3);
    let shown: Vec<_> = config
        .vips
        .iter()
        .map(|vip| (vip.address.to_string(), vip.description.as_str(), vip.upstreams.len(), vip.condition))
        .collect();
    assert_eq!(
        shown,
        [
            ("10.0.0.100".to_owned(), "Production API", 1, Condition::All),
            ("10.0.0.101".to_owned(), "Admin portal", 2, Condition::All),
            ("10.0.0.102".to_owned(), "Public app", 2, Condition::Any),
        ]
    );
    assert_eq!(config.vips[0].upstreams[0].to_string(), "upstreams/api");
}

#[test]
fn the_documented_sections_read_as_one_file() {
    let config = read(include_str!("fixtures/rhi/sections.yaml"));
    assert_eq!(config.vips.len(), 3);
    assert!(config.vips.iter().all(|vip| vip.condition == Condition::All));
}

#[test]
fn the_commented_example_reads() {
    assert_eq!(read(include_str!("../../../examples/rhi.yaml")).vips.len(), 2);
}

#[test]
fn three_keys_are_enough() {
    let config = read("interface: rhi0\nvips:\n  - {address: fd00::1, upstreams: [api]}\n");
    assert_eq!(config.poll_interval, Duration::from_secs(3));
    assert_eq!(config.timeout, Duration::from_secs(5));
    assert_eq!(config.failure_policy.max_failed_polls, 3);
    assert_eq!(config.healthy_states, ["healthy", "mostly_healthy"]);
    assert_eq!(config.on_exit, OnExit::Withdraw);
    assert_eq!((config.main_log, config.error_log), (None, None));
    assert_eq!(config.vips[0].description, "");
    assert_eq!(config.status_socket.to_str(), Some("/run/lazaret-rhi/status.sock"));
}

#[test]
fn bare_numbers_are_seconds_and_ids_come_in_three_spellings() {
    let config = read(
        "apisix_poll_interval: 2
apisix_timeout: 1.5
interface: rhi0
vips:
  - address: 10.0.0.1/32
    upstreams: [api, /upstreams/1, /apisix/services/a.b]
",
    );
    assert_eq!(config.poll_interval, Duration::from_secs(2));
    assert_eq!(config.timeout, Duration::from_millis(1500));
    let shown: Vec<_> = config.vips[0].upstreams.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["upstreams/api", "upstreams/1", "services/a.b"]);
}
