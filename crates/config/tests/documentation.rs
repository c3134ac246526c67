//! The documentation against the program: its YAML reads, and its table of defaults is the program's.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use config::defaults::Defaults;
use config::origin::DefaultsOf;
use config::{FileKind, PolicyNames, load, load_rhi, timespan};
use model::active::ProbeStart;
use model::config::Drain;
use model::listener::Http2Limits;

const CONFIGURATION: &str = include_str!("../../../docs/configuration.md");

/// The text between each pair of fences.
fn yaml_blocks(text: &'static str) -> Vec<&'static str> {
    text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn every_yaml_block_of_the_documentation_reads() {
    let native = [CONFIGURATION, include_str!("../../../README.md")].map(yaml_blocks).concat();
    assert!(native.len() >= 2);
    for block in native.iter().filter(|block| !block.contains("vips:")) {
        let loaded = load("docs", block.as_bytes(), FileKind::Native, &PolicyNames::default(), None);
        loaded.unwrap_or_else(|report| panic!("{report}\n{block}"));
    }
    let rhi = [include_str!("../../../docs/rhi.md"), include_str!("../../../README.md")].map(yaml_blocks).concat();
    for block in rhi.iter().filter(|block| block.contains("vips:")) {
        load_rhi("docs", block.as_bytes()).unwrap_or_else(|report| panic!("{report}\n{block}"));
    }
}

#[test]
fn the_key_reference_shows_defaults() {
    let block = yaml_blocks(CONFIGURATION)[0];
    let shown = load("docs", block.as_bytes(), FileKind::Native, &PolicyNames::default(), None).unwrap().config;
    let bare = "listeners: {web: {address: '127.0.0.1:8080'}}
clusters: {api: {health_check: {active: {}, passive: {}}}}";
    let bare = load("bare", bare.as_bytes(), FileKind::Native, &PolicyNames::default(), None).unwrap().config;
    let (shown_api, api) = (&shown.clusters[0], &bare.clusters[0]);
    assert_eq!(shown_api.retry, api.retry);
    assert_eq!(shown_api.timeouts, api.timeouts);
    assert_eq!(shown_api.tls, api.tls);
    assert_eq!(shown_api.health_check.active, api.health_check.active);
    assert_eq!(shown_api.health_check.passive, api.health_check.passive);
    assert_eq!(shown_api.health_check.guards, api.health_check.guards);
    assert_eq!((&shown.dns, shown_api.family, &shown_api.outbound), (&bare.dns, api.family, &api.outbound));
    assert_eq!(shown.listeners[0].limits, bare.listeners[0].limits);
    assert_eq!(shown.listeners[0].http2, bare.listeners[0].http2);
    assert_eq!((shown.drain, shown.access_log, shown.workers), (bare.drain, bare.access_log, bare.workers));
}

#[test]
fn the_table_of_defaults_is_the_programs() {
    let documented = table();
    let program = [DefaultsOf::Native, DefaultsOf::Yarp].map(column);
    let mut compared = 0;
    for (name, cells) in &documented {
        for (column, cell) in program.iter().zip(cells) {
            let value = &column.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no value {name}")).1;
            let same = match (timespan::parse(cell), timespan::parse(value)) {
                (Ok(a), Ok(b)) => a == b,
                _ => cell == value,
            };
            assert!(same, "{name}: documented {cell}, in the program {value}");
            compared += 1;
        }
    }
    assert_eq!(compared, 2 * program[0].len(), "every default of the program is documented");
}

/// Rows of the documented table: the name, then native and YARP.
fn table() -> Vec<(&'static str, [&'static str; 2])> {
    let section = CONFIGURATION.split("## Defaults").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        (cells[0], [cells[1], cells[2]])
    })
    .collect()
}

fn column(whose: DefaultsOf) -> Vec<(&'static str, String)> {
    let d = Defaults::of(whose);
    let (limits, timeouts) = (d.limits, d.timeouts);
    let span = |span: Duration| timespan::format(span);
    let kib = |bytes: usize| format!("{}KiB", bytes / 1024);
    let none = |number: Option<u64>| number.map_or("none".to_owned(), |n| n.to_string());
    vec![
        ("request header in total", span(limits.header_timeout)),
        ("client keepalive", span(limits.keepalive)),
        ("TLS handshake", span(limits.tls_handshake)),
        ("request line", kib(limits.request_line)),
        ("header bytes", kib(limits.header_bytes)),
        ("header fields", limits.header_fields.to_string()),
        ("request body", none(limits.body)),
        ("h2 streams per client connection", Http2Limits::default().streams.to_string()),
        ("connect", span(timeouts.connect)),
        ("idle", span(timeouts.idle)),
        ("tunnel idle", span(timeouts.tunnel_idle)),
        ("upstream pool idle", span(timeouts.pool_idle)),
        ("upstream pool size", none(timeouts.pool_size.map(u64::from))),
        ("probe interval", span(d.probe_interval)),
        ("probe timeout", span(d.probe_timeout)),
        ("probe threshold", d.probe_threshold.to_string()),
        ("confirm interval", span(d.confirm_interval)),
        (
            "probe start",
            match d.probe_start {
                ProbeStart::ProbeFirst => "probe_first".to_owned(),
                ProbeStart::Eligible => "eligible".to_owned(),
            },
        ),
        ("retry attempts", d.retry.attempts.to_string()),
        ("grace on SIGTERM", span(Drain::default().grace)),
        ("old process after an upgrade", span(Drain::default().upgrade_grace)),
    ]
}
