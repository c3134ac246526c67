//! The description against the router and against what is really written. `UPDATE=1` writes the file anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::Value;
use support::serve;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/openapi.json");

#[test]
fn the_checked_in_file_is_the_description() {
    let text = format!("{}\n", serde_json::to_string_pretty(&control::openapi::description()).unwrap());
    if std::env::var_os("UPDATE").is_some_and(|value| value == "1") {
        std::fs::write(FILE, &text).unwrap();
    }
    let file = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(file == text, "schema/openapi.json differs; run with UPDATE=1 to write it anew");
}

#[test]
fn the_table_is_the_router() {
    let mut routed: Vec<(String, &str)> =
        control::routes::paths().map(|(method, path)| (method.to_string(), path)).collect();
    let mut described: Vec<(String, &str)> =
        control::openapi::paths().map(|(method, path)| (method.to_owned(), path)).collect();
    routed.sort();
    described.sort();
    assert_eq!(routed, described);
}

#[tokio::test]
async fn documents_have_the_keys_described() {
    let served = serve();
    served.transition(1);
    let clusters = served.get("/api/clusters").await.json();
    let health = served.get("/api/health").await.json();
    let checker = served.get("/v1/healthcheck/upstreams/api").await.json();
    let page = served.get("/api/destinations/api/a").await.json();
    let journal = served.get("/api/journal").await.json();
    for (document, value) in [
        ("Clusters", &clusters),
        ("Cluster", &clusters["clusters"][0]),
        ("Destination", &clusters["clusters"][0]["destinations"][0]),
        ("Health", &health),
        ("HealthCluster", &health["clusters"][0]),
        ("HealthNode", &health["clusters"][0]["nodes"][0]),
        ("Checker", &checker),
        ("Node", &checker["nodes"][0]),
        ("Counter", &checker["nodes"][0]["counter"]),
        ("DestinationPage", &page),
        ("EventPage", &journal),
        ("Event", &journal["events"][0]),
        ("Error", &served.get("/nothing").await.json()),
        ("Process", &served.get("/api/process").await.json()),
        ("Condition", &served.get("/livez").await.json()),
    ] {
        let known = control::openapi::keys(document).unwrap();
        let Value::Object(object) = value else { panic!("{document} is {value}") };
        for key in object.keys() {
            assert!(known.contains(&key.as_str()), "{document}: {key} is not described");
        }
    }
}
