//! A configuration that is bad in any way changes nothing: the process, its routes and its requests go on, the report
//! names file, line and field, and the next good one is taken over. (cloudamqp/lavinmq #2080 and #2091,
//! apollographql/apollo-mcp-server #718, osrg/gobgp #226)

use std::fs;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use end_to_end::load::{Load, run};
use end_to_end::patient::Patient;
use end_to_end::process::{Lazaret, get};
use nix::sys::signal::Signal;

/// What stands in the file, and what its report must say. The place is a line of the file, where there is one.
struct Bad {
    name: &'static str,
    bytes: Vec<u8>,
    line: Option<usize>,
    words: &'static [&'static str],
}

#[test]
fn every_bad_configuration_is_refused_with_its_place_and_the_next_good_one_works() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let patients: Vec<_> = ["a", "b", "c"].iter().map(|name| Patient::start(folder.path(), name)).collect();
    let body = |number: usize| {
        let mut text = format!(
            "routes:\n  unrelated: {{match: {{path: /unrelated}}, respond: {{status: 200, body: \"{number}\"}}}}\n"
        );
        for name in ["a", "b", "c"] {
            text += &format!("  {name}: {{match: {{path: \"/{name}\"}}, cluster: {name}}}\n");
        }
        text += "clusters:\n";
        for (name, patient) in ["a", "b", "c"].iter().zip(&patients) {
            text += &format!(
                "  {name}:\n    health_check: {{active: {{interval: 5s, timeout: 2s, path: /health}}}}\n    destinations:\n      \
                 one: {{address: \"http://{}/\"}}\n",
                patient.address
            );
        }
        text
    };
    let lazaret = Lazaret::start(&body(0));
    lazaret.wait_ready();
    let pid = lazaret.process.id();
    let good = fs::read_to_string(lazaret.config_file()).expect("it was written");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken_address = taken.local_addr().expect("a bound listener has an address");

    let load =
        Load { to: lazaret.proxy, clients: 4, rate: 80, duration: Duration::from_secs(10), post_every: 4, path: "/a" };
    let client = thread::spawn(move || run(&load));

    let mut number = 0;
    for Bad { name, bytes, line, words } in bad_ones(&good) {
        fs::write(lazaret.config_file(), bytes).expect("the folder is ours");
        refused(&lazaret, name, line, words);
        let check = lazaret.check();
        assert_eq!(check.code, Some(3), "{name}: {}", check.text);
        says(name, &check.text, line, words);
        good_again(&lazaret, &body, &mut number, name);
    }

    // What is no file that can be read.
    fs::remove_file(lazaret.config_file()).expect("it is there");
    refused(&lazaret, "deleted", None, &["lazaret.yaml"]);
    assert_eq!(lazaret.check().code, Some(3), "deleted");
    fs::create_dir(lazaret.config_file()).expect("nothing is there");
    refused(&lazaret, "a folder", None, &["lazaret.yaml"]);
    assert_eq!(lazaret.check().code, Some(3), "a folder");
    fs::remove_dir(lazaret.config_file()).expect("it is there");
    good_again(&lazaret, &body, &mut number, "a folder");
    // Root may read everything.
    if !nix::unistd::geteuid().is_root() {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o000);
        fs::set_permissions(lazaret.config_file(), mode).expect("the file is ours");
        refused(&lazaret, "unreadable", None, &["lazaret.yaml"]);
        assert_eq!(lazaret.check().code, Some(3), "unreadable");
        good_again(&lazaret, &body, &mut number, "unreadable");
    }

    // What only the running process can know: a port that somebody else has. Nothing of that file comes into force.
    let other =
        format!("listeners: {{web: {{address: \"{}\"}}, more: {{address: \"{taken_address}\"}}}}\n", lazaret.proxy);
    fs::write(lazaret.config_file(), good.replace(&listeners(&good), &other).replace("body: \"0\"", "body: \"half\""))
        .expect("the folder is ours");
    refused(&lazaret, "port taken", None, &[&taken_address.to_string()]);
    good_again(&lazaret, &body, &mut number, "port taken");

    // What looks odd and means the same.
    for (name, text) in [("CRLF", good.replace('\n', "\r\n")), ("byte order mark", format!("\u{feff}{good}"))] {
        let text = text.replace("body: \"0\"", &format!("body: \"{name}\""));
        fs::write(lazaret.config_file(), text).expect("the folder is ours");
        let reload = lazaret.reload();
        assert_eq!(reload.code, Some(0), "{name}: {}", reload.text);
        assert_eq!(body_of(&lazaret, "/unrelated"), name);
        assert_eq!(lazaret.check().code, Some(0), "{name}");
    }
    // A log that cannot be written: it changes with a restart only, and the reload says so.
    let log = lazaret.folder.path().join("access.log");
    let log = log.to_str().expect("a temporary folder has a plain name");
    fs::write(lazaret.config_file(), good.replace(log, "/nowhere/access.log")).expect("the folder is ours");
    let reload = lazaret.reload();
    assert!(reload.text.contains("; access_log changes with a restart only"), "{}", reload.text);
    // It waits for the restart still, and is told again beside what else does.
    let both = good.replace(log, "/nowhere/access.log").replace("version: 1\n", "version: 1\nworkers: 3\n");
    fs::write(lazaret.config_file(), both).expect("the folder is ours");
    let reload = lazaret.reload();
    assert!(reload.text.contains("; workers and access_log change with a restart only"), "{}", reload.text);
    good_again(&lazaret, &body, &mut number, "log");

    let outcome = client.join().expect("the load ends");
    assert!(outcome.sent >= 400, "{} requests were sent", outcome.sent);
    assert_eq!((outcome.ok, outcome.failures), (outcome.sent, vec![]), "a request was dropped");
    assert_eq!(lazaret.process.id(), pid);
    lazaret.wait_until("the log has every request", || {
        lazaret.access_log().iter().filter(|line| line["path"] == "/a").count() as u64 >= outcome.sent
    });
    let events = lazaret.document("/api/transitions");
    let changes = events["events"].as_array().cloned().unwrap_or_default();
    assert!(changes.iter().all(|event| event["to"] == "healthy"), "a reload changed somebody's health: {changes:?}");
}

