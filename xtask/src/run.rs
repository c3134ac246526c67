//! Runs other programs and shows what they print as they print it.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result};

/// The workspace's root.
pub(crate) fn root() -> Result<PathBuf> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
    let here = PathBuf::from(here);
    Ok(here.parent().context("xtask lies in the workspace")?.to_owned())
}

/// Cargo, the one that runs us.
pub(crate) fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words);
    // What cargo set for us is not meant for the cargo that we start.
    for name in ["CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"] {
        command.env_remove(name);
    }
    command
}

/// How a program ended and what it printed, both streams together.
pub(crate) struct Ran {
    pub(crate) is_ok: bool,
    pub(crate) output: String,
}

/// Runs to the end, passing the output on line by line.
pub(crate) fn run(mut command: Command) -> Result<Ran> {
    println!("$ {}", show(&command));
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| show(&command))?;
    let errors = child.stderr.take().context("stderr is piped")?;
    let beside = thread::spawn(move || pass_on(errors, std::io::stderr()));
    let output = child.stdout.take().context("stdout is piped")?;
    let mut output = pass_on(output, std::io::stdout());
    output.push_str(&beside.join().unwrap_or_default());
    Ok(Ran { is_ok: child.wait()?.success(), output })
}

/// Whether a program of this name can be found.
pub(crate) fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Administrators' programs are not on everybody's path.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.into_iter().any(|folder| folder.join(program).is_file())
}

fn pass_on(from: impl std::io::Read, mut to: impl Write) -> String {
    let mut all = String::new();
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        // A closed terminal is no reason to stop a test run.
        let _ = to.write_all(&line);
        all.push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
    let _ = to.flush();
    all
}

fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let environment = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let environment = environment.map(|(name, value)| format!("{}={:?} ", name.display(), value));
    environment.collect::<String>()
        + &words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
