//! The programs' exit codes are what the manual says, and the demo runs by itself.

use std::process::{Command, Output};
use std::time::Duration;

use end_to_end::binaries;
use end_to_end::patient::Patient;
use end_to_end::process::{Lazaret, Process, free_address};

#[test]
fn the_demo_ends_by_itself_and_sums_up() {
    let output = lazaret(&["demo", "--for", "6s"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for word in ["fault: app1 is dead", "app1 active: healthy -> unhealthy", "summary", "ejections", "unhealthy after"]
    {
        assert!(text.contains(word), "{word:?} is missing in:\n{text}");
    }
    let requests = number_after(&text, "requests  ").unwrap_or(0);
    assert!(requests >= 600, "{requests} requests in 6 s at 200 a second:\n{text}");
}

#[test]
fn ctrl_c_ends_the_demo_cleanly() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut command = Command::new(binaries::path("lazaret"));
    command.arg("demo");
    let mut demo = Process::start(command, folder.path().join("demo.log"));
    assert!(end_to_end::process::poll(Duration::from_secs(20), || demo.output().contains("requests=")));
    demo.signal(nix::sys::signal::Signal::SIGINT);
    let status = demo.wait(Duration::from_secs(10));
    assert_eq!(status.code(), Some(0), "{}", demo.output());
    assert!(demo.output().contains("summary"), "{}", demo.output());
}

#[test]
fn usage_errors_are_2_and_refused_configurations_are_3() {
    assert_eq!(lazaret(&["no-such-command"]).status.code(), Some(2));
    assert_eq!(lazaret(&["run", "--no-such-flag"]).status.code(), Some(2));
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let bad = folder.path().join("bad.yaml");
    std::fs::write(&bad, "version: 1\nlisteners: {web: {adress: \"127.0.0.1:0\"}}\n").expect("the folder is ours");
    let bad = bad.display().to_string();
    for command in ["check", "run"] {
        let output = lazaret(&[command, "-c", &bad]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{command}: {text}");
        assert!(text.contains("bad.yaml:2:") && text.contains("did you mean `address`?"), "{command}: {text}");
    }
    let unreadable = folder.path().join("ca.yaml");
    let text = "version: 1\ncontrol: {address: \"127.0.0.1:0\", socket: off}\n\
        listeners: {web: {address: \"127.0.0.1:0\"}}\n\
        routes: {all: {match: {path: \"/{**rest}\"}, cluster: shop}}\n\
        clusters: {shop: {tls: {ca: /nonexistent/ca.pem}, destinations: {a: {address: \"https://127.0.0.1:1/\"}}}}\n";
    std::fs::write(&unreadable, text).expect("the folder is ours");
    for command in ["check", "run"] {
        let output = lazaret(&[command, "-c", &unreadable.display().to_string()]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{command}: {text}");
        assert!(text.contains("ca.yaml:5:") && text.contains("/nonexistent/ca.pem"), "{command}: {text}");
    }
    assert_eq!(lazaret(&["check", "-c", "/nonexistent/lazaret.yaml"]).status.code(), Some(3));
}

#[test]
fn a_place_that_run_cannot_open_is_refused_by_check_with_its_line_and_is_not_touched() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("lazaret.yaml");
    let write = |log: &str, socket: &str| {
        let text = format!(
            "version: 1\naccess_log: {log}\ncontrol: {{address: \"127.0.0.1:0\", socket: {socket}, token_file: \
             /nowhere/token}}\nlisteners: {{web: {{address: \"127.0.0.1:0\"}}}}\n"
        );
        std::fs::write(&file, text).expect("the folder is ours");
    };
    let ask = |command: &str| {
        let output = lazaret(&[command, "-c", &file.display().to_string()]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let log = folder.path().join("access.log");
    write(&log.display().to_string(), &folder.path().join("run/control.sock").display().to_string());
    let (code, text) = ask("check");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("warning: control.token_file /nowhere/token: "), "{text}");
    assert!(!log.exists() && !folder.path().join("run").exists(), "check made something");

    let own = folder.path().display().to_string();
    let refused = |place: &str, words: &str| {
        let said = ["check", "run"].map(|command| {
            let (code, text) = ask(command);
            assert_eq!(code, Some(3), "{command}: {text}");
            assert!(text.contains(place) && text.contains(words), "{command}: {text}");
            // Beside what is no mistake.
            text.lines().filter(|line| !line.contains("token_file /nowhere")).collect::<Vec<_>>().join("\n")
        });
        assert_eq!(said[0], said[1], "check and run say the same");
    };
    for log in ["/nowhere/access.log", &own, &format!("{own}/new/"), "/proc/log", "/proc/self/status", "/sys/log"] {
        write(log, "off");
        refused("lazaret.yaml:2:13", "a folder that exists");
    }
    for socket in [format!("{own}/a/b/control.sock"), format!("{own}/s/"), "/proc/s".into(), file.display().to_string()]
    {
        write("off", &socket);
        refused("lazaret.yaml:3:", "the control socket");
    }
}

#[test]
fn a_socket_that_another_process_has_ends_the_start_with_1_though_check_finds_no_mistake() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (file, socket) = (folder.path().join("lazaret.yaml"), folder.path().join("taken.sock"));
    let _taken = std::os::unix::net::UnixListener::bind(&socket).expect("the folder is ours");
    let text = format!(
        "version: 1\ncontrol: {{address: \"127.0.0.1:0\", socket: {}}}\nlisteners: {{web: {{address: \"127.0.0.1:0\"}}}}\n",
        socket.display()
    );
    std::fs::write(&file, text).expect("the folder is ours");
    for (command, code) in [("check", 0), ("run", 1)] {
        let output = lazaret(&[command, "-c", &file.display().to_string()]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{command}: {text}");
        assert!(code == 0 || text.contains("another process listens there"), "{text}");
    }
}

#[test]
fn log_lines_name_the_part_that_speaks() {
    let mut lazaret = Lazaret::start("");
    lazaret.process.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(lazaret.process.wait(Duration::from_secs(10)).code(), Some(0));
    let output = lazaret.process.output();
    for line in ["INFO lazaret: listening ", "INFO lazaret: control API ", "INFO lazaret: stopping"] {
        assert!(output.contains(line), "{line:?} is missing in:\n{output}");
    }
    assert!(!output.contains("::"), "a module speaks:\n{output}");
}

#[test]
fn an_address_that_is_taken_ends_the_start_with_1_and_its_name() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = taken.local_addr().expect("it is bound");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("lazaret.yaml");
    let control = free_address();
    let text = format!(
        "version: 1\ncontrol: {{address: \"{control}\", socket: off}}\nlisteners: {{web: {{address: \"{address}\"}}}}\n"
    );
    std::fs::write(&file, text).expect("the folder is ours");
    let output = lazaret(&["run", "-c", &file.display().to_string()]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("web") && text.contains(&address.to_string()), "{text}");
}

#[test]
fn status_is_4_without_an_api_and_5_without_a_healthy_destination() {
    let nobody = free_address().to_string();
    assert_eq!(lazaret(&["status", "--control", &nobody]).status.code(), Some(4));

    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut patient = Patient::start(folder.path(), "a");
    let lazaret_run = Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters: {{app: {{health_check: {{active: \
         {{interval: 200ms, path: /health}}}}, destinations: {{a: {{address: \"http://{}/\"}}}}}}}}\n",
        patient.address
    ));
    lazaret_run.wait_until("a is Healthy", || lazaret_run.health("app", "a").starts_with("healthy/"));
    let control = lazaret_run.control.to_string();
    assert_eq!(lazaret(&["status", "--control", &control]).status.code(), Some(0));
    patient.process.kill();
    lazaret_run.wait_until("a is Unhealthy", || lazaret_run.health("app", "a").starts_with("unhealthy/"));
    let output = lazaret(&["status", "--control", &control, "--format", "json"]);
    assert_eq!(output.status.code(), Some(5));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("--format json prints JSON");
    assert_eq!(document["clusters"][0]["destinations"][0]["active"], "unhealthy", "{document}");
    let explained = lazaret(&["explain", "app", "a", "--control", &control]);
    let text = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert_eq!(explained.status.code(), Some(0), "{text}");
    assert!(text.contains("ConsecutiveFailures") && text.contains("refused"), "{text}");
    let journal = lazaret(&["journal", "--control", &control]);
    assert!(String::from_utf8_lossy(&journal.stdout).contains("unhealthy"), "the journal tells of the change");
}

fn lazaret(arguments: &[&str]) -> Output {
    Command::new(binaries::path("lazaret")).args(arguments).output().expect("the program can be started")
}

fn number_after(text: &str, word: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.trim().strip_prefix(word))?;
    rest.trim().parse().ok()
}
