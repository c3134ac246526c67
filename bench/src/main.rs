//! Side-by-side runs against peers: CPU time per request, latency at fixed rates, memory at rest, on one core each.
//!
//! The load generator and the three destinations are this one process, one thread that spins on the second core; the
//! proxy under test has the first core to itself. Rounds interleave all proxies and reverse their order, so that a noisy
//! spell hits everybody; only ratios of the same rounds count. The method stands in docs/performance.md.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod certificate;
mod chart;
mod compare;
mod engine;
mod external;
mod idle;
mod instructions;
mod options;
mod outcomes;
mod peers;
mod proxy;
mod report;
mod round;
mod site;
mod ticks;
mod work;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use crate::engine::Engine;
use crate::external::Calls;
use crate::options::{Idle, Options};
use crate::peers::Peer;
use crate::proxy::Proxy;
use crate::report::{Report, Table};
use crate::round::rounds;
use crate::work::Work;

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
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((word, rest)) = words.split_first()
        && word == "instructions"
    {
        return instructions::run(rest);
    }
    if words == ["outcomes"] {
        return outcomes::run();
    }
    if words == ["ticks"] {
        return ticks::run();
    }
    let Some(options) = Options::parse(words.into_iter())? else {
        println!("{}", options::USAGE);
        return Ok(());
    };
    ensure!(options::all_cores() >= 2, "one core for the proxy and one for the load are needed");
    // Configurations, certificates, pid files; always the same place, so that nothing piles up.
    let folder = std::env::temp_dir().join("lazaret-bench");
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    certificate::make(&folder)?;
    proxy::pin_to(options::LOAD_CORE)?;
    let mut report = Report::new(&options);
    for &work in &options.works {
        let table = measure(work, &options, &folder).with_context(|| work.name())?;
        println!("{}", table.text());
        report.tables.push(table);
    }
    if options.idle == Idle::Measured {
        report.memory = idle::measure(&folder, &options.only, AT_REST)?;
        println!("{}", report.memory_text());
    }
    if let Some(path) = &options.json {
        std::fs::write(path, report.json()?).with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &options.document {
        report.write_into(path)?;
        if let Some(small) = report.tables.first() {
            std::fs::write(path.with_extension("svg"), chart::bars(small, &report.machine, &report.date))?;
        }
    }
    Ok(())
}

/// One work, all its peers.
fn measure(work: Work, options: &Options, folder: &Path) -> Result<Table> {
    let mut engine = Engine::new(work.messages(), work.transport(), certificate::client(folder, "http/1.1")?)?;
    let _calls = if work == Work::Grpc { Some(Calls::start(folder)?) } else { None };
    let is_wanted = |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let mut proxies = Vec::new();
    for &name in work.peers().iter().filter(|name| is_wanted(name)) {
        match Peer::new(name, work, folder).and_then(|peer| Proxy::start(&peer)) {
            Ok(proxy) => proxies.push(proxy),
            Err(error) => eprintln!("left out: {name}: {error:#}"),
        }
    }
    ensure!(!proxies.is_empty(), "no proxy could be started");
    // Probes of those that probe have to be over, or their first answers come without a destination.
    engine.idle(std::time::Duration::from_millis(500))?;
    if !work.is_external() {
        compare::compare(&mut engine, &proxies)?;
    }
    let all = rounds(&mut engine, &proxies, work, options, folder)?;
    Ok(Table::new(work, &proxies, &all))
}

/// Connections at rest; with the load's own ends below what a process may have.
const AT_REST: usize = 9_000;
