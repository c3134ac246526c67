//! All processes of one `lazaret`: the one that was started, and those that took over from it.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::process::{Lazaret, get, poll};

/// A `lazaret` that is upgraded. Dropped, it kills all of its processes.
pub struct Generations {
    /// The first one; it may have ended.
    pub lazaret: Lazaret,
}

impl Generations {
    /// Starts the first one.
    pub fn start(body: &str) -> Self {
        Self { lazaret: Lazaret::start(body) }
    }

    /// The processes that run now: those whose command line names this configuration.
    pub fn pids(&self) -> Vec<i32> {
        let mark = self.lazaret.config_file().display().to_string();
        let of_mark = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
        };
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let mut pids: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        pids.retain(of_mark);
        pids
    }

    /// The process that answers at the control API, by its name there.
    pub fn instance(&self) -> Option<String> {
        let page = get(self.lazaret.control, "/api/health")?;
        let document: serde_json::Value = serde_json::from_str(&page.body).ok()?;
        document["instance"].as_str().map(str::to_owned)
    }

    /// Tells `pid` to be succeeded, and waits until another process answers.
    pub fn upgrade(&self, pid: i32) -> i32 {
        let (before, known) = (self.instance(), self.pids());
        assert!(before.is_some(), "{}", self.lazaret.process.output());
        kill(Pid::from_raw(pid), Signal::SIGUSR2).expect("the process is ours");
        let is_new = || self.instance().is_some_and(|now| Some(&now) != before.as_ref());
        assert!(poll(Duration::from_secs(30), is_new), "no upgrade:\n{}", self.lazaret.process.output());
        let new: Vec<_> = self.pids().into_iter().filter(|pid| !known.contains(pid)).collect();
        assert_eq!(new.len(), 1, "{}", self.lazaret.process.output());
        new[0]
    }

    /// Waits until so many processes are left.
    pub fn wait_for(&self, count: usize) {
        self.lazaret.wait_until(&format!("{count} processes are left"), || self.pids().len() == count);
    }
}

impl Drop for Generations {
    fn drop(&mut self) {
        for pid in self.pids() {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
