//! What the health core of a real process was told replays to the same events and states, to the byte: traffic with
//! failures, ejection and return, sick probes, and a reload among them. A recording that is not whole is refused.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use end_to_end::load::{Load, run};
use end_to_end::probed::Probed;
use end_to_end::process::Lazaret;

fn config(a: &Probed, b: &Probed, interval: &str, rest: &str) -> String {
    format!(
        "{rest}routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    health_check:\n      \
         active: {{interval: {interval}, timeout: 400ms, threshold: 2, path: /health, headers: {{x-token: opensesame}}}}\n      \
         passive: {{policies: [{{name: MaxFails, max_fails: 3, fail_timeout: 1s}}, {{name: Burst}}, {{name: Stall}}, \
         {{name: Latency}}]}}\n    destinations: {{a: {{address: \"{}\"}}, b: {{address: \"{}\"}}}}\n",
        a.url(),
        b.url()
    )
}

fn lazaret(arguments: &[&str]) -> Output {
    Command::new(end_to_end::binaries::path("lazaret")).args(arguments).output().expect("the program starts")
}

fn save(process: &Lazaret, file: &Path) -> Output {
    let socket = process.config_file().with_file_name("control.sock");
    lazaret(&["record", "save", "--control", &socket.display().to_string(), "--out", &file.display().to_string()])
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_recording_of_a_real_process_replays_to_the_same_transitions_to_the_byte() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (a, b) = (Probed::start("a"), Probed::start("b"));
    let process = Lazaret::start(&config(&a, &b, "500ms", ""));
    process.wait_ready();
    let load = |seconds| Load {
        to: process.proxy,
        clients: 8,
        rate: 400,
        duration: Duration::from_secs(seconds),
        post_every: 0,
        path: "/",
    };
    let carried = load(6);
    let client = std::thread::spawn(move || run(&carried));
    b.turn_content(503);
    process.wait_until("b is ejected by its traffic", || process.health("app", "b").ends_with("/unhealthy"));
    process.apply(&config(&a, &b, "400ms", ""));
    b.turn_content(200);
    process.wait_until("b is back", || !process.health("app", "b").contains("unhealthy"));
    b.turn(500);
    process.wait_until("b is sick by its probes", || process.health("app", "b").starts_with("unhealthy/"));
    b.turn(200);
    process.wait_until("b is well again", || process.health("app", "b").starts_with("healthy/"));
    client.join().expect("the load ends");

    let file = folder.path().join("run.recording");
    let saved = save(&process, &file);
    assert_eq!(saved.status.code(), Some(0), "{}", said(&saved));
    let mode = std::fs::metadata(&file).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let bytes = std::fs::read(&file).expect("it is there");
    assert!(!bytes.windows(10).any(|part| part == b"opensesame"), "a probe's header is in the recording");

    let shown = file.display().to_string();
    let replayed = lazaret(&["lab", "replay", &shown, "--format", "json"]);
    let text = String::from_utf8_lossy(&replayed.stdout).into_owned();
    assert_eq!(replayed.status.code(), Some(0), "{}", said(&replayed));
    let document: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(document["identical"], true, "{text}");
    assert!(document["inputs"].as_u64().is_some_and(|inputs| inputs > 100), "{text}");
    let replayed_events = document["events"].as_array().expect("a list");
    let transitions: Vec<_> = replayed_events
        .iter()
        .filter_map(|event| event["kind"].get("transition").map(|one| (event["revision"].clone(), one["to"].clone())))
        .collect();
    let journal = process.document("/api/transitions?limit=1000");
    let told: Vec<_> = journal["events"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|event| (event["revision"].clone(), event["to"].clone()))
        .collect();
    assert!(told.len() >= 6, "{journal}");
    assert_eq!(transitions, told, "what the control API told");
    assert!(said(&lazaret(&["lab", "replay", &shown])).contains("\nidentical: "));

    refused(&folder.path().join("cut"), &bytes[..bytes.len() / 2], "is cut off after");
    let mut changed = bytes.clone();
    changed[bytes.len() / 2] ^= 1;
    refused(&folder.path().join("changed"), &changed, "is damaged");
    refused(&folder.path().join("other"), b"version: 1\n", "this is no recording");
}

fn refused(file: &Path, bytes: &[u8], why: &str) {
    std::fs::write(file, bytes).expect("the folder is ours");
    let output = lazaret(&["lab", "replay", &file.display().to_string()]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains(why), "{}", said(&output));
}

#[test]
fn nothing_is_saved_where_nothing_is_recorded_until_a_reload_says_so() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (a, b) = (Probed::start("a"), Probed::start("b"));
    let process = Lazaret::start(&config(&a, &b, "200ms", "recorder: off\n"));
    process.wait_ready();
    let file = folder.path().join("run.recording");
    let none = save(&process, &file);
    assert_eq!(none.status.code(), Some(1), "{}", said(&none));
    assert!(said(&none).contains("recorder: off") && !file.exists());
    process.apply(&config(&a, &b, "200ms", "recorder: {keep: 1m, size: 1MiB}\n"));
    process.wait_until("something is recorded", || process.metric("lazaret_recorder_span_seconds", &[]) > 0.5);
    assert!(process.metric("lazaret_recorder_bytes", &[]) > 500.0);
    let saved = save(&process, &file);
    assert_eq!(saved.status.code(), Some(0), "{}", said(&saved));
    let replayed = lazaret(&["lab", "replay", &file.display().to_string()]);
    assert_eq!(replayed.status.code(), Some(0), "{}", said(&replayed));
}
