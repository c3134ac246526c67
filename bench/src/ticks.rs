//! `bench ticks`: what a tick of the health core costs while most destinations carry nothing.
//!
//! Virtual time over the very code that the monitor turns, ten ticks a second; times are the CPU time of the measuring
//! thread. Each line is 100 clusters of 100 destinations, which have all answered once, and of these so many that go on
//! answering in every tick.

use anyhow::{Context, Result};
use model::id::{Slot, WorkerId};
use model::outcome::{OutcomeClass, Try};
use model::time::Timestamp;

use crate::site::{Checks, Site, TICK, cpu};

/// Measures and prints.
pub(crate) fn run() -> Result<()> {
    println!("{} destinations; CPU us of a tick, mean of {TICKS}, and its share of one core", CLUSTERS * DESTINATIONS);
    for checks in [Checks::None, Checks::Passive] {
        for busy in [0, 100, CLUSTERS * DESTINATIONS] {
            let micros = tick(checks, busy)?;
            println!("checks {checks:?}, {busy} busy: {micros:.1} us, {:.2} %", micros / TICK.as_secs_f64() / 1e4);
        }
    }
    Ok(())
}

/// Microseconds of one tick.
fn tick(checks: Checks, busy: u32) -> Result<f64> {
    let mut site = Site::of(CLUSTERS, DESTINATIONS, WORKERS, checks)?;
    let workers: Option<Vec<_>> = (0..WORKERS).map(|id| site.board.worker(WorkerId(u32::try_from(id).ok()?))).collect();
    let workers = workers.context("the workers' places")?;
    let answer = |slots: u32, now: Timestamp| {
        for number in 0..slots {
            // Of one cluster as of all: spread over them.
            let slot = Slot(number * (CLUSTERS * DESTINATIONS / slots));
            for worker in &workers {
                worker.start(slot).answered(now, TICK / 50);
                worker.count(slot, OutcomeClass::Ok, Try::First);
            }
        }
    };
    answer(CLUSTERS * DESTINATIONS, Timestamp::ZERO);
    let (mut now, mut spent) = (Timestamp::ZERO, 0.0);
    for number in 0..QUIET_AFTER + TICKS {
        now = now + TICK;
        answer(busy, now);
        let before = cpu()?;
        site.tick(now);
        let took = cpu()?.saturating_sub(before);
        spent += if number < QUIET_AFTER { 0.0 } else { took.as_secs_f64() };
    }
    Ok(spent * 1e6 / f64::from(TICKS))
}

const CLUSTERS: u32 = 100;
const DESTINATIONS: u32 = 100;
const WORKERS: usize = 2;
/// Two minutes: what was seen in the first tick is forgotten by then.
const QUIET_AFTER: u32 = 1200;
const TICKS: u32 = 200;
