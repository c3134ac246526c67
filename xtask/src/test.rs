//! `cargo xtask test`: every check and every test, in one go.
//!
//! Nothing is compiled twice: one build of all targets serves programs and tests, clippy and rustdoc share their
//! metadata, and only loom (other flags) has a folder of its own. A failed step does not stop the next one, so that one
//! run shows all that is wrong. The last line is `N passed, N failed, N skipped`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;

use crate::counts::{Counts, of_cargo_test, of_nextest};
use crate::fuzz;
use crate::run::{Ran, cargo, exists, run};
use crate::setup::{self, Purpose};
use crate::tidy;

pub(crate) fn test() -> Result<ExitCode> {
    setup::setup(Purpose::Tests)?;
    let mut report = Report::new()?;

    report.check("format", || run(cargo(&["fmt", "--all", "--check"])).map(|ran| ran.is_ok));
    report.check("tidy", || Ok(tidy::tidy()? == ExitCode::SUCCESS));
    report.check("clippy", || {
        run(cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--keep-going", "--", "-D", "warnings"]))
            .map(|ran| ran.is_ok)
    });
    report.check("documentation", || {
        let mut command = cargo(&["doc", "--workspace", "--no-deps", "--locked", "--keep-going"]);
        command.env("RUSTDOCFLAGS", "-D warnings");
        run(command).map(|ran| ran.is_ok)
    });
    if exists("cargo-deny") {
        report.check("dependencies", || {
            run(cargo(&["deny", "--offline", "check", "bans", "licenses", "sources"])).map(|ran| ran.is_ok)
        });
    }
    report.check("build", || {
        run(cargo(&["build", "--workspace", "--all-targets", "--locked", "--keep-going"])).map(|ran| ran.is_ok)
    });

    // They stand outside of the workspace and would go stale unseen. libFuzzer is C++.
    if exists("c++") {
        let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
        report.check("fuzz targets", || {
            if is_ci {
                return fuzz::fuzz_for(FUZZ_SECONDS);
            }
            let words = ["check", "--manifest-path", "fuzz/Cargo.toml", "--target-dir", "fuzz/target", "--locked"];
            run(cargo(&words)).map(|ran| ran.is_ok)
        });
    }

    let aloud = report.aloud.clone();
    if exists("cargo-nextest") {
        report.tests("tests", || {
            let ran = with_notes(&aloud, &["nextest", "run", "--workspace", "--locked", "--no-fail-fast"])?;
            Ok((of_nextest(&ran.output), ran.is_ok))
        });
        report.tests("documentation tests", || {
            let ran = with_notes(&aloud, &["test", "--workspace", "--doc", "--locked", "--no-fail-fast"])?;
            Ok((of_cargo_test(&ran.output), ran.is_ok))
        });
    } else {
        report.tests("tests", || {
            let ran = with_notes(&aloud, &["test", "--workspace", "--locked", "--no-fail-fast"])?;
            Ok((of_cargo_test(&ran.output), ran.is_ok))
        });
    }
    report.tests("loom", || {
        let folder = target().join("loom");
        let folder = folder.to_string_lossy();
        let mut command = cargo(&["test", "-p", "board", "--test", "loom", "--locked", "--target-dir", &folder]);
        command.env("RUSTFLAGS", "--cfg loom");
        let ran = run(command)?;
        Ok((of_cargo_test(&ran.output), ran.is_ok))
    });
    report.close()
}

/// Runs tests with the files where they leave a line for what is to be repeated at the end.
fn with_notes(aloud: &Aloud, words: &[&str]) -> Result<Ran> {
    let mut command = cargo(words);
    command.env("LAZARET_SKIPS", &aloud.skips).env("LAZARET_AGAIN", &aloud.again);
    run(command)
}

/// Where tests say what nobody would see in their output.
#[derive(Clone)]
struct Aloud {
    /// [Skipped ones](../../crates/testkit/src/skip.rs).
    skips: PathBuf,
    /// Those that [measured again](../../crates/testkit/src/again.rs).
    again: PathBuf,
}

/// Its lines in order.
fn sorted_lines(path: &Path) -> Result<Vec<String>> {
    let mut lines: Vec<String> = std::fs::read_to_string(path)?.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    Ok(lines)
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

/// How long each fuzz target runs in CI.
const FUZZ_SECONDS: u64 = 60;

/// What came of each step.
struct Report {
    lines: Vec<String>,
    counts: Counts,
    aloud: Aloud,
    started: Instant,
}

impl Report {
    fn new() -> Result<Self> {
        let folder = std::env::current_dir()?.join(target());
        std::fs::create_dir_all(&folder)?;
        let aloud = Aloud { skips: folder.join("skipped-tests.txt"), again: folder.join("measured-again.txt") };
        std::fs::write(&aloud.skips, "")?;
        std::fs::write(&aloud.again, "")?;
        Ok(Self { lines: Vec::new(), counts: Counts::default(), aloud, started: Instant::now() })
    }

    /// A step that is right or wrong as a whole. Wrong counts as one failed test.
    fn check(&mut self, name: &str, step: impl FnOnce() -> Result<bool>) {
        let started = Instant::now();
        println!("\n== {name}");
        let is_ok = step().unwrap_or_else(|error| {
            println!("{error:#}");
            false
        });
        self.counts.failed += u64::from(!is_ok);
        let word = if is_ok { "ok" } else { "FAILED" };
        self.lines.push(format!("{name:<20} {word} ({:.0} s)", started.elapsed().as_secs_f64()));
    }

    /// A step that runs tests. One that fails without a failed test, or that ran none, counts as one failed test.
    fn tests(&mut self, name: &str, step: impl FnOnce() -> Result<(Counts, bool)>) {
        let started = Instant::now();
        println!("\n== {name}");
        let (mut counts, is_ok) = step().unwrap_or_else(|error| {
            println!("{error:#}");
            (Counts::default(), false)
        });
        if counts.failed == 0 && (!is_ok || counts.passed == 0) {
            counts.failed = 1;
        }
        self.counts.add(counts);
        let seconds = started.elapsed().as_secs_f64();
        self.lines.push(format!("{name:<20} {} passed, {} failed ({seconds:.0} s)", counts.passed, counts.failed));
    }

    fn close(self) -> Result<ExitCode> {
        println!("\n== result after {:.0} s", self.started.elapsed().as_secs_f64());
        for line in &self.lines {
            println!("{line}");
        }
        let skips = sorted_lines(&self.aloud.skips)?;
        for line in sorted_lines(&self.aloud.again)?.iter().chain(&skips) {
            println!("{line}");
        }
        let Counts { passed, failed } = self.counts;
        // A test that skipped itself ran through, so its runner calls it passed.
        let skipped = skips.len() as u64;
        println!("{} passed, {failed} failed, {skipped} skipped", passed.saturating_sub(skipped));
        Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
