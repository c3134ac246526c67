//! Clients that others wrote (curl, nghttp, wrk, Chromium, grpcio, …) before the real program: how they are started and
//! bounded, and the site that they visit.

pub mod frames;
pub mod site;
pub mod websocket;

use std::path::PathBuf;
use std::process::{Command, Output};

/// What a run of a client left.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; 124 when it took longer than its bound.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub errors: String,
}

/// Whether a program of this name can be found.
pub fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Runs `program` to its end, 60 s at most.
pub fn run<I: AsRef<std::ffi::OsStr>>(program: &str, words: impl IntoIterator<Item = I>) -> Ran {
    let mut command = Command::new("timeout");
    command.args(["60", program]).args(words);
    let Output { status, stdout, stderr } = command.output().expect("coreutils are there");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ran { code: status.code(), out: text(stdout), errors: text(stderr) }
}

/// The Python of the folder that `cargo xtask setup` prepares, with the packages of `tests/python/requirements.txt`.
pub fn python() -> Option<PathBuf> {
    let test = std::env::current_exe().expect("a test knows its own path");
    // target/debug/deps/<test>
    let python = test.ancestors().nth(3)?.join("python/bin/python");
    python.is_file().then_some(python)
}

/// A file of `tests/python`.
pub fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("python").join(name)
}
