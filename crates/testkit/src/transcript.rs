//! Text tests: files of commands and of what was answered to them.
//!
//! A transcript is a `*.txt` file of blocks. A block is a command of one line or more, a line `----`, the answer, and a
//! blank line:
//!
//! ```text
//! # Two failed probes in a row make Unhealthy.
//! probe a refused
//! ----
//! pending 1/2
//!
//! probe a refused
//! ----
//! a: Unknown -> Unhealthy
//! ```
//!
//! Lines that start with `#` are comments where a command could begin; within a command they belong to it. A command
//! may hold blank lines (it ends at `----`). An answer with blank lines stands between two pairs of `----`:
//!
//! ```text
//! show
//! ----
//! ----
//! first
//!
//! second
//! ----
//! ----
//! ```
//!
//! An empty answer is an empty line after `----`. Blanks at the end of an answer's lines do not count.
//!
//! [`check`] runs every file of a folder. Blocks of one file share one runner, so that state builds up from block to
//! block; each file begins with a fresh one. `UPDATE=1 cargo test -p <crate>` writes what was answered into the files:
//! read the difference before you commit it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::transcript::diff::diff;

mod diff;

/// Runs every `*.txt` in `folder` (relative to the crate) in the order of their names, each block through the runner
/// that `runner_of` makes for its file (the name without `.txt`).
///
/// # Panics
///
/// When an answer differs, with file, line and the difference of every such block; when a file cannot be read or parsed;
/// when the folder holds no transcript.
///
/// ```no_run
/// testkit::transcript::check("tests/transcripts", |_file| {
///     let mut sum = 0;
///     move |command: &str| {
///         sum += command.trim_start_matches("add ").parse::<i32>().unwrap_or(0);
///         format!("{sum}\n")
///     }
/// });
/// ```
pub fn check<Runner: FnMut(&str) -> String>(folder: impl AsRef<Path>, mut runner_of: impl FnMut(&str) -> Runner) {
    let mode = if std::env::var_os("UPDATE").is_some_and(|value| value == "1") { Mode::Update } else { Mode::Compare };
    let folder = folder.as_ref();
    let files = transcripts_in(folder);
    assert!(!files.is_empty(), "{}: no *.txt in this folder", folder.display());
    let mut report = String::new();
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        report.push_str(&check_file(&file, mode, runner_of(&name)));
    }
    assert!(report.is_empty(), "\n{report}\nrun again with UPDATE=1 to accept what was answered");
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Compare,
    Update,
}

fn transcripts_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    files
}

/// Runs one file; what differs comes back as text.
fn check_file(path: &Path, mode: Mode, mut runner: impl FnMut(&str) -> String) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let parts = parse(&text).unwrap_or_else(|wrong| panic!("{}:{}: {}", path.display(), wrong.line, wrong.what));
    let mut report = String::new();
    let mut rewritten = String::new();
    for part in &parts {
        match part {
            Part::Between(lines) => rewritten.push_str(lines),
            Part::Block(block) => {
                let place = Place { path, line: block.line };
                let answer = normal(&runner(block.command));
                drop(place);
                if answer != block.answer {
                    let _ = writeln!(report, "{}:{}: another answer", path.display(), block.line);
                    for line in block.command.lines() {
                        let _ = writeln!(report, "    > {line}");
                    }
                    report.push_str(&diff(&block.answer, &answer));
                }
                rewritten.push_str(&print(block.command, &answer));
            }
        }
    }
    if mode == Mode::Update {
        if rewritten != text {
            std::fs::write(path, rewritten).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        report.clear();
    }
    report
}

/// Tells where the runner was when it panicked.
struct Place<'a> {
    path: &'a Path,
    line: usize,
}

impl Drop for Place<'_> {
    #[allow(clippy::print_stderr)]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}:{}: the runner panicked here", self.path.display(), self.line);
        }
    }
}

/// A file is a row of these; put together again they are the file.
#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    /// Comments and blank lines.
    Between(String),
    Block(Block<'a>),
}

#[derive(Debug, PartialEq, Eq)]
struct Block<'a> {
    /// Of the command's first line, counted from 1.
    line: usize,
    /// Without its last newline.
    command: &'a str,
    /// Normal form: see [`normal`].
    answer: String,
}

#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    line: usize,
    what: &'static str,
}

fn parse(text: &str) -> Result<Vec<Part<'_>>, Wrong> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is = |at: usize, what: &str| lines.get(at).is_some_and(|line| line.trim_end() == what);
    let mut parts = Vec::new();
    let mut between = String::new();
    let mut offset = 0;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        if line.trim_end().is_empty() || line.starts_with('#') {
            between.push_str(line);
            offset += line.len();
            at += 1;
            continue;
        }
        let first = at;
        while at < lines.len() && !is(at, RULE) {
            at += 1;
        }
        if at == lines.len() {
            return Err(Wrong { line: first + 1, what: "this command has no ---- after it" });
        }
        if at == first {
            return Err(Wrong { line: first + 1, what: "no command stands before this ----" });
        }
        let length: usize = lines[first..at].iter().map(|line| line.len()).sum();
        let command = text[offset..offset + length].trim_end_matches(['\n', '\r']);
        at += 1;
        let is_framed = is(at, RULE);
        if is_framed {
            at += 1;
        }
        let start = at;
        let is_over = |at: usize| if is_framed { is(at, RULE) && is(at + 1, RULE) } else { is(at, "") };
        while at < lines.len() && !is_over(at) {
            if !is_framed && is(at, RULE) {
                return Err(Wrong { line: at + 1, what: "a blank line is missing before this block's command" });
            }
            at += 1;
        }
        if is_framed && at == lines.len() {
            return Err(Wrong { line: start, what: "this answer has no second pair of ----" });
        }
        let answer = normal(&lines[start..at].concat());
        if is_framed {
            at += 2;
        }
        // The blank line that ends a block belongs to it.
        if is(at, "") {
            at += 1;
        }
        offset = lines[..at].iter().map(|line| line.len()).sum();
        if !between.is_empty() {
            parts.push(Part::Between(std::mem::take(&mut between)));
        }
        parts.push(Part::Block(Block { line: first + 1, command, answer }));
    }
    if !between.is_empty() {
        parts.push(Part::Between(between));
    }
    Ok(parts)
}

/// No blanks at the ends of lines, no blank lines at the end, one newline after each line; empty when there is nothing.
fn normal(answer: &str) -> String {
    let mut text = String::with_capacity(answer.len());
    for line in answer.trim_end().lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn print(command: &str, answer: &str) -> String {
    let needs_frame = answer.lines().any(|line| line.is_empty() || line == RULE);
    if needs_frame {
        format!("{command}\n{RULE}\n{RULE}\n{answer}{RULE}\n{RULE}\n\n")
    } else {
        format!("{command}\n{RULE}\n{answer}\n")
    }
}

/// Between command and answer.
const RULE: &str = "----";

#[cfg(test)]
mod tests;
