//! Twins of the policy lab: the same scenario for real and in virtual time, and whether the lab predicted what came.
//!
//! ```text
//!   scenario ──┬──> real: patients <── proxies (lazaret, nginx, HAProxy, Envoy) <── clients ──> Seen ──┐
//!              │          one set of destinations, one proxy and one stream of requests per contestant ├──> figures,
//!              └──> predicted: lab, many times with the same requests and other turns of the proxies ──┘    verdict
//! ```
//!
//! Requests, their methods, service times and the luck of faults are the lab's own in both; what the proxies make of
//! them is what is compared. Read in this order: [`contestant`], [`seen`] (what is measured, of either), [`lateness`], [`predicted`],
//! [`real`] with [`destinations`], [`refusals`], [`clients`] and [`peer`], then [`promise`], [`report`], [`scatter`] and
//! [`document`].
#![forbid(unsafe_code)]

pub mod contestant;

pub mod seen;

pub mod lateness;

pub mod predicted;

pub mod real;

pub mod destinations;

pub mod refusals;

pub mod clients;

pub mod peer;

pub mod promise;

pub mod report;

pub mod scatter;

pub mod document;

use std::path::Path;

use anyhow::{Context, Result};
use lab::scenario::Scenario;

/// Reads a scenario of twins.
pub fn read(path: &Path) -> Result<Scenario> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let closed = |_: &str| Err("twins have no recorded arrivals".to_owned());
    lab::scenario::read(&text, &closed).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))
}
