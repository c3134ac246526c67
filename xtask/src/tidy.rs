//! `cargo xtask tidy`: the house rules, one file each.
//!
//! Each rule answers a list of findings, as `place: what is wrong`. Nothing is excused by a comment in the source: a rule
//! that needs an exception is changed here, with its reason.

mod crates;
mod files;
mod rows;
mod words;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

pub(crate) fn tidy() -> Result<ExitCode> {
    let files = tracked_files()?;
    let mut findings = Vec::new();
    findings.extend(rows::findings()?);
    findings.extend(crates::findings()?);
    for path in files.iter().filter(|path| path.is_file()) {
        // Pictures and the like hold no words.
        let Ok(text) = std::fs::read_to_string(path) else { continue };
        if path.extension().is_some_and(|extension| extension == "rs") {
            findings.extend(files::findings(path, &text));
        }
        findings.extend(words::findings(path, &text));
    }
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} files, {} findings", files.len(), findings.len());
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What git knows of, and what it would take in: a new file is held to the rules before its first commit. Without git
/// (a source archive) every file outside of build folders.
fn tracked_files() -> Result<Vec<PathBuf>> {
    if !Path::new(".git").exists() {
        let mut files = Vec::new();
        walk(Path::new("."), &mut files)?;
        return Ok(files);
    }
    let mut git = Command::new("git");
    // The tree may belong to another user than the one that checks it, as in a container.
    git.args(["-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"]);
    let output = git.output().context("git ls-files")?;
    ensure!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).collect())
}

fn walk(folder: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !path.is_dir() {
            into.push(path.strip_prefix(".").map(Path::to_owned).unwrap_or(path));
        } else if name != "target" && !name.starts_with('.') {
            walk(&path, into)?;
        }
    }
    Ok(())
}
