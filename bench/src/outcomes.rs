//! `bench outcomes`: what it costs to record how attempts end, and whether anything grows under a storm of failures.
//!
//! ```text
//!   8 workers x 1 000 destinations ──start, answered, count / report──> board ──drain, each 100 ms──> health core
//! ```
//! Times are the CPU time of the measuring thread, so other work on the machine moves them little. The storm runs in
//! virtual time over the very code that the monitor turns (crate `bridge`); its memory is the process's.

use std::sync::Barrier;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use board::Ended;
use exchange::snapshot::Snapshot;
use model::id::{Slot, WorkerId};
use model::outcome::{FailureKind, Outcome, OutcomeClass, Try};
use model::time::Timestamp;

use crate::site::{Checks, Site, TICK, cpu};

/// Measures and prints.
pub(crate) fn run() -> Result<()> {
    println!(
        "{DESTINATIONS} destinations, {WORKERS} workers; CPU ns of the recording thread, least (median) of {RUNS} runs"
    );
    let (least, median) = one_worker(succeed)?;
    println!("success, one worker: {least:.0} ({median:.0})");
    let (least, median) = eight_workers()?;
    println!("success, all workers at once: {least:.0} ({median:.0})");
    let (least, median) = one_worker(|worker, slot| fail(worker, slot, Timestamp::from_secs(1)))?;
    println!("failure, one worker: {least:.0} ({median:.0})");
    storm()
}

fn succeed(worker: &board::Worker<Snapshot>, slot: Slot) {
    let flight = worker.start(slot);
    flight.answered(Timestamp::from_secs(1), Duration::from_millis(3));
    worker.count(slot, OutcomeClass::Ok, Try::First);
}

fn fail(worker: &board::Worker<Snapshot>, slot: Slot, now: Timestamp) {
    let flight = worker.start(slot);
    let outcome = Outcome {
        class: OutcomeClass::AppFail,
        failure: Some(FailureKind::Reset),
        status: None,
        retryable: true,
        client_gone: false,
    };
    worker.report(slot, Ended { picked_at: now, ended_at: now, which: Try::First, outcome });
    drop(flight);
}

/// Least and median of the time of one call. What stands on the board is taken out between the runs.
fn one_worker(record: impl Fn(&board::Worker<Snapshot>, Slot)) -> Result<(f64, f64)> {
    let mut site = Site::new(DESTINATIONS, WORKERS, Checks::Passive)?;
    let worker = site.board.worker(WorkerId(0)).context("a worker's place")?;
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let before = cpu()?;
        (0..CALLS).for_each(|number| record(&worker, slot(number)));
        times.push(cpu()?.saturating_sub(before).as_nanos() as f64 / f64::from(CALLS));
        site.reader.drain(|_| ());
    }
    Ok(least_and_median(times))
}

/// The same with every worker on a thread of its own, all at the same time, over the same destinations.
fn eight_workers() -> Result<(f64, f64)> {
    let site = Site::new(DESTINATIONS, WORKERS, Checks::Passive)?;
    let start = Barrier::new(WORKERS);
    let times = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WORKERS)
            .map(|id| {
                let (board, start) = (&site.board, &start);
                scope.spawn(move || -> Result<Vec<f64>> {
                    let worker = board.worker(WorkerId(u32::try_from(id)?)).context("a worker's place")?;
                    let mut times = Vec::new();
                    for _ in 0..RUNS {
                        start.wait();
                        let before = cpu()?;
                        (0..CALLS).for_each(|number| succeed(&worker, slot(number)));
                        times.push(cpu()?.saturating_sub(before).as_nanos() as f64 / f64::from(CALLS));
                    }
                    Ok(times)
                })
            })
            .collect();
        let all = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a panic"))));
        all.collect::<Result<Vec<_>>>()
    })?;
    Ok(least_and_median(times.concat()))
}

/// 50 000 failures a second on all destinations, for minutes: whether memory or the core's work grows.
fn storm() -> Result<()> {
    let mut site = Site::new(DESTINATIONS, WORKERS, Checks::Passive)?;
    let workers: Option<Vec<_>> = (0..WORKERS).map(|id| site.board.worker(WorkerId(u32::try_from(id).ok()?))).collect();
    let workers = workers.context("the workers' places")?;
    let (mut at_first, mut spent, mut ticks) = (0, Duration::ZERO, Vec::new());
    for tick in 0..STORM_TICKS {
        let now = Timestamp::ZERO + TICK * (tick + 1);
        for number in 0..FAILURES_PER_TICK {
            let worker = workers.get(number as usize % WORKERS).context("a worker")?;
            fail(worker, slot(tick * FAILURES_PER_TICK + number), now);
        }
        let before = cpu()?;
        site.tick(now);
        let took = cpu()?.saturating_sub(before);
        spent += took;
        ticks.push(took.as_secs_f64() * 1e3);
        if tick == STORM_TICKS / 4 {
            at_first = resident()?;
        }
    }
    let at_last = resident()?;
    let (merged, failures) = (site.board.merged(), f64::from(STORM_TICKS * FAILURES_PER_TICK));
    let quarter = ticks.len() / 4;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    println!(
        "storm, {} failures/s for {} s: {:.0} ns a failure in the core, a tick {:.2} ms in the second quarter and {:.2} in \
         the last; resident {:.1} MiB after a quarter, {:.1} at the end; {merged} events merged into counts",
        FAILURES_PER_TICK * 10,
        STORM_TICKS / 10,
        spent.as_nanos() as f64 / failures,
        mean(ticks.get(quarter..2 * quarter).unwrap_or_default()),
        mean(ticks.get(3 * quarter..).unwrap_or_default()),
        mib(at_first),
        mib(at_last),
    );
    ensure!(at_last < at_first + GROWTH, "memory grew");
    Ok(())
}

/// Another destination each time, far from the one before.
fn slot(number: u32) -> Slot {
    Slot(number.wrapping_mul(7919) % DESTINATIONS)
}

fn least_and_median(mut times: Vec<f64>) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    (times.first().copied().unwrap_or_default(), times.get(times.len() / 2).copied().unwrap_or_default())
}

/// Bytes.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

const DESTINATIONS: u32 = 1000;
const WORKERS: usize = 8;
/// Fewer than a ring has places, so that each failure is an event.
const CALLS: u32 = 4000;
const RUNS: usize = 500;
const STORM_TICKS: u32 = 1200;
const FAILURES_PER_TICK: u32 = 5000;
/// An allocator's pages come and go.
const GROWTH: u64 = 2 << 20;
