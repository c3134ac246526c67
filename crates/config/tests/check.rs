//! What `check` tells: values with origins, probe URLs, detection times, warnings.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod golden;

use std::time::Duration;

use config::{FileKind, Loaded, PolicyNames, Style, check, load, render};

fn read(name: &str, text: &str) -> Loaded {
    load(name, text.as_bytes(), FileKind::Auto, &PolicyNames::default(), None).unwrap_or_else(|r| panic!("{r}"))
}

const FIXTURES: [(&str, &str); 7] = [
    ("reference.yaml", include_str!("fixtures/reference.yaml")),
    ("nginx-article.yaml", include_str!("fixtures/nginx-article.yaml")),
    ("active.json", include_str!("fixtures/yarp/active.json")),
    ("passive.json", include_str!("fixtures/yarp/passive.json")),
    ("available.json", include_str!("fixtures/yarp/available.json")),
    ("lazaret.yaml", include_str!("../../../examples/lazaret.yaml")),
    ("tls.yaml", include_str!("../../../examples/tls.yaml")),
];

#[test]
fn what_is_written_comes_down_to_the_same_configuration() {
    for (name, text) in FIXTURES {
        let loaded = read(name, text);
        let written = check::text(&loaded);
        let again = load("written.yaml", written.as_bytes(), FileKind::Native, &PolicyNames::default(), None)
            .unwrap_or_else(|report| panic!("{name}: {report}\n{written}"));
        assert_eq!(again.config, loaded.config, "{name}");
    }
}

#[test]
fn the_first_yarp_sample_is_written_with_origins_and_probe_urls() {
    golden::check("check.txt", |name, input| {
        let loaded = read(name, input);
        check::text(&loaded) + &render(&loaded.source, &loaded.warnings, Style::Plain)
    });
}

#[test]
fn warnings_are_drawn_at_their_places() {
    golden::check("warnings.txt", |name, input| {
        let file = if name.starts_with("yarp") { "appsettings.json" } else { "lazaret.yaml" };
        let loaded = read(file, input);
        render(&loaded.source, &loaded.warnings, Style::Plain)
    });
}

#[test]
fn json_holds_settings_clusters_and_warnings() {
    let loaded = read("active.json", include_str!("fixtures/yarp/active.json"));
    let json: serde_json::Value = serde_json::from_str(&check::json(&loaded)).unwrap();
    assert_eq!(json["ok"], true);
    let settings = json["settings"].as_array().unwrap();
    let threshold = settings.iter().find(|s| s["path"] == "clusters.cluster1.health_check.active.threshold").unwrap();
    assert_eq!(threshold["value"], "3");
    assert_eq!(threshold["origin"], "metadata, active.json:14");
    let probes = &json["clusters"][0]["probes"];
    assert_eq!(probes[0]["url"], "https://localhost:10000/api/health?foo=bar");
    assert_eq!(probes[1]["url"], "http://localhost:10020/api/health?foo=bar");
    assert_eq!(json["clusters"][0]["worst_detection"]["hang"], "41s500ms");
}

#[test]
fn refusals_as_json_hold_every_error() {
    let report = load("x", b"a: 1\nb: 2\n", FileKind::Native, &PolicyNames::default(), None).unwrap_err();
    let json: serde_json::Value = serde_json::from_str(&check::refused_json(&report)).unwrap();
    assert_eq!(json["ok"], false);
    assert_eq!(json["errors"].as_array().unwrap().len(), 2);
    assert_eq!(json["errors"][1]["position"]["line"], 2);
}

#[test]
fn the_worst_detection_time_follows_from_the_schedule() {
    let of = |body: &str| {
        let text = format!("clusters: {{a: {{health_check: {{active: {body}}}}}}}");
        let loaded = read("t.yaml", &text);
        check::facts::worst_detection(loaded.config.clusters[0].health_check.active.as_ref().unwrap()).unwrap()
    };
    // Interval and jitter, a timeout, the confirm interval, another timeout.
    assert_eq!(of("{}").hang, Duration::from_millis(5250 + 2000 + 1000 + 2000));
    assert_eq!(of("{}").refused, Duration::from_millis(5250 + 250));
    assert_eq!(of("{threshold: 1}").hang, Duration::from_millis(5250 + 2000));
    // Early probes keep a distance of one second.
    assert_eq!(of("{threshold: 3}").refused, Duration::from_millis(5250 + 250 + 1000));
    // The interval is shorter than the confirm interval.
    assert_eq!(of("{interval: 100ms, timeout: 50ms}").refused, Duration::from_millis(105 + 105));
}

#[test]
fn an_ejection_period_that_nobody_set_is_told() {
    let written = |compat: &str, passive: &str| {
        let destinations = "destinations: { a: { address: \"http://10.0.0.1/\" } }";
        let cluster = format!("compat: {compat}, health_check: {{ passive: {{ {passive} }} }}, {destinations}");
        check::text(&read("lazaret.yaml", &format!("clusters: {{ app: {{ {cluster} }} }}\n")))
    };
    let long = "policies: [{ name: TransportFailureRate, window: 5m }]";
    assert!(written("none", long).contains("# the policy's own: 1m\n"), "{}", written("none", long));
    assert!(written("yarp", long).contains("# the policy's own: 5m\n"), "{}", written("yarp", long));
    let set = written("none", "policies: [TransportFailureRate], reactivation_period: 2m");
    assert!(!set.contains("own:"), "{set}");
}
