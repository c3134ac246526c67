//! `bench outcomes`: what it costs to record how attempts end, and whether anything grows under a storm of failures.
//!
//! ```text
//!   8 workers x 1 000 destinations ──start, answered, count / report──> board ──drain, each 100 ms──> health core
//! ```
//! Times are the CPU time of the measuring thread, so other work on the machine moves them little. The storm runs in
//! virtual time over the very code that the monitor turns (crate `bridge`); its memory is the process's.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use board::{Board, Ended, Reader};
use bridge::{Budgets, Publisher, Pulses, Reach, feed};
use config::{FileKind, PolicyNames};
use exchange::snapshot::Snapshot;
use health::{Core, Input};
use model::id::{Slot, WorkerId};
use model::outcome::{FailureKind, Outcome, OutcomeClass};
use model::time::Timestamp;
use nix::time::{ClockId, clock_gettime};

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
    worker.count(slot, OutcomeClass::Ok);
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
    worker.report(slot, Ended { picked_at: now, ended_at: now, outcome });
    drop(flight);
}

/// Least and median of the time of one call. What stands on the board is taken out between the runs.
fn one_worker(record: impl Fn(&board::Worker<Snapshot>, Slot)) -> Result<(f64, f64)> {
    let mut site = Site::new()?;
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
    let site = Site::new()?;
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
    let mut site = Site::new()?;
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

/// A cluster with the default passive policies, its board, and what turns them.
struct Site {
    core: Core,
    publisher: Publisher,
    budgets: Budgets,
    pulses: Pulses,
    board: Arc<Board<Snapshot>>,
    reader: Reader,
    drained_at: Timestamp,
}

impl Site {
    fn new() -> Result<Self> {
        let list: Vec<String> = (0..DESTINATIONS)
            .map(|n| format!("d{n}: {{address: \"http://10.0.{}.{}/\"}}", n / 250, n % 250 + 1))
            .collect();
        let text = format!(
            "listeners: {{web: {{address: \"127.0.0.1:1\"}}}}\nroutes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: \
             app}}}}\nclusters: {{app: {{health_check: {{passive: {{}}}}, destinations: {{{}}}}}}}\n",
            list.join(", ")
        );
        let loaded = config::load("bench", text.as_bytes(), FileKind::Native, &PolicyNames::default(), None);
        let loaded = loaded.map_err(|report| anyhow::anyhow!("{:?}", report.errors().next()))?;
        let config = Arc::new(loaded.config);
        let mut core = Core::new(1);
        let mut publisher = Publisher::new(balance::Policies::default(), config);
        core.handle(Timestamp::ZERO, Input::Configured { clusters: publisher.clusters(), summary: String::new() });
        let mut budgets = Budgets::default();
        let board = Board::new(WORKERS, Arc::new(publisher.snapshot(&mut core, &mut budgets)));
        budgets.open(&board, Timestamp::ZERO);
        let reader = board.reader().context("the board's reader")?;
        Ok(Self { core, publisher, budgets, pulses: Pulses::default(), board, reader, drained_at: Timestamp::ZERO })
    }

    /// As the monitor does at each of its ticks.
    fn tick(&mut self, now: Timestamp) {
        let owners = self.publisher.owners();
        let taken = feed::take(&mut self.reader, owners.keys(), Reach::All, self.drained_at, now);
        self.drained_at = now;
        self.budgets.earn(&self.board, &taken.sums, owners);
        taken.into_inputs().for_each(|input| self.core.handle(now, input));
        if let Some(pulses) = self.pulses.take(&self.board, &self.core.pulse_slots(), now) {
            self.core.handle(now, pulses);
        }
        self.core.handle(now, Input::TimerDue);
        let mut is_news = false;
        while let Some(output) = self.core.poll_output() {
            is_news |= matches!(output, health::Output::Publish);
        }
        if is_news {
            let snapshot = self.publisher.snapshot(&mut self.core, &mut self.budgets);
            self.board.publish(Arc::new(snapshot));
        }
    }
}

/// Another destination each time, far from the one before.
fn slot(number: u32) -> Slot {
    Slot(number.wrapping_mul(7919) % DESTINATIONS)
}

fn least_and_median(mut times: Vec<f64>) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    (times.first().copied().unwrap_or_default(), times.get(times.len() / 2).copied().unwrap_or_default())
}

/// Time of this thread on the CPU.
fn cpu() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
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
const TICK: Duration = Duration::from_millis(100);
const STORM_TICKS: u32 = 1200;
const FAILURES_PER_TICK: u32 = 5000;
/// An allocator's pages come and go.
const GROWTH: u64 = 2 << 20;
