//! gRPC between a client and servers of grpcio, through TLS on the one side and HTTP/2 by prior knowledge on the other:
//! calls of every kind, statuses with their trailers, and servers that end in the middle.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use end_to_end::clients::{python, run, script, site::Site};
use end_to_end::process::{Process, poll};
use serde_json::{Value, json};

/// A gRPC server as a process of its own.
fn server(python: &Path, folder: &Path, name: &str) -> (Process, u16) {
    let mut command = Command::new(python);
    command.arg(script("grpc_server.py")).arg(name);
    let process = Process::start(command, folder.join(format!("{name}.log")));
    let mut port = None;
    poll(Duration::from_secs(20), || {
        port = process.output().lines().find_map(|line| line.strip_prefix("listening ")?.parse().ok());
        port.is_some()
    });
    let port = port.unwrap_or_else(|| panic!("{name} does not listen: {}", process.output()));
    (process, port)
}

#[test]
fn calls_of_every_kind_of_grpcio_end_as_they_would_without_a_proxy() {
    let Some(python) = python() else {
        let lack = "a Python with grpcio (cargo xtask setup)";
        return testkit::skip("calls_of_every_kind_of_grpcio_end_as_they_would_without_a_proxy", lack);
    };
    let folder = tempfile::tempdir().unwrap();
    let (_one, first) = server(&python, folder.path(), "one");
    let (_two, second) = server(&python, folder.path(), "two");
    let refusing = testkit::destination::refusing();
    let site = Site::start(
        "  echo: {match: {path: \"/test.Echo/{**rest}\"}, cluster: echo}\n  dead: {match: {path: \
         \"/test.Dead/{**rest}\"}, cluster: dead}\n  none: {match: {path: \"/test.None/{**rest}\"}, deny: 404}\n",
        &format!(
            "  echo:\n    http: \"2\"\n    load_balancing: RoundRobin\n    destinations: {{one: {{address: \
             \"http://127.0.0.1:{first}/\"}}, two: {{address: \"http://127.0.0.1:{second}/\"}}}}\n  dead:\n    http: \
             \"2\"\n    destinations: {{gone: {{address: \"http://{refusing}/\"}}}}\n"
        ),
    );
    let words = [script("grpc_client.py").into(), site.tls.to_string().into(), site.roots.clone().into_os_string()];
    let ran = run(python.to_str().unwrap(), words);
    let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let show = format!("{report:#}\n{}", site.lazaret.process.output());

    assert_eq!(report["unary"]["message"], "hello", "{show}");
    assert!(["one", "two"].contains(&report["unary"]["trailers"]["x-served-by"].as_str().unwrap_or("")), "{show}");
    assert_eq!(report["large"], true, "{show}");
    // A status without a message comes as trailers alone.
    assert_eq!((&report["fail"]["code"], &report["fail"]["details"]), (&json!("NOT_FOUND"), &json!("no such thing")));
    assert_eq!(report["unknown"]["code"], "UNIMPLEMENTED", "{show}");
    assert_eq!(
        (&report["stream"]["is_whole"], &report["stream"]["trailers"]["x-count"]),
        (&json!(true), &json!("5000"))
    );
    assert_eq!(report["collect"]["message"], "a,b,c", "{show}");
    assert_eq!(report["chat"]["messages"], json!(["ONE", "TWO", "THREE"]), "{show}");

    // Our own answers.
    assert_eq!(report["no_route"]["code"], "UNIMPLEMENTED", "{show}");
    assert_eq!(report["dead"]["code"], "UNAVAILABLE", "{show}");

    // What has begun ends with an error, what comes then goes to the server that is left.
    assert_eq!(report["die"]["messages"], json!(["first", "second"]), "{show}");
    assert_ne!(report["die"]["code"], "OK", "{show}");
    let after: BTreeSet<&str> = report["after"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(after, BTreeSet::from(["OK"]), "{show}");

    let line = site.lazaret.log_line("/test.Echo/Stream");
    assert_eq!(line["status"], 200, "{line}");
}
