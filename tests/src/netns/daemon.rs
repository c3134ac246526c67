//! `lazaret-rhi` in a namespace: another user than root, with CAP_NET_ADMIN and nothing else.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::netns::Namespace;
use crate::process::{Process, poll};

/// A user who owns nothing.
const NOBODY: u32 = 65534;

/// A running `lazaret-rhi`.
pub struct Daemon {
    /// The process.
    pub process: Process,
    config: PathBuf,
    socket: PathBuf,
}

impl Daemon {
    /// Starts one with the body of an rhi.yaml (everything but the interface and the status socket), and waits until its
    /// status socket answers.
    pub fn start(namespace: &Namespace, folder: &Path, name: &str, body: &str) -> Self {
        let home = folder.join(name);
        fs::create_dir_all(&home).expect("the folder is ours");
        chown(&home, Some(NOBODY), Some(NOBODY)).expect("root may give a folder away");
        let (config, socket) = (home.join("rhi.yaml"), home.join("status.sock"));
        write_config(&config, &socket, body);
        let mut command = namespace.command("setpriv");
        let nobody = NOBODY.to_string();
        command.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups"]);
        command.args(["--bounding-set", "-all,+net_admin", "--inh-caps", "-all,+net_admin"]);
        command.args(["--ambient-caps", "-all,+net_admin"]);
        command.arg(crate::binaries::path("lazaret-rhi")).arg("run").arg("-c").arg(&config);
        let process = Process::start(command, home.join("output.log"));
        let daemon = Self { process, config, socket };
        assert!(
            poll(Duration::from_secs(10), || daemon.status().is_some()),
            "lazaret-rhi does not answer:\n{}",
            daemon.process.output()
        );
        daemon
    }

    /// Puts another body in the file's place, without a reload.
    pub fn write(&self, body: &str) {
        write_config(&self.config, &self.socket, body);
    }

    /// `lazaret-rhi …` asking this daemon: exit code and what it printed.
    pub fn ask(&self, words: &[&str]) -> (i32, String) {
        let output = Command::new(crate::binaries::path("lazaret-rhi"))
            .args(words)
            .arg("--socket")
            .arg(&self.socket)
            .output()
            .expect("the program starts");
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code().unwrap_or(-1), text)
    }

    /// Its status document.
    pub fn status(&self) -> Option<serde_json::Value> {
        let (code, text) = self.ask(&["status", "--format", "json"]);
        if code == 0 { serde_json::from_str(&text).ok() } else { None }
    }

    /// The reason of a VIP's decision.
    pub fn reason(&self, vip: &str) -> String {
        let status = self.status().unwrap_or_default();
        let vips = status["vips"].as_array().cloned().unwrap_or_default();
        let found = vips.iter().find(|entry| entry["address"] == vip);
        found.and_then(|entry| entry["reason"].as_str()).unwrap_or("?").to_owned()
    }

    /// Waits for a condition; prints the daemon's log when it does not come.
    pub fn wait(&self, what: &str, condition: impl FnMut() -> bool) {
        assert!(poll(Duration::from_secs(15), condition), "not within 15 s: {what}\n{}", self.process.output());
    }

    /// The user and the effective capabilities of the running process, as /proc shows them.
    pub fn privileges(&self) -> (String, String) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .and_then(|rest| rest.split_whitespace().next())
                .unwrap_or("?")
                .to_owned()
        };
        (field("Uid:"), field("CapEff:"))
    }
}

fn write_config(config: &Path, socket: &Path, body: &str) {
    let interface = if body.contains("interface:") { "" } else { "interface: rhi0\n" };
    fs::write(config, format!("{interface}status_socket: {}\n{body}", socket.display())).expect("the folder is ours");
}
