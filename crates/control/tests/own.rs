//! Our own part: documents, long poll, events, access, limits.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use control::{Command, Listeners, RecordReply, ReloadReply, Vitals};
use model::config::{Control, ControlSocket};
use model::event::{Event, EventKind};
use model::health::Health;
use model::id::Revision;
use model::time::Timestamp;
use model::view::NodeStatus;
use serde_json::{Value, json};
use support::{PATIENCE, read_until, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn the_health_document_says_who_judges_and_how_fresh_it_is() {
    let served = serve();
    let document = served.get("/api/health").await.json();
    let expected = json!({
        "instance": "5eed", "revision": 0, "core_age_ms": 10, "draining": false,
        "clusters": [
            {"id": "api", "nodes": [
                {"id": "a", "ip": "10.0.0.11", "port": 8000, "status": "mostly_unhealthy", "probed": "active", "verdict_age_ms": 2000},
                {"id": "b", "ip": "b.test", "port": 443, "status": "unknown", "probed": "active", "verdict_age_ms": null},
            ]},
            {"id": "cluster1", "nodes": [
                {"id": "cluster1/destination1", "ip": "[fd00::1]", "port": 8080, "status": "healthy", "probed": "none", "verdict_age_ms": null},
            ]},
        ],
    });
    assert_eq!(document, expected);
}

#[tokio::test]
async fn over_tcp_a_name_that_nobody_has_set_is_refused() {
    let served = serve();
    for host in ["localhost:9090", "127.0.0.1", "[::1]:9090", "LB1.test:9090"] {
        assert_eq!(served.ask("GET", "/api/health", &[("host", host)]).await.status, 200, "{host}");
    }
    for (method, path) in [("GET", "/api/health"), ("GET", "/metrics"), ("GET", "/nowhere"), ("POST", "/api/reload")] {
        let answer = served.ask(method, path, &[("host", "evil.test:9090")]).await;
        assert_eq!(answer.status, 421, "{path}");
        let text = answer.json()["error_msg"].as_str().unwrap().to_owned();
        assert!(text.contains("evil.test:9090") && text.contains("control.names"), "{text}");
    }
    // The socket is reached by a path, whatever the request says.
    let mut stream = support::unix(&served.socket).await;
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
}

#[tokio::test]
async fn a_waiting_reader_gets_blanks_and_then_the_newer_document() {
    let served = serve();
    let mut body = served.open("GET", "/api/health?after=0&wait=60s", &[]).await.into_body();
    let blank = read_until(&mut body, |text| !text.is_empty()).await;
    assert_eq!(blank, " ");
    // The event is known before the snapshot that includes it: the reader must not get the old one.
    served.transition(1);
    tokio::task::yield_now().await;
    served.process.publish(|_, health| health.revision = Revision(1));
    let text = read_until(&mut body, |text| text.ends_with('\n')).await;
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["revision"], 1);
}

#[tokio::test]
async fn a_reader_whose_wait_ends_gets_the_same_document() {
    let served = serve();
    let answer = served.get("/api/health?after=0&wait=100ms").await;
    assert_eq!((answer.status, answer.json()["revision"].clone()), (200, json!(0)));
    // A revision that this process never gave comes from another one: the answer is immediate.
    let begun = Instant::now();
    served.get("/api/health?after=77&wait=60s").await;
    assert!(begun.elapsed() < PATIENCE);
}

