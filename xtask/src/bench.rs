//! `cargo xtask bench`: builds the programs with optimisation and runs the side-by-side bench.

use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};

use crate::run::{cargo, run};
use crate::setup::{self, Purpose};

/// `options` go to the bench; `cargo xtask bench --help` lists them.
pub(crate) fn bench(options: &[String]) -> Result<ExitCode> {
    setup::setup(Purpose::Benches)?;
    let built = run(cargo(&["build", "--release", "--locked", "-p", "lazaret", "-p", "bench", "--bins"]))?;
    ensure!(built.is_ok, "the build failed");
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), std::path::PathBuf::from);
    let mut bench = Command::new(folder.join("release/bench"));
    bench.args(options);
    let ran = run(bench)?;
    Ok(if ran.is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
