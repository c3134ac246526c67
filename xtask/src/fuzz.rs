//! `cargo xtask fuzz [SECONDS]`: each target of `fuzz/` for so long, from the small seeds of `fuzz/seeds` and what earlier
//! runs found.
//!
//! The stable compiler is enough: the instrumentation that cargo-fuzz asks a nightly one for is switched on by
//! `RUSTC_BOOTSTRAP`. A run that finds something leaves the input in `fuzz/artifacts/<target>`.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::run::{cargo, run};

/// What cargo-fuzz passes, without the address sanitizer: nothing here is unsafe.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Ccodegen-units=1";

/// Builds all targets, then runs one after the other. Runs add up: what one found is where the next one starts.
pub(crate) fn fuzz(options: &[String]) -> Result<ExitCode> {
    let seconds: u64 =
        options.first().map_or(Ok(60), |word| word.parse().context("the number of seconds per target"))?;
    let triple = host()?;
    let mut build = cargo(&["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &triple]);
    // A folder of its own; given as a word, it wins over the caller's environment.
    build.args(["--target-dir", "fuzz/target"]).env("RUSTFLAGS", FLAGS).env("RUSTC_BOOTSTRAP", "1");
    if !run(build)?.is_ok {
        return Ok(ExitCode::FAILURE);
    }
    let mut all_are_fine = true;
    for target in targets()? {
        let (corpus, artifacts) = (format!("fuzz/corpus/{target}"), format!("fuzz/artifacts/{target}/"));
        fs::create_dir_all(&corpus)?;
        fs::create_dir_all(&artifacts)?;
        let mut fuzzer = Command::new(format!("fuzz/target/{triple}/release/{target}"));
        fuzzer.args([&corpus, &format!("fuzz/seeds/{target}"), &format!("-max_total_time={seconds}")]);
        fuzzer.args([&format!("-artifact_prefix={artifacts}"), "-max_len=4096", "-timeout=10", "-print_final_stats=1"]);
        let is_fine = run(fuzzer)?.is_ok;
        println!("{target}: {}", if is_fine { "ok" } else { "FAILED, see its artifact" });
        all_are_fine &= is_fine;
    }
    Ok(if all_are_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The targets by name, in order.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(Path::new("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    names.sort_unstable();
    Ok(names)
}

/// The machine's own target triple: with `--target` the flags do not reach build scripts.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("rustc names its host")?.to_owned())
}