fn refused(lazaret: &Lazaret, name: &str, line: Option<usize>, words: &[&str]) {
    let reload = lazaret.reload();
    assert_eq!(reload.code, Some(3), "{name}: {}", reload.text);
    says(name, &reload.text, line, words);
    // By a signal, too; whose report is in the log and the journal.
    lazaret.process.signal(Signal::SIGHUP);
    for route in ["a", "b", "c"] {
        assert_eq!(body_of(lazaret, &format!("/{route}")), format!("{route}\n"), "{name}");
    }
    assert_ne!(body_of(lazaret, "/unrelated"), "half", "{name}: a part of it is in force");
    assert_eq!(lazaret.metric("lazaret_config_stale", &[]), 1.0, "{name}");
    let journal = lazaret.document("/api/journal");
    let last =
        journal["events"].as_array().and_then(|all| all.iter().rfind(|event| event["event"] == "config").cloned());
    assert_eq!(last.unwrap_or_default()["applied"], false, "{name}");
}

/// The file's name and line as a compiler writes them, and the words.
fn says(name: &str, text: &str, line: Option<usize>, words: &[&str]) {
    if let Some(line) = line {
        assert!(text.contains(&format!("lazaret.yaml:{line}:")), "{name}: line {line} is not named: {text}");
    }
    for word in words {
        assert!(text.contains(word), "{name}: {word:?} is not in: {text}");
    }
}

