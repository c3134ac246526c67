//! Clients that others wrote (curl, nghttp, wrk, Chromium, grpcio, …) before the real program: how they are started and
//! bounded, and the site that they visit.

pub mod frames;
pub mod http2;
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
    run_for(60, program, words)
}

/// Runs `program` to its end, so many seconds at most.
pub fn run_for<I: AsRef<std::ffi::OsStr>>(seconds: u32, program: &str, words: impl IntoIterator<Item = I>) -> Ran {
    let mut command = Command::new("timeout");
    command.args([&seconds.to_string(), program]).args(words);
    let Output { status, stdout, stderr } = command.output().expect("coreutils are there");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ran { code: status.code(), out: text(stdout), errors: text(stderr) }
}

/// The Python of the folder that `cargo xtask setup` prepares, with the packages of `tests/python/requirements.txt`.
pub fn python() -> Option<PathBuf> {
    let python = python_folder()?.join("bin/python");
    python.is_file().then_some(python)
}

/// The archive of a package of `tests/python/archives.txt`.
pub fn archive(package: &str) -> Option<PathBuf> {
    let files = std::fs::read_dir(python_folder()?.join("archives")).ok()?;
    let is_wanted = |file: &PathBuf| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(package));
    files.flatten().map(|entry| entry.path()).find(is_wanted)
}

fn python_folder() -> Option<PathBuf> {
    let test = std::env::current_exe().expect("a test knows its own path");
    // target/debug/deps/<test>
    Some(test.ancestors().nth(3)?.join("python"))
}

/// A file of `tests/python`.
pub fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("python").join(name)
}
