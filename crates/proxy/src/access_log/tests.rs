//! Lines against what a general serialiser makes of the same values, and the way from a worker's buffer to the file.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use ::io::sim::Sim;
use proptest::prelude::*;
use serde::Serialize;

use super::*;

/// The documented form of a line.
#[derive(Serialize)]
struct Plain<'a> {
    at: &'a str,
    listener: &'a str,
    request_id: Option<&'a str>,
    client: String,
    route: Option<&'a str>,
    cluster: Option<&'a str>,
    method: &'a str,
    host: &'a str,
    path: &'a str,
    protocol: &'a str,
    status: u16,
    reason: &'a str,
    bytes_in: u64,
    bytes_out: u64,
    ms: f64,
    attempts: Vec<PlainAttempt<'a>>,
    retry_denied: Option<&'a str>,
}

#[derive(Serialize)]
struct PlainAttempt<'a> {
    destination: &'a str,
    outcome: &'a str,
    status: Option<u16>,
    ms: f64,
    reused: bool,
}

fn a_try(outcome: &'static str, status: Option<u16>, took: Duration, reused: bool) -> Try {
    let origin = if reused { Origin::Reused } else { Origin::Fresh };
    Try { cluster: ClusterIndex(0), destination: DestinationIndex(0), outcome, status, took, origin }
}

fn line(path: &str) -> Line<'_> {
    Line {
        listener: "web",
        request_id: None,
        client: IpAddr::from([192, 0, 2, 1]),
        route: None,
        cluster: None,
        method: "GET",
        host: "example.test",
        path,
        protocol: Protocol::Http1,
        status: 200,
        reason: "",
        bytes_in: 0,
        bytes_out: 0,
        took: Duration::ZERO,
        attempts: Attempts::Written(b"[]"),
        retry_denied: None,
    }
}

fn millis_of(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

proptest! {
    #[test]
    fn a_line_has_the_bytes_that_a_general_serialiser_writes(
        texts in proptest::collection::vec(any::<String>(), 6),
        odd in "[\\x00-\\x24\\\\\"\\x7f\u{80}-\u{ff}\u{1f600}/]{0,40}",
        id in proptest::option::of(any::<String>()),
        client in any::<IpAddr>(),
        (status, bytes_in, bytes_out) in any::<(u16, u64, u64)>(),
        micros in 0_u64..1_000_000_000_000,
        attempts in proptest::collection::vec((proptest::option::of(any::<u16>()), 0_u64..100_000_000, any::<bool>()), 0..4),
    ) {
        let mut tries = Tries::default();
        let mut all = attempts.iter().map(|(status, micros, reused)| {
            a_try("connect-refused", *status, Duration::from_micros(*micros), *reused)
        });
        tries.first = all.next();
        tries.more = all.collect();
        let mut written = Vec::new();
        tries.write_named(&mut written, |_| Some(&odd));
        let line = Line {
            listener: &texts[0],
            request_id: id.as_deref(),
            client,
            route: Some(&texts[1]),
            cluster: id.as_deref(),
            method: &texts[2],
            host: &texts[3],
            path: &odd,
            protocol: Protocol::Http2,
            status,
            reason: &texts[4],
            bytes_in,
            bytes_out,
            took: Duration::from_micros(micros),
            attempts: Attempts::Written(&written),
            retry_denied: Some("budget"),
        };
        let mut ours = Vec::new();
        line.write(&mut ours, |out| out.extend_from_slice(b"now"));
        let attempt = |(status, micros, reused): &(Option<u16>, u64, bool)| PlainAttempt {
            destination: &odd,
            outcome: "connect-refused",
            status: *status,
            ms: millis_of(*micros),
            reused: *reused,
        };
        let plain = Plain {
            at: "now",
            listener: &texts[0],
            request_id: id.as_deref(),
            client: client.to_string(),
            route: Some(&texts[1]),
            cluster: id.as_deref(),
            method: &texts[2],
            host: &texts[3],
            path: &odd,
            protocol: "h2",
            status,
            reason: &texts[4],
            bytes_in,
            bytes_out,
            ms: millis_of(micros),
            attempts: attempts.iter().map(attempt).collect(),
            retry_denied: Some("budget"),
        };
        let expected = serde_json::to_vec(&plain).unwrap();
        prop_assert_eq!(String::from_utf8(ours).unwrap(), String::from_utf8(expected).unwrap());
    }
}

#[test]
fn every_field_stands_in_the_documentation() {
    let tries = Tries { first: Some(a_try("ok", None, Duration::ZERO, false)), more: Vec::new() };
    let line = Line { attempts: Attempts::Collected(&tries, None), ..line("/") };
    let mut bytes = Vec::new();
    line.write(&mut bytes, |_| {});
    let section = include_str!("../../../../docs/operations.md").split("## Access log").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let documented = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let mut documented: Vec<_> =
        documented.flat_map(|names| names.split(", ")).map(|name| name.trim_matches('`').to_owned()).collect();
    let written: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let fields = written.as_object().unwrap().keys().cloned();
    let of_attempts = written["attempts"][0].as_object().unwrap().keys().map(|name| format!("attempts[].{name}"));
    let mut written: Vec<_> = fields.chain(of_attempts).collect();
    documented.sort();
    written.sort();
    assert_eq!(documented, written);
}

fn file() -> (tempfile::TempDir, std::path::PathBuf, ReopenFile) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let file = ReopenFile::open(&path).unwrap();
    (folder, path, file)
}

fn paths(path: &std::path::Path, file: &ReopenFile) -> Vec<String> {
    assert!(file.flush(Duration::from_secs(10)));
    let text = std::fs::read_to_string(path).unwrap();
    let of = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["path"].as_str().unwrap().to_owned();
    text.lines().map(of).collect()
}

#[tokio::test(start_paused = true)]
async fn a_line_waits_for_a_tenth_of_a_second_at_most() {
    let (_folder, path, file) = file();
    let (log, io) = (AccessLog::new(file.clone()), Sim::new());
    let scenario = async {
        for name in ["/one", "/two", "/three"] {
            log.line(&line(name), io.now());
            io.sleep(AGE / 4).await;
        }
        assert_eq!(paths(&path, &file).len(), 0);
        io.sleep(AGE / 4 + Duration::from_millis(1)).await;
        assert_eq!(paths(&path, &file), ["/one", "/two", "/three"]);
        log.line(&line("/four"), io.now());
        io.sleep(AGE - Duration::from_millis(1)).await;
        assert_eq!(paths(&path, &file).len(), 3);
        io.sleep(Duration::from_millis(2)).await;
        assert_eq!(paths(&path, &file).len(), 4);
    };
    tokio::select! {
        () = log.keep_fresh(&io) => unreachable!("it never ends"),
        () = scenario => {}
    }
}

#[test]
fn a_full_buffer_is_handed_over_at_once_and_the_rest_when_the_worker_ends() {
    let (_folder, path, file) = file();
    let log = AccessLog::new(file.clone());
    let long = "/".repeat(FULL / 2);
    for _ in 0..3 {
        log.line(&line(&long), Timestamp::ZERO);
    }
    assert_eq!(paths(&path, &file).len(), 2);
    drop(log);
    assert_eq!(paths(&path, &file).len(), 3);
}
