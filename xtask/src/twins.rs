//! `cargo xtask twins`: builds the programs with optimisation and holds the policy lab against real proxies.

use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};

use crate::run::{cargo, run};
use crate::setup::{self, Purpose};

/// `options` go to the program; `cargo xtask twins --help` lists them.
pub(crate) fn twins(options: &[String]) -> Result<ExitCode> {
    setup::setup(Purpose::Benches)?;
    let built = run(cargo(&["build", "--release", "--locked", "-p", "lazaret", "-p", "twins", "--bins"]))?;
    ensure!(built.is_ok, "the build failed");
    let folder = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), std::path::PathBuf::from);
    let mut twins = Command::new(folder.join("release/twins"));
    twins.args(options);
    let ran = run(twins)?;
    Ok(if ran.is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
