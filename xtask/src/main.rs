//! The project's own tools: `cargo xtask tidy | test | bench | twins | fuzz | setup`.
//!
//! `test` is the one test command, for people and for CI alike: it installs what is missing, builds once, and runs every
//! check and every test. See docs/testing.md and docs/performance.md.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod counts;
mod fuzz;
mod python;
mod run;
mod setup;
mod test;
mod tidy;
mod twins;

use std::process::ExitCode;

use anyhow::{Result, bail};

fn main() -> ExitCode {
    match dispatch() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch() -> Result<ExitCode> {
    let mut words = std::env::args().skip(1);
    let command = words.next().unwrap_or_default();
    let rest: Vec<String> = words.collect();
    std::env::set_current_dir(run::root()?)?;
    match (command.as_str(), rest.as_slice()) {
        ("tidy", []) => tidy::tidy(),
        ("test", []) => test::test(),
        ("setup", []) => setup::setup(setup::Purpose::All),
        ("fuzz", options) => fuzz::fuzz(options),
        ("bench", options) => bench::bench(options),
        ("twins", options) => twins::twins(options),
        (_, _) => {
            bail!(
                "usage: cargo xtask tidy | test | setup | fuzz [seconds] | bench [options, see docs/performance.md] | twins \
                 [options, see docs/twins.md]"
            )
        }
    }
}
