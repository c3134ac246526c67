//! `cargo xtask bench`: builds the programs as packages ship them (`profile.dist`) and runs the side-by-side bench.

use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};

use crate::run::{cargo, run};
use crate::setup::{self, Purpose};

/// `options` go to the bench; `cargo xtask bench --help` lists them.
pub(crate) fn bench(options: &[String]) -> Result<ExitCode> {
    setup::setup(Purpose::Benches)?;
    let built = run(cargo(&["build", "--profile", "dist", "--locked", "-p", "lazaret", "-p", "bench", "--bins"]))?;
    ensure!(built.is_ok, "the build failed");
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), std::path::PathBuf::from);
    if asks_for_pingora(options) {
        let manifest =
            ["build", "--release", "--locked", "--manifest-path", "bench/pingora/Cargo.toml", "--target-dir"];
        let mut build = cargo(&manifest);
        build.arg(folder.join("pingora"));
        // The bench says whom it leaves out.
        run(build)?;
    }
    let mut bench = Command::new(folder.join("dist/bench"));
    bench.args(options);
    let ran = run(bench)?;
    Ok(if ran.is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// It is a library: what its users run is built here, which takes minutes and a C compiler.
fn asks_for_pingora(options: &[String]) -> bool {
    let has = |word: &str| options.iter().any(|option| option.split(',').any(|part| part == word));
    let is_measured = !has("--help") && !has("instructions") && !has("outcomes");
    let is_work = !has("--work") || has("small") || has("all");
    is_measured && is_work && (!has("--only") || has("pingora"))
}