#[tokio::test]
async fn bad_parameters_are_named() {
    let served = serve();
    for (path, text) in [
        ("/api/health?after=x", "after is a whole number, not `x`"),
        ("/api/health?wait=20", "wait is a time such as 20s or 500ms, not `20`"),
        ("/api/health?wait=61s", "wait is 60 s at most"),
        ("/api/health?aftr=1", "unknown parameter aftr; there are: after, wait"),
        ("/api/transitions?limit=0", "limit is a number from 1 to 1000"),
        ("/api/events?after=-1", "after is a whole number, not `-1`"),
        ("/api/destinations/api/%zz", "`%zz` has a % without two hexadecimal digits"),
    ] {
        let answer = served.get(path).await;
        assert_eq!((answer.status, answer.json()), (400, json!({ "error_msg": text })), "{path}");
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_json() {
    let served = serve();
    let answer = served.get("/nothing").await;
    assert_eq!((answer.status, answer.json()), (404, json!({"error_msg": "no such path"})));
    let answer = served.ask("DELETE", "/api/clusters", &[]).await;
    assert_eq!((answer.status, answer.json()), (405, json!({"error_msg": "no such method on this path"})));
    assert_eq!(served.ask("HEAD", "/api/clusters", &[]).await.status, 200);
}

#[tokio::test]
async fn clusters_show_values_checks_and_the_last_transition() {
    let served = serve();
    let document = served.get("/api/clusters").await.json();
    let cluster = &document["clusters"][0];
    assert_eq!(
        cluster["active"],
        json!({"kind": "http", "policy": "ConsecutiveFailures", "interval_ms": 5000, "timeout_ms": 2000})
    );
    assert_eq!((&cluster["healthy"], &cluster["available"]), (&json!(0), &json!(1)));
    let sick = &cluster["destinations"][0];
    assert_eq!((&sick["active"], &sick["because"]), (&json!("unhealthy"), &json!("unhealthy")));
    assert_eq!(sick["next_probe"]["in_ms"], 1000);
    assert_eq!(sick["last_transition"]["evidence"]["last"][0]["status"], 500);
}

#[tokio::test]
async fn a_destination_is_found_by_its_encoded_id() {
    let served = serve();
    let page = served.get("/api/destinations/cluster1/cluster1%2Fdestination1").await.json();
    assert_eq!(page["cluster"]["destinations"][0]["address"], "http://[fd00::1]:8080/");
    assert_eq!(page["cluster"]["total"], 1);
    served.transition(1);
    let page = served.get("/api/destinations/api/a").await.json();
    assert_eq!((&page["recent"][0]["to"], &page["recent"][0]["cause"]), (&json!("unhealthy"), &json!("probe")));
    let counts = ["total", "healthy", "available"].map(|key| page["cluster"][key].clone());
    assert_eq!(counts, [2, 0, 1], "those of the whole cluster");
    let missing = served.get("/api/destinations/api/z").await;
    assert_eq!(missing.status, 404);
    let words = missing.json()["error_msg"].as_str().unwrap_or_default().to_owned();
    assert!(words.starts_with("destination z not found in cluster api; there are: a"), "{words}");
    assert_eq!(served.get("/api/destinations/z/a").await.status, 404);
}

#[tokio::test]
async fn past_events_are_paged_and_filtered() {
    let served = serve();
    served.transition(1);
    let config = EventKind::Config { applied: true, summary: "1 cluster".to_owned() };
    served.append(Event { revision: Revision(2), at: Timestamp::from_secs(91), kind: config });
    served.transition(3);
    let numbers = |page: &Value| {
        page["events"].as_array().unwrap().iter().map(|event| event["revision"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&served.get("/api/journal").await.json()), [1, 2, 3]);
    assert_eq!(numbers(&served.get("/api/journal?after=1&limit=1").await.json()), [2]);
    assert_eq!(numbers(&served.get("/api/transitions?limit=1").await.json()), [3]);
    assert_eq!(numbers(&served.get("/api/transitions?cluster=cluster1").await.json()), [0_u64; 0]);
    assert_eq!(numbers(&served.get("/api/journal?cluster=api&destination=a").await.json()), [1, 3]);
    let page = served.get("/api/journal?after=9").await.json();
    assert_eq!((&page["lost"], &page["revision"]), (&json!(true), &json!(3)));
}

#[tokio::test]
async fn events_are_streamed_with_ids_and_resume_after_the_last_one() {
    let served = serve();
    served.transition(1);
    let mut body = served.open("GET", "/api/events?after=0", &[]).await.into_body();
    let first = read_until(&mut body, |text| text.ends_with("\n\n")).await;
    let lines: Vec<&str> = first.lines().collect();
    assert_eq!(&lines[..2], ["id: 5eed-1", "event: transition"]);
    let data: Value = serde_json::from_str(lines[2].strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(
        (&data["cluster"], &data["destination"], &data["active"]),
        (&json!("api"), &json!("a"), &json!("unhealthy"))
    );
    assert_eq!((&data["available"], &data["because"]), (&json!(false), &json!("unhealthy")));
    assert_eq!((&data["cause"], &data["policy"]), (&json!("probe"), &json!("ConsecutiveFailures")));
    // Whatever becomes of the destination later: a reader that comes late learns how it stood then.
    served.process.publish(|_, health| {
        let mut cluster = (*health.clusters[0]).clone();
        let one = &mut cluster.destinations[0];
        (one.health.active, one.status, one.is_available) = (Health::Healthy, NodeStatus::Healthy, true);
        health.clusters[0] = Arc::new(cluster);
    });
    let late = served.get("/api/journal?after=0").await.json();
    assert_eq!(late["events"][0], data);
    served.append(Event { revision: Revision(2), at: Timestamp::from_secs(92), kind: EventKind::Draining });
    let second = read_until(&mut body, |text| text.ends_with("\n\n")).await;
    assert!(second.starts_with("id: 5eed-2\nevent: draining\ndata: {"), "{second}");

    let mut body = served.open("GET", "/api/events?after=0", &[("last-event-id", "5eed-1")]).await.into_body();
    let resumed = read_until(&mut body, |text| text.ends_with("\n\n")).await;
    assert!(resumed.starts_with("id: 5eed-2\n"), "{resumed}");
}

#[tokio::test]
async fn a_reader_of_another_instance_or_of_the_far_past_is_told_once_and_goes_on() {
    let served = serve();
    for revision in 1..=telemetry::journal::CAPACITY as u64 + 2 {
        served.append(Event { revision: Revision(revision), at: Timestamp::ZERO, kind: EventKind::Draining });
    }
    for (path, id) in [("/api/events", "0ther-5"), ("/api/events", "nonsense"), ("/api/events", "5eed-1")] {
        let mut body = served.open("GET", path, &[("last-event-id", id)]).await.into_body();
        let lost = read_until(&mut body, |text| text.ends_with("\n\n")).await;
        assert!(lost.starts_with("id: 5eed-8194\nevent: lost\ndata: {"), "{id}: {lost}");
    }
    let mut body = served.open("GET", "/api/events", &[("last-event-id", "0ther-5")]).await.into_body();
    read_until(&mut body, |text| text.ends_with("\n\n")).await;
    let comment = read_until(&mut body, |text| text.ends_with("\n\n")).await;
    assert!(comment.starts_with(':'), "{comment}");
    let metrics = served.get("/metrics").await.text;
    assert!(metrics.contains("\nlazaret_journal_lost_total 4\n"), "{metrics}");
}

#[tokio::test]
async fn reload_needs_the_socket_or_the_token() {
    let mut served = serve();
    let refused = served.ask("POST", "/api/reload", &[]).await;
    assert_eq!(refused.status, 401);
    assert!(refused.json()["error_msg"].as_str().unwrap().contains("unix socket"));
    assert_eq!(served.ask("POST", "/api/reload", &[("authorization", "Bearer wrong")]).await.status, 401);

    let mut commands = std::mem::replace(&mut served.commands, tokio::sync::mpsc::channel(1).1);
    let program = tokio::spawn(async move {
        for reply in [
            ReloadReply::Applied { summary: "2 clusters".to_owned() },
            ReloadReply::Refused { report: "lazaret.yaml:1:1: no".to_owned() },
            ReloadReply::Busy,
        ] {
            let Some(Command::Reload { reply: answer }) = commands.recv().await else { panic!("no reload") };
            answer.send(reply).unwrap();
        }
    });
    let applied = served.ask("POST", "/api/reload", &[("authorization", "Bearer s3cret")]).await;
    assert_eq!((applied.status, applied.json()), (200, json!({"applied": true, "summary": "2 clusters"})));
    let refused = served.ask_unix("POST", "/api/reload").await;
    assert_eq!((refused.status, refused.json()["report"].clone()), (422, json!("lazaret.yaml:1:1: no")));
    assert_eq!(served.ask_unix("POST", "/api/reload").await.status, 409);
    program.await.unwrap();
    // The program is gone.
    assert_eq!(served.ask_unix("POST", "/api/reload").await.status, 409);
}

#[tokio::test]
async fn a_recording_is_given_to_who_may_change_things_and_to_nobody_else() {
    let mut served = serve();
    assert_eq!(served.ask("POST", "/api/recording", &[]).await.status, 401);
    let mut commands = std::mem::replace(&mut served.commands, tokio::sync::mpsc::channel(1).1);
    let program = tokio::spawn(async move {
        for reply in [RecordReply::Saved(b"bytes".to_vec()), RecordReply::Nothing("it is off"), RecordReply::Busy] {
            let Some(Command::Record { reply: answer, .. }) = commands.recv().await else { panic!("no recording") };
            answer.send(reply).unwrap();
        }
    });
    let saved = served.ask_unix("POST", "/api/recording").await;
    assert_eq!((saved.status, saved.text.as_str()), (200, "bytes"));
    let nothing = served.ask_unix("POST", "/api/recording").await;
    assert_eq!((nothing.status, nothing.json()["error_msg"].clone()), (409, json!("it is off")));
    assert_eq!(served.ask_unix("POST", "/api/recording").await.status, 409);
    program.await.unwrap();
}

#[tokio::test]
async fn readiness_comes_with_the_first_probes_and_stays_over_reloads() {
    let served = serve();
    assert_eq!(served.get("/livez").await.status, 200);
    assert_eq!(served.get("/readyz").await.status, 503);
    served.process.publish(|_, health| {
        Arc::make_mut(&mut health.clusters[0]).destinations[1].probed_at = Some(Timestamp::from_secs(99));
    });
    assert_eq!(served.get("/readyz").await.status, 200);
    served.process.publish(|_, health| Arc::make_mut(&mut health.clusters[0]).destinations[1].probed_at = None);
    assert_eq!(served.get("/readyz").await.status, 200);
    served.process.vitals_are(Vitals { is_draining: true, troubles: vec![] });
    assert_eq!(served.get("/readyz").await.status, 503);
}

#[tokio::test]
async fn metrics_show_the_snapshot() {
    let served = serve();
    let answer = served.get("/metrics").await;
    assert!(answer.content_type.starts_with("text/plain; version=0.0.4"), "{}", answer.content_type);
    let line = r#"lazaret_destination_health{cluster="api",destination="a",check="active",health="unhealthy"} 1"#;
    assert!(answer.text.lines().any(|one| one == line), "{}", answer.text);
}

#[tokio::test]
async fn requests_are_bounded() {
    let served = serve();
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let head = format!("GET /livez HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "x".repeat(64 * 1024));
    // The server may close before everything is written.
    let _ = stream.write_all(head.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    // A client that says nothing holds nobody up.
    let _silent = TcpStream::connect(served.address).await.unwrap();
    assert_eq!(served.get("/livez").await.status, 200);
}

fn control(socket: ControlSocket) -> Control {
    Control { address: ([127, 0, 0, 1], 0).into(), names: vec![], socket, users: vec![], token_file: None }
}

#[test]
fn the_default_socket_may_be_missing_and_one_that_was_asked_for_may_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no").join("such").join("control.sock");
    assert!(Listeners::bind(&control(ControlSocket::Default(path.clone()))).unwrap().unix.is_none());
    let error = Listeners::bind(&control(ControlSocket::Path(path.clone()))).unwrap_err();
    assert!(error.to_string().starts_with(&format!("control.socket {}: ", path.display())), "{error}");
}

#[test]
fn a_stale_socket_is_replaced_a_living_one_is_not_and_other_files_are_left_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let first = Listeners::bind(&control(ControlSocket::Path(path.clone()))).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    assert!(Listeners::bind(&control(ControlSocket::Path(path.clone()))).is_err());
    drop(first);
    assert!(!path.exists(), "the socket is removed at the end");
    std::fs::write(&path, "precious").unwrap();
    assert!(Listeners::bind(&control(ControlSocket::Path(path.clone()))).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

#[tokio::test]
async fn a_wait_is_as_long_as_asked_for() {
    let served = serve();
    let begun = Instant::now();
    served.get("/api/health?after=0&wait=1200ms").await;
    assert!(begun.elapsed() >= Duration::from_millis(1200));
}

#[tokio::test]
async fn a_core_that_has_nothing_to_publish_is_still_fresh() {
    let served = serve();
    served.process.publish(|_, health| health.at = Timestamp::from_secs(40));
    assert_eq!(served.get("/api/health").await.json()["core_age_ms"], 60_000);
    served.process.core_ran(Timestamp::from_millis(99_900));
    assert_eq!(served.get("/api/health").await.json()["core_age_ms"], 100);
    assert_eq!(served.get("/api/clusters").await.json()["core_age_ms"], 100);
    let metrics = served.get("/metrics").await.text;
    assert!(metrics.contains("\nlazaret_core_age_seconds 0.1\n"), "{metrics}");
}

#[tokio::test]
async fn a_crowd_of_silent_connections_keeps_no_reader_out_and_the_oldest_makes_room() {
    let served = serve();
    let mut silent = Vec::new();
    for _ in 0..256 {
        silent.push(TcpStream::connect(served.address).await.unwrap());
    }
    assert_eq!(served.get("/livez").await.status, 200);
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, silent[0].read_to_end(&mut rest)).await.expect("the oldest is closed");
    assert_eq!(rest, b"");
    let kept = tokio::time::timeout(Duration::from_millis(100), silent[255].read_u8()).await;
    assert!(kept.is_err(), "the newest stays");
    assert_eq!(served.ask_unix("GET", "/livez").await.status, 200);
}
