//! The policy lab: the cores that decide in production, in virtual time, against scripted traffic and faults.
//!
//! Pure: a scenario's text and a seed go in, figures come out; the same ones give the same bytes on every machine.
//!
//! ```text
//!   scenario ──┬──> sim (world: sources, proxies with their health cores, destinations) ──> meter ──> figures ──┐
//!   policy ────┘        once per policy, seed, and retries on or off                                           ├──> report
//!   chance: streams named by what they are for, so that every policy meets the same luck      compare ─────────┘
//! ```
//!
//! Read in this order: [`scenario`] (what happens), [`policy`] (who is compared) and [`models`] (of other products),
//! [`sim`] (the world), [`meter`] and [`histogram`] (what it cost), [`compare`], [`report`],
//! [`verdict`], [`tune`], [`chance`], [`recorded`] (access logs), [`replay`] (recordings of a real process).
#![forbid(unsafe_code)]

pub mod scenario;

pub mod policy;

pub mod models;

pub mod sim;

pub mod meter;

pub mod histogram;

pub mod compare;

pub mod report;

pub mod verdict;

pub mod tune;

pub mod chance;

pub mod recorded;

pub mod replay;

use model::time::Timestamp;

use crate::chance::Chance;
use crate::meter::{Figures, Film, Trace};
use crate::policy::{Policy, PolicyError};
use crate::scenario::Scenario;
use crate::sim::World;
use crate::sim::source::{Request, Source};

/// Runs a scenario once.
pub fn run(scenario: &Scenario, policy: &Policy, seed: u64) -> Result<(Figures, Film), PolicyError> {
    Ok(World::new(scenario, policy, Chance::new(seed))?.run())
}

/// Runs a scenario once and tells everything that happened.
pub fn trace(scenario: &Scenario, policy: &Policy, chance: Chance) -> Result<Trace, PolicyError> {
    Ok(World::new(scenario, policy, chance)?.trace())
}

/// The requests that come by themselves to a scenario, in the order of their times: the very ones of a run with this
/// chance. Clients of a closed loop are not among them.
pub fn requests(scenario: &Scenario, chance: Chance) -> Vec<(Timestamp, Request)> {
    let end = Timestamp::ZERO + scenario.duration;
    let mut all = Vec::new();
    for (number, traffic) in (0..).zip(&scenario.traffic) {
        let mut source = Source::new(traffic, number, chance);
        while source.next_at < end {
            let at = source.next_at;
            all.push((at, source.take()));
        }
    }
    all.sort_by_key(|(at, request)| (*at, request.number));
    all
}
