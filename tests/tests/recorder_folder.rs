//! The flight recorder's folder outlives its process, however that ends: what stands in it replays to the very transitions
//! that the process told. After an upgrade both processes write there, and neither disturbs the other.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use end_to_end::generations::Generations;
use end_to_end::probed::Probed;
use end_to_end::process::{Lazaret, get};
use serde_json::Value;

fn config(a: &Probed, b: &Probed, recorder: &str) -> String {
    format!(
        "recorder: {recorder}\nroutes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    \
         health_check:\n      active: {{interval: 300ms, timeout: 250ms, threshold: 2, path: /health, headers: {{x-token: \
         opensesame}}}}\n      passive: {{policies: [{{name: MaxFails, max_fails: 2, fail_timeout: 1s}}, {{name: Burst}}, \
         {{name: Stall}}, {{name: Latency}}]}}\n    destinations: {{a: {{address: \"{}\"}}, b: {{address: \"{}\"}}}}\n",
        a.url(),
        b.url()
    )
}

fn to(folder: &Path) -> String {
    format!("{{keep: 1m, size: 1MiB, folder: \"{}\"}}", folder.display())
}

fn replay(arguments: &[&str]) -> Output {
    let mut command = Command::new(end_to_end::binaries::path("lazaret"));
    command.args(["lab", "replay"]).args(arguments).output().expect("the program starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// All recordings of a folder, each of which is replayed to the same bytes.
fn replayed(folder: &Path) -> Vec<Value> {
    let output = replay(&[&folder.display().to_string(), "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let recordings = document["recordings"].as_array().expect("a list").clone();
    assert!(recordings.iter().all(|one| one["identical"] == true), "{document}");
    recordings
}

/// Transitions of a recording. Their bytes were compared by the replay; this is what they say.
fn transitions(recording: &Value) -> Vec<String> {
    let events = recording["events"].as_array().expect("a list").iter();
    let told = events.filter_map(|event| {
        let one = event["kind"].get("transition")?;
        // A word, or one with the policy that judged.
        let cause = one["cause"].as_object().and_then(|cause| cause.iter().next());
        let (word, policy) = match cause {
            Some((word, judged)) => (Value::from(word.as_str()), &judged["policy"]),
            None => (one["cause"].clone(), &Value::Null),
        };
        let destination = &one["destination"]["destination"];
        Some(told(&event["revision"], destination, one, &word, policy, &one["evidence"]["failed"]))
    });
    told.collect()
}

/// Those that the control API tells.
fn journal(process: &Lazaret) -> Vec<String> {
    let document = process.document("/api/transitions?limit=1000");
    let events = document["events"].as_array().expect("a list").iter();
    let said = |one: &Value| {
        told(&one["revision"], &one["destination"], one, &one["cause"], &one["policy"], &one["evidence"]["failed"])
    };
    events.map(said).collect()
}

fn told(
    revision: &Value,
    destination: &Value,
    change: &Value,
    cause: &Value,
    policy: &Value,
    failed: &Value,
) -> String {
    let [check, from, to] = ["check", "from", "to"].map(|key| &change[key]);
    format!("{revision} {destination} {check} {from} -> {to} {cause} {policy} {failed}")
}

fn eject_and_return(process: &Lazaret, b: &Probed) {
    b.turn_content(503);
    process.wait_until("b is ejected by its traffic", || {
        get(process.proxy, "/");
        process.health("app", "b").ends_with("/unhealthy")
    });
    b.turn_content(200);
    process.wait_until("b is back", || {
        get(process.proxy, "/");
        !process.health("app", "b").contains("unhealthy")
    });
    b.turn(500);
    process.wait_until("b is sick by its probes", || process.health("app", "b").starts_with("unhealthy/"));
    b.turn(200);
    process.wait_until("b is well again", || process.health("app", "b").starts_with("healthy/"));
}

#[test]
fn a_killed_process_leaves_the_very_transitions_that_it_told() {
    let parent = tempfile::tempdir().expect("a temporary folder can be made");
    let folder = parent.path().join("recorder");
    let (a, b) = (Probed::start("a"), Probed::start("b"));
    let mut process = Lazaret::start(&config(&a, &b, &to(&folder)));
    process.wait_ready();
    eject_and_return(&process, &b);
    process.apply(&config(&a, &b, &to(&folder)).replace("300ms", "200ms"));
    eject_and_return(&process, &b);
    let told = journal(&process);
    assert!(told.len() >= 8, "{told:?}");
    // Of the living one, too; what was told is written at once, by a thread of its own.
    process.wait_until("all of it stands in the folder", || transitions(&replayed(&folder)[0]) == told);
    process.process.kill();
    let recordings = replayed(&folder);
    assert_eq!(recordings.len(), 1);
    assert_eq!(transitions(&recordings[0]), told);

    let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in std::fs::read_dir(&folder).expect("it is there") {
        let path = entry.expect("it can be read").path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        let bytes = std::fs::read(&path).expect("it is there");
        assert!(!bytes.windows(10).any(|part| part == b"opensesame"), "a probe's header is in {}", path.display());
        let single = replay(&[&path.display().to_string()]);
        assert_eq!(single.status.code(), Some(0), "{}", said(&single));
    }
    let page = parent.path().join("page.html");
    let (path, out) = (folder.display().to_string(), page.display().to_string());
    let asked = replay(&[&path, "--policies", "nginx:1/1s", "--report", &out]);
    assert!(asked.status.success() && said(&asked).contains("app/b"), "{}", said(&asked));
    let page = std::fs::read_to_string(page).expect("it was written");
    assert!(page.contains("nginx:1/1s") && page.ends_with("</body></html>\n"), "{page}");
}

#[test]
fn two_processes_of_an_upgrade_write_side_by_side_and_both_are_replayed() {
    let parent = tempfile::tempdir().expect("a temporary folder can be made");
    let folder = parent.path().join("recorder");
    let (a, b) = (Probed::start("a"), Probed::start("b"));
    let generations = Generations::start(&config(&a, &b, &to(&folder)));
    let process = &generations.lazaret;
    process.wait_ready();
    eject_and_return(process, &b);
    let old = generations.instance().expect("it answers");
    let first = i32::try_from(process.process.id()).expect("a pid fits");
    let span = || process.metric("lazaret_recorder_span_seconds", &[]);
    process.wait_until("the first one records", || span() > 0.5);
    let start = Instant::now();
    generations.upgrade(first);
    process.wait_until("the span is the new one's", || (0.001..start.elapsed().as_secs_f64()).contains(&span()));
    let new = generations.instance().expect("it answers");
    eject_and_return(process, &b);
    let told = journal(process);
    let of = |recordings: &[Value], instance: &str| {
        let of: Vec<Value> =
            recordings.iter().filter(|one| one["recording"]["instance"] == instance).cloned().collect();
        assert_eq!(of.len(), 1, "{recordings:?}");
        transitions(&of[0])
    };
    process.wait_until("all of it stands in the folder", || {
        let recordings = replayed(&folder);
        recordings.len() == 2 && of(&recordings, &new) == told
    });
    let recordings = replayed(&folder);
    assert!(of(&recordings, &old).len() >= 4);
    // The clock is one, and each recording begins with its process.
    let begins = |instance: &str| {
        let of = recordings.iter().find(|one| one["recording"]["instance"] == instance);
        of.and_then(|one| one["recording"]["begins"].as_str()).expect("it is there").to_owned()
    };
    assert!(begins(&old) < begins(&new), "{} and {}", begins(&old), begins(&new));
    let path = folder.display().to_string();
    let one = replay(&[&path, "--instance", &old]);
    assert!(one.status.success() && said(&one).matches("identical: ").count() == 1, "{}", said(&one));
    let none = replay(&[&path, "--instance", "nobody"]);
    assert_eq!(none.status.code(), Some(3));
    assert!(said(&none).contains(&old) && said(&none).contains(&new), "{}", said(&none));
}

#[test]
fn a_folder_that_cannot_be_used_is_refused_with_its_name_at_a_start_and_at_a_reload() {
    let parent = tempfile::tempdir().expect("a temporary folder can be made");
    let shared = parent.path().join("shared");
    std::fs::create_dir(&shared).expect("it can be made");
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o777)).expect("it is ours");
    let (a, b) = (Probed::start("a"), Probed::start("b"));
    let why = format!("the recorder's folder `{}` cannot be used: others may write to it", shared.display());
    let mut refused = Lazaret::spawn(&config(&a, &b, &to(&shared)));
    let status = refused.process.wait(std::time::Duration::from_secs(20));
    assert_eq!(status.code(), Some(3));
    assert!(refused.process.output().contains(&why), "{}", refused.process.output());
    let checked = refused.check();
    assert_eq!(checked.code, Some(3));
    assert!(checked.text.contains(&why) && checked.text.contains("chmod go-w"), "{}", checked.text);

    let process = Lazaret::start(&config(&a, &b, "{keep: 1m}"));
    process.wait_ready();
    process.write(&config(&a, &b, &to(&shared)));
    process.hang_up();
    process.wait_until("the reload is refused", || process.process.output().contains(&why));
    assert_eq!(get(process.proxy, "/").map(|answer| answer.status), Some(200));
    let folder = parent.path().join("recorder");
    process.apply(&config(&a, &b, &to(&folder)));
    eject_and_return(&process, &b);
    process.wait_until("what follows is recorded", || folder.is_dir() && transitions(&replayed(&folder)[0]).len() >= 4);
    assert!(process.metric("lazaret_recorder_folder_bytes", &[]) > 500.0);
    // And nothing more is once it is turned off.
    process.apply(&config(&a, &b, "off"));
    process.wait_until("it is off", || process.metric("lazaret_recorder_span_seconds", &[]) == 0.0);
    let lost = process.metric("lazaret_recorder_lost_total", &[]);
    assert_eq!(lost, 0.0);
}

/// A limit of the size of files (RLIMIT_FSIZE) ends a write, and by default the process with it.
#[test]
fn files_that_may_not_grow_end_no_process() {
    let parent = tempfile::tempdir().expect("a temporary folder can be made");
    let (a, b) = (Probed::start("a"), Probed::start("b"));
    let config = config(&a, &b, &to(&parent.path().join("recorder")));
    let process = Lazaret::start_with_file_size(LEAST, &config);
    process.wait_ready();
    let log = process.folder.path().join("access.log");
    let size = || log.metadata().map_or(0, |found| found.len());
    let is_full = || {
        assert_eq!(get(process.proxy, "/").map(|answer| answer.status), Some(200));
        size() == LEAST as u64
    };
    process.wait_until("the access log is as long as it may be", is_full);
    for _ in 0..10 {
        assert_eq!(get(process.proxy, "/").map(|answer| answer.status), Some(200));
    }
    let failed = || process.metric("lazaret_log_write_failures_total", &[]) > 0.0;
    process.wait_until("that is counted", failed);
}

/// Bytes: room for a beginning of the log.
const LEAST: usize = 16 * 1024;
