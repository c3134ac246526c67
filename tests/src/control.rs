//! What a test asks a running `lazaret` for, and how it gives it another configuration.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::process::{Lazaret, get};

/// How a command of the program ended.
pub struct Ended {
    /// Its exit code.
    pub code: Option<i32>,
    /// Both of its outputs.
    pub text: String,
}

impl Lazaret {
    /// `lazaret reload`: waits for the result.
    pub fn reload(&self) -> Ended {
        let mut command = self.command();
        command.arg("reload").arg("--control").arg(self.folder.path().join("control.sock"));
        ended(command)
    }

    /// Takes another configuration over, which must be good.
    pub fn apply(&self, body: &str) {
        self.write(body);
        let ended = self.reload();
        assert_eq!(ended.code, Some(0), "{}\n{body}", ended.text);
    }

    /// `lazaret check` of the file it reloads from.
    pub fn check(&self) -> Ended {
        let mut command = self.command();
        command.arg("check").arg(self.config_file());
        ended(command)
    }

    /// The file it reloads from.
    pub fn config_file(&self) -> std::path::PathBuf {
        self.folder.path().join("lazaret.yaml")
    }

    /// A document of the control API; null when there is none.
    pub fn document(&self, path: &str) -> Value {
        get(self.control, path).and_then(|answer| serde_json::from_str(&answer.body).ok()).unwrap_or_default()
    }

    /// Changes of health values of one destination, oldest first.
    pub fn transitions(&self, destination: &str) -> Vec<Value> {
        let page = self.document("/api/transitions");
        let events = page["events"].as_array().cloned().unwrap_or_default();
        events.into_iter().filter(|event| event["destination"] == destination).collect()
    }

    /// The sum of all series of a metric whose labels contain every one of `labels`, for example `cluster="app"`.
    pub fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let page = get(self.control, "/metrics").expect("metrics answer");
        let lines = page.body.lines().filter(|line| {
            let rest = line.strip_prefix(name).unwrap_or_default();
            rest.starts_with(['{', ' ']) && labels.iter().all(|label| rest.contains(label))
        });
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// Waits until the access log has a line for `path` and gives the last one. Lines are written a moment after their
    /// answers.
    pub fn log_line(&self, path: &str) -> Value {
        let mut found = None;
        self.wait_until(&format!("the access log has {path}"), || {
            found = self.access_log().into_iter().rfind(|line| line["path"] == path);
            found.is_some()
        });
        found.unwrap_or_default()
    }

    /// Pages of memory that are resident, in bytes.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) * 1024
    }

    /// Open file descriptors.
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(Path::new("/proc").join(self.process.id().to_string()).join("fd")).map_or(0, Iterator::count)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(crate::binaries::path("lazaret"));
        command.current_dir(self.folder.path());
        command
    }
}

/// The outcomes of an access log line's attempts, as `destination:outcome`.
pub fn attempts(line: &Value) -> Vec<String> {
    let attempts = line["attempts"].as_array().cloned().unwrap_or_default();
    let word = |attempt: &Value, key: &str| attempt[key].as_str().unwrap_or("?").to_owned();
    attempts.iter().map(|attempt| format!("{}:{}", word(attempt, "destination"), word(attempt, "outcome"))).collect()
}

/// Whether the long forms of tests were asked for: `LAZARET_LONG=1`.
pub fn is_long() -> bool {
    std::env::var("LAZARET_LONG").is_ok_and(|value| value == "1")
}

fn ended(mut command: Command) -> Ended {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
    Ended { code: status.code(), text }
}
