//! The part that APISIX has, too, as its readers see it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use control::{Trouble, Vitals};
use model::id::WorkerId;
use serde_json::json;
use support::serve;

#[tokio::test]
async fn a_cluster_is_a_checker() {
    let served = serve();
    let answer = served.get("/v1/healthcheck/upstreams/api").await;
    assert_eq!((answer.status, answer.content_type.as_str()), (200, "application/json"));
    let counter = json!({"success": 1, "http_failure": 0, "tcp_failure": 0, "timeout_failure": 0});
    let zero = json!({"success": 0, "http_failure": 0, "tcp_failure": 0, "timeout_failure": 0});
    let expected = json!({
        "name": "/apisix/upstreams/api", "type": "http",
        "nodes": [
            {"ip": "10.0.0.11", "port": 8000, "hostname": "10.0.0.11", "status": "mostly_unhealthy", "counter": counter},
            {"ip": "b.test", "port": 443, "hostname": "b.test", "status": "unknown", "counter": zero},
        ],
    });
    assert_eq!(answer.json(), expected);
}

#[tokio::test]
async fn every_cluster_is_listed_also_without_checks() {
    let served = serve();
    let list = served.get("/v1/healthcheck").await.json();
    assert_eq!(list[0]["name"], "/apisix/upstreams/api");
    let node = &list[1]["nodes"][0];
    assert_eq!((&node["ip"], &node["port"], &node["status"]), (&json!("[fd00::1]"), &json!(8080), &json!("healthy")));
    served.process.publish(|_, health| health.clusters.clear());
    assert_eq!(served.get("/v1/healthcheck").await.json(), json!({}));
}

#[tokio::test]
async fn errors_have_apisix_texts() {
    let served = serve();
    for (path, status, text) in [
        ("/v1/healthcheck/upstreams/nope", 404, "upstreams[nope] not found"),
        ("/v1/healthcheck/upstreams/a%2Fb", 404, "upstreams[a/b] not found"),
        ("/v1/healthcheck/routes/api", 404, "routes[api] not found"),
        ("/v1/healthcheck/upstreams", 404, "missing src id for src type upstreams"),
        ("/v1/healthcheck/upstreams/", 404, "missing src id for src type upstreams"),
        ("/v1/healthcheck/upstream/api", 400, "invalid src type upstream"),
    ] {
        let answer = served.get(path).await;
        assert_eq!((answer.status, answer.json()), (status, json!({ "error_msg": text })), "{path}");
    }
}

#[tokio::test]
async fn ids_are_decoded() {
    let served = serve();
    served.process.publish(|_, health| std::sync::Arc::make_mut(&mut health.clusters[0]).id = "a/b c".into());
    let answer = served.get("/v1/healthcheck/upstreams/a%2Fb%20c").await;
    assert_eq!((answer.status, answer.json()["name"].clone()), (200, json!("/apisix/upstreams/a/b c")));
}

#[tokio::test]
async fn an_unfit_process_answers_503_but_never_while_it_drains() {
    let served = serve();
    let troubles = vec![Trouble::WorkerStuck(WorkerId(1), Duration::from_millis(2500))];
    served.process.vitals_are(Vitals { is_draining: false, troubles: troubles.clone() });
    for path in ["/v1/healthcheck", "/v1/healthcheck/upstreams/api", "/api/health"] {
        let answer = served.get(path).await;
        let text = json!({"error_msg": "worker 1 has not ticked for 2500 ms"});
        assert_eq!((answer.status, answer.json()), (503, text), "{path}");
    }
    served.process.vitals_are(Vitals { is_draining: true, troubles });
    let list = served.get("/v1/healthcheck").await;
    assert_eq!(list.status, 200);
    for checker in list.json().as_array().unwrap() {
        assert!(checker["nodes"].as_array().unwrap().iter().all(|node| node["status"] == "unhealthy"), "{checker}");
    }
    let document = served.get("/api/health").await.json();
    assert_eq!(
        (&document["draining"], &document["clusters"][1]["nodes"][0]["status"]),
        (&json!(true), &json!("unhealthy"))
    );
}
