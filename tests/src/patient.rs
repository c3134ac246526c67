//! Destinations as processes of their own.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::{Process, poll};

/// A running `patient`.
pub struct Patient {
    /// The program; `kill` ends it without a warning.
    pub process: Process,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Patient {
    /// Starts one that prints each request it gets.
    pub fn start(folder: &Path, name: &str) -> Self {
        Self::start_at(folder, name, "127.0.0.1:0")
    }

    /// Starts one at an address of choice.
    pub fn start_at(folder: &Path, name: &str, address: &str) -> Self {
        let mut command = Command::new(crate::binaries::path("patient"));
        command.args([address, name, "--print"]);
        let process = Process::start(command, folder.join(format!("{name}.log")));
        let mut found = None;
        poll(Duration::from_secs(5), || {
            found = process.output().lines().find_map(|line| line.strip_prefix("listening ")?.parse().ok());
            found.is_some()
        });
        let address = found.unwrap_or_else(|| panic!("{name} does not listen: {}", process.output()));
        Self { process, address }
    }

    /// How many requests for `path` it got.
    pub fn count(&self, path: &str) -> usize {
        self.process.output().lines().filter(|line| line.split(' ').nth(1) == Some(path)).count()
    }
}