/// The next good configuration is taken over.
fn good_again(lazaret: &Lazaret, body: &impl Fn(usize) -> String, number: &mut usize, name: &str) {
    *number += 1;
    lazaret.write(&body(*number));
    let reload = lazaret.reload();
    assert_eq!(reload.code, Some(0), "after {name}: {}", reload.text);
    assert_eq!(body_of(lazaret, "/unrelated"), number.to_string(), "after {name}");
    assert_eq!(lazaret.metric("lazaret_config_stale", &[]), 0.0, "after {name}");
}

fn body_of(lazaret: &Lazaret, path: &str) -> String {
    get(lazaret.proxy, path).map(|answer| answer.body).unwrap_or_default()
}

fn listeners(good: &str) -> String {
    let line = good.lines().find(|line| line.starts_with("listeners:")).expect("the file has listeners");
    format!("{line}\n")
}

fn bad_ones(good: &str) -> Vec<Bad> {
    let line_of = |text: &str, part: &str| text.lines().position(|line| line.contains(part)).map(|at| at + 1);
    let bad = |name, text: String, part: &str, words| {
        assert_ne!(text, good, "{name} changes nothing");
        Bad { name, line: line_of(&text, part), bytes: text.into_bytes(), words }
    };
    let edit = |from: &str, to: &str| good.replacen(from, to, 1);
    let mut huge = good.to_owned();
    huge.reserve(51 << 20);
    while huge.len() < 50 << 20 {
        huge.push_str("# a comment that fills a line and says nothing at all, again and again and again\n");
    }
    let mut not_text = good.as_bytes().to_vec();
    not_text.extend_from_slice(b"# \xff\xfe\n");
    let cut = good.len() * 2 / 3;
    vec![
        bad(
            "syntax error",
            edit("routes:\n", "routes:\n  broken: {match: {path: \"/x\"\n"),
            "\u{0}",
            &["lazaret.yaml:"],
        ),
        bad(
            "unknown field",
            edit("    destinations:\n", "    destinatoins:\n"),
            "destinatoins",
            &["destinatoins", "destinations"],
        ),
        bad("unknown field deep", edit("timeout: 2s", "timeuot: 2s"), "timeuot", &["timeuot", "timeout"]),
        bad("duplicate id", edit("  b:\n    health", "  a:\n    health"), "\u{0}", &["lazaret.yaml:", "`a`"]),
        bad("missing cluster", edit("cluster: b}", "cluster: nobody}"), "nobody", &["nobody"]),
        bad("zero interval", edit("interval: 5s", "interval: 0s"), "interval: 0s", &["interval"]),
        bad("no unit", edit("interval: 5s", "interval: 5"), "interval: 5,", &["interval"]),
        bad(
            "unknown policy",
            edit("    health_check:", "    load_balancing: RoundRobbin\n    health_check:"),
            "RoundRobbin",
            &["RoundRobbin", "RoundRobin"],
        ),
        bad("bad address", edit("{address: \"http://", "{address: \"htp://"), "htp://", &["address"]),
        bad("not a list", edit("clusters:\n", "clusters: 5\nmore:\n"), "clusters: 5", &["clusters"]),
        bad("version", edit("version: 1", "version: 99"), "version: 99", &["version"]),
        Bad { name: "empty", bytes: Vec::new(), line: None, words: &["lazaret.yaml", "empty"] },
        Bad { name: "white space", bytes: b" \n\n".to_vec(), line: None, words: &["lazaret.yaml"] },
        Bad { name: "comments", bytes: b"# nothing\n".to_vec(), line: None, words: &["lazaret.yaml"] },
        Bad {
            name: "cut in the midst of a write",
            bytes: good.as_bytes()[..cut].to_vec(),
            line: None,
            words: &["lazaret.yaml"],
        },
        Bad { name: "50 MB", bytes: huge.into_bytes(), line: None, words: &["lazaret.yaml", "16 MiB"] },
        Bad { name: "invalid UTF-8", line: Some(good.lines().count() + 1), bytes: not_text, words: &["UTF-8"] },
    ]
}
