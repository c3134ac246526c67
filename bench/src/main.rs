//! Side-by-side runs against peers: CPU time per request and latency at a fixed rate, on one core each.
//!
//! The load generator and the three destinations are this one process, one thread that spins on the second core; the
//! proxy under test has the first core to itself. Rounds interleave all proxies and reverse their order, so that a noisy
//! spell hits everybody; only ratios of the same rounds count. The method stands in docs/performance.md.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod compare;
mod engine;
mod options;
mod proxy;
mod report;
mod round;

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use crate::engine::Engine;
use crate::options::Options;
use crate::proxy::Proxy;
use crate::report::Report;
use crate::round::{Round, rounds};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        println!("{}", options::USAGE);
        return Ok(());
    };
    ensure!(options::all_cores() >= 2, "one core for the proxy and one for the load are needed");
    proxy::pin_to(options::LOAD_CORE)?;
    let mut engine = Engine::new()?;
    let mut proxies = Vec::new();
    for peer in proxy::peers(&options) {
        match Proxy::start(&peer) {
            Ok(proxy) => proxies.push(proxy),
            Err(error) => eprintln!("left out: {}: {error:#}", peer.name),
        }
    }
    ensure!(!proxies.is_empty(), "no proxy could be started");
    compare::compare(&mut engine, &proxies)?;
    let mut all: Vec<Round> = rounds(&mut engine, &proxies, &options, None)?;
    if let Some(rate) = options.rate {
        all.extend(rounds(&mut engine, &proxies, &options, Some(rate))?);
    }
    let report = Report::new(&proxies, &all, &options);
    print!("{}", report.text());
    if let Some(path) = &options.json {
        std::fs::write(path, report.json()?).with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &options.document {
        report.write_into(path)?;
    }
    Ok(())
}
