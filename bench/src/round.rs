//! Rounds: one proxy after the other, forwards and backwards, and again when foreign work was in the way.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::engine::{Engine, Tally};
use crate::external;
use crate::options::Options;
use crate::proxy::{Proxy, core_busy};
use crate::work::Work;

/// One proxy's round.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) proxy: &'static str,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    /// CPU of the proxy per request, microseconds, over the whole round.
    pub(crate) cpu: f64,
    /// The same in each window.
    pub(crate) windows: Vec<f64>,
    /// Requests answered in a second of the clock.
    pub(crate) per_second: f64,
    pub(crate) latencies: Vec<Duration>,
    /// Share of the proxy's core that others took.
    pub(crate) foreign: f64,
    pub(crate) resident: u64,
}

/// All rounds of all proxies at one work.
pub(crate) fn rounds(
    engine: &mut Engine,
    proxies: &[Proxy],
    work: Work,
    options: &Options,
    folder: &Path,
) -> Result<Vec<Round>> {
    let mut all = Vec::new();
    for number in 0..options.rounds {
        let mut order: Vec<&Proxy> = proxies.iter().collect();
        if number % 2 == 1 {
            order.reverse();
        }
        for proxy in order {
            all.push(quiet_round(engine, proxy, work, options, folder)?);
        }
    }
    Ok(all)
}

/// Repeats a disturbed round, and takes the quietest when none was quiet.
fn quiet_round(engine: &mut Engine, proxy: &Proxy, work: Work, options: &Options, folder: &Path) -> Result<Round> {
    let mut best: Option<Round> = None;
    for _ in 0..TRIES {
        wait_for_quiet(engine)?;
        let round = match work.is_external() {
            true => external_round(engine, proxy, work, options, folder)?,
            false => round(engine, proxy, work, options)?,
        };
        let is_quiet = round.foreign <= FOREIGN;
        if best.as_ref().is_none_or(|best| round.foreign < best.foreign) {
            best = Some(round);
        }
        // With both cores in use the load itself is what is foreign.
        if is_quiet || work == Work::Workers {
            break;
        }
    }
    best.ok_or_else(|| anyhow::anyhow!("no round was run"))
}

fn round(engine: &mut Engine, proxy: &Proxy, work: Work, options: &Options) -> Result<Round> {
    let pace = work.pace();
    engine.aim(proxy.addr, work.connections(options.connections))?;
    engine.run(pace, WARM_UP, WARM_UP, |_| {})?;
    engine.tally = Tally::default();
    let (cpu_before, busy_before, started) = (proxy.cpu()?, core_busy()?, Instant::now());
    let mut windows = Vec::new();
    let mut last = (cpu_before, 0);
    engine.run(pace, work.length(options.length), WINDOW, |tally| {
        let Ok(cpu) = proxy.cpu() else { return };
        let answered = tally.answered - last.1;
        if answered > 0 {
            windows.push((cpu - last.0) as f64 / 1000.0 / answered as f64);
        }
        last = (cpu, tally.answered);
    })?;
    let (cpu, busy, elapsed) = (proxy.cpu()? - cpu_before, core_busy()? - busy_before, started.elapsed());
    let resident = proxy.resident()?;
    let tally = std::mem::take(&mut engine.tally);
    engine.settle()?;
    Ok(Round {
        proxy: proxy.name,
        answered: tally.answered,
        failed: tally.failed,
        cpu: cpu as f64 / 1000.0 / tally.answered.max(1) as f64,
        windows,
        per_second: tally.answered as f64 / elapsed.as_secs_f64(),
        latencies: tally.latencies,
        foreign: busy.saturating_sub(cpu) as f64 / elapsed.as_nanos() as f64,
        resident,
    })
}

fn external_round(engine: &mut Engine, proxy: &Proxy, work: Work, options: &Options, folder: &Path) -> Result<Round> {
    let (cpu_before, busy_before, started) = (proxy.cpu()?, core_busy()?, Instant::now());
    let sent = external::send(engine, proxy, work, folder, options.length)?;
    let (cpu, busy, elapsed) = (proxy.cpu()? - cpu_before, core_busy()? - busy_before, started.elapsed());
    let per_request = cpu as f64 / 1000.0 / sent.succeeded.max(1) as f64;
    Ok(Round {
        proxy: proxy.name,
        answered: sent.succeeded,
        failed: sent.failed,
        cpu: per_request,
        windows: vec![per_request],
        per_second: sent.succeeded as f64 / elapsed.as_secs_f64(),
        latencies: Vec::new(),
        foreign: busy.saturating_sub(cpu) as f64 / elapsed.as_nanos() as f64,
        resident: proxy.resident()?,
    })
}

/// Until the proxy's core was idle for a moment, or patience ends.
fn wait_for_quiet(engine: &mut Engine) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let (before, started) = (core_busy()?, Instant::now());
        engine.idle(Duration::from_millis(100))?;
        let busy = (core_busy()? - before) as f64 / started.elapsed().as_nanos() as f64;
        if busy <= FOREIGN {
            break;
        }
    }
    Ok(())
}

const WARM_UP: Duration = Duration::from_millis(300);
const WINDOW: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(3);
const FOREIGN: f64 = 0.06;
const TRIES: usize = 3;
