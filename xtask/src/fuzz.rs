//! `cargo xtask fuzz [SECONDS]`: each target of `fuzz/` for so long, from the small seeds of `fuzz/seeds` and what earlier
//! runs found; as many at a time as there are CPUs.
//!
//! The stable compiler is enough: the instrumentation that cargo-fuzz asks a nightly one for is switched on by
//! `RUSTC_BOOTSTRAP`. A run that finds something leaves the input in `fuzz/artifacts/<target>`.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::run::{cargo, run};

/// What cargo-fuzz passes, without the address sanitizer: nothing here is unsafe.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Ccodegen-units=1";

/// How much of a failed run's output is shown.
const SHOWN_LINES: usize = 60;

/// How long each target runs.
pub(crate) fn fuzz(options: &[String]) -> Result<ExitCode> {
    let seconds: u64 =
        options.first().map_or(Ok(60), |word| word.parse().context("the number of seconds per target"))?;
    Ok(if fuzz_for(seconds)? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds all targets, then runs them. Runs add up: what one found is where the next one starts. False: something was
/// found, or nothing was run.
pub(crate) fn fuzz_for(seconds: u64) -> Result<bool> {
    let triple = host()?;
    let mut build =
        cargo(&["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &triple, "--locked"]);
    // A folder of its own; given as a word, it wins over the caller's environment.
    build.args(["--target-dir", "fuzz/target"]).env("RUSTFLAGS", FLAGS).env("RUSTC_BOOTSTRAP", "1");
    if !run(build)?.is_ok {
        return Ok(false);
    }
    let targets = targets()?;
    let waiting = Mutex::new(targets.iter());
    let next = || waiting.lock().ok()?.next();
    let lanes = thread::available_parallelism().map_or(1, usize::from);
    let results = thread::scope(|scope| {
        let lane = || {
            let mut results = Vec::new();
            while let Some(target) = next() {
                results.push(fuzz_one(target, &triple, seconds));
            }
            results
        };
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        lanes.into_iter().flat_map(|lane| lane.join().unwrap_or_default()).collect::<Result<Vec<bool>>>()
    })?;
    Ok(results.len() == targets.len() && results.into_iter().all(|is_fine| is_fine))
}

/// Runs one to its end, with its output in a file beside it.
fn fuzz_one(target: &str, triple: &str, seconds: u64) -> Result<bool> {
    let (corpus, artifacts) = (format!("fuzz/corpus/{target}"), format!("fuzz/artifacts/{target}/"));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&artifacts)?;
    let log = format!("fuzz/target/{target}.log");
    let output = fs::File::create(&log)?;
    let mut fuzzer = Command::new(format!("fuzz/target/{triple}/release/{target}"));
    fuzzer.args([&corpus, &format!("fuzz/seeds/{target}"), &format!("-max_total_time={seconds}")]);
    fuzzer.args([&format!("-artifact_prefix={artifacts}"), "-max_len=4096", "-timeout=10", "-print_final_stats=1"]);
    fuzzer.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let started = Instant::now();
    let is_fine = fuzzer.status().context(target.to_owned())?.success();
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let runs = executions(&text).map_or("?".to_owned(), |runs| runs.to_string());
    let inputs = fs::read_dir(&corpus)?.count();
    let word = if is_fine { "ok" } else { "FAILED, see its artifact" };
    println!("{target}: {word}; {runs} runs in {:.0} s, {inputs} inputs kept", started.elapsed().as_secs_f64());
    if !is_fine {
        let lines: Vec<&str> = text.lines().collect();
        println!("{}", lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n"));
    }
    Ok(is_fine)
}

/// From libFuzzer's closing statistics.
fn executions(output: &str) -> Option<u64> {
    let line = output.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))?;
    line.trim().parse().ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_read_from_the_closing_statistics() {
        let output = "Done 12 runs in 1 second(s)\nstat::number_of_executed_units: 12345\nstat::peak_rss_mb: 3\n";
        assert_eq!(executions(output), Some(12_345));
        assert_eq!(executions("==1== ERROR"), None);
    }
}
