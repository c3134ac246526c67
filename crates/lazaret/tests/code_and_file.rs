//! The configuration in code has the file's fields, defaults and validation.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod full;

use std::collections::BTreeSet;
use std::time::Duration;

use full::{FULL, full};
use lazaret::Lazaret;
use lazaret::config::{
    ActiveHealthCheckConfig, ClusterConfig, DestinationConfig, ErrorPageConfig, HealthCheckConfig,
    PassiveHealthCheckConfig, RetryConfig, SessionAffinityConfig, TimeoutsConfig,
};

#[test]
fn what_is_left_out_in_code_gets_the_files_defaults() {
    let code = Lazaret::builder()
        .listener("web", "127.0.0.1:8080")
        .route("all", "/{**rest}", "app")
        .cluster(ClusterConfig {
            cluster_id: "app".to_owned(),
            health_check: Some(HealthCheckConfig {
                active: Some(ActiveHealthCheckConfig::default()),
                passive: Some(PassiveHealthCheckConfig::default()),
                ..HealthCheckConfig::default()
            }),
            session_affinity: Some(SessionAffinityConfig { key_name: "lz".to_owned(), ..Default::default() }),
            retry: Some(RetryConfig::default()),
            timeouts: Some(TimeoutsConfig::default()),
            destinations: vec![DestinationConfig::new("app1", "http://10.0.0.11:8000/")],
            ..ClusterConfig::default()
        })
        .build()
        .unwrap();
    let file = "version: 1\nlisteners: {web: {address: \"127.0.0.1:8080\"}}\nroutes: {all: {match: {path: \
                \"/{**rest}\"}, cluster: app}}\nclusters:\n  app:\n    health_check: {active: {}, passive: {}}\n    \
                session_affinity: {key_name: lz}\n    retry: {}\n    timeouts: {}\n    destinations: {app1: {address: \
                \"http://10.0.0.11:8000/\"}}\n";
    assert_eq!(*code.config(), from_file(file));
}

#[test]
fn what_is_set_in_code_means_what_it_means_in_the_file() {
    assert_eq!(*full().build().unwrap().config(), from_file(FULL));
}

#[test]
fn code_knows_every_key_that_the_file_knows() {
    // `check` writes every key of a configuration, those left out included.
    let loaded = full().build().unwrap();
    let written = config::check::json(loaded.loaded());
    let document: serde_json::Value = serde_json::from_str(&written).unwrap();
    let known: BTreeSet<String> = document["settings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|setting| setting["origin"].as_str().is_some_and(|origin| origin.starts_with("default")))
        .map(|setting| setting["path"].as_str().unwrap().to_owned())
        .collect();
    // The full configuration leaves out nothing but these, which only a program's surroundings decide.
    let left_out: BTreeSet<String> = ["control.names", "control.users", "control.token_file"].map(str::to_owned).into();
    assert_eq!(known, left_out);
}

#[test]
fn mistakes_in_code_are_refused_with_the_files_words() {
    let cluster = |interval| ClusterConfig {
        cluster_id: "app".to_owned(),
        health_check: Some(HealthCheckConfig {
            active: Some(ActiveHealthCheckConfig {
                interval: Some(interval),
                path: Some("health".to_owned()),
                ..Default::default()
            }),
            ..Default::default()
        }),
        destinations: vec![DestinationConfig::new("app1", "ftp://x/")],
        ..Default::default()
    };
    let error = Lazaret::builder()
        .listener("web", "127.0.0.1:8080")
        .route("all", "/{**rest}", "nowhere")
        .cluster(cluster(Duration::ZERO))
        .build()
        .err()
        .unwrap()
        .to_string();
    for word in ["interval", "health", "ftp://x/", "nowhere"] {
        assert!(error.contains(word), "{word} is missing in:\n{error}");
    }
    let twice = Lazaret::builder()
        .listener("web", "127.0.0.1:8080")
        .cluster(ClusterConfig { cluster_id: "app".to_owned(), ..Default::default() })
        .cluster(ClusterConfig { cluster_id: "app".to_owned(), ..Default::default() });
    assert!(twice.build().is_err(), "an id that stands twice is refused");
}

#[test]
fn a_page_in_a_file_is_read_when_code_is_built() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("soon.html");
    let builder = || {
        Lazaret::builder().listener("web", "127.0.0.1:8080").error_page(ErrorPageConfig {
            status: "503".to_owned(),
            file: Some(path.display().to_string()),
            ..ErrorPageConfig::default()
        })
    };
    let error = builder().build().err().unwrap().to_string();
    assert!(error.contains("soon.html` cannot be used"), "{error}");
    std::fs::write(&path, "soon").unwrap();
    assert_eq!(&*builder().build().unwrap().config().answers.error_pages[0].body, "soon");
}

fn from_file(text: &str) -> model::config::Config {
    let names = config::PolicyNames::default();
    match config::load("file", text.as_bytes(), config::FileKind::Native, &names, None) {
        Ok(loaded) => loaded.config,
        Err(report) => panic!("{}", config::render(&report.source, &report.diagnostics, config::Style::Plain)),
    }
}
