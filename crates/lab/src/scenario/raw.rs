//! The file as it is written: every key, nothing checked against another.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::units::{Rate, Span};

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// 1.
    pub version: Spanned<u32>,
    /// One line.
    pub title: String,
    /// Simulated time.
    pub duration: Spanned<Span>,
    /// Not counted.
    #[serde(default)]
    pub warm_up: Option<Spanned<Span>>,
    /// Who carries the traffic.
    #[serde(default)]
    pub proxies: Proxies,
    /// Active checks.
    #[serde(default)]
    pub checks: Option<Checks>,
    /// Of one attempt.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// Tries.
    #[serde(default)]
    pub retry: Retry,
    /// For all tries together.
    #[serde(default)]
    pub total: Option<Spanned<Span>>,
    /// Who serves.
    pub destinations: Spanned<Vec<Spanned<Destinations>>>,
    /// Who asks.
    pub traffic: Spanned<Vec<Spanned<Traffic>>>,
    /// What goes wrong.
    #[serde(default)]
    pub faults: Vec<Spanned<Fault>>,
}

/// `proxies`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Proxies {
    /// How many.
    pub count: Option<Spanned<u32>>,
    /// Threads of each.
    pub workers: Option<Spanned<u32>>,
    /// Sums are taken.
    pub tick: Option<Spanned<Span>>,
    /// Until traffic follows.
    pub publish: Option<Spanned<Span>>,
    /// To a destination and back.
    pub round_trip: Option<Spanned<Span>>,
}

/// `checks`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checks {
    /// From one to the next.
    pub interval: Spanned<Span>,
    /// Of one.
    pub timeout: Spanned<Span>,
}

/// `timeouts`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// To connect.
    pub connect: Option<Spanned<Span>>,
    /// To the head of the response.
    pub response: Option<Spanned<Span>>,
}

/// `retry`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// All tries.
    pub attempts: Option<Spanned<u8>>,
}

/// One entry of `destinations`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Destinations {
    /// One destination each.
    pub ids: Vec<String>,
    /// How long a request is served.
    pub service: ServiceTime,
    /// The knee.
    #[serde(default)]
    pub concurrency: Option<u32>,
    /// Waiting.
    #[serde(default)]
    pub backlog: Option<u32>,
    /// When it is full.
    #[serde(default)]
    pub on_full: Option<OnFull>,
    /// Share of traffic.
    #[serde(default)]
    pub weight: Option<u32>,
}

/// `service`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServiceTime {
    /// Half take less.
    pub p50: Option<Span>,
    /// Nine of ten take less.
    pub p90: Option<Span>,
    /// All but one of a hundred take less.
    pub p99: Option<Span>,
    /// All but one of a thousand take less.
    pub p999: Option<Span>,
    /// The mean of an exponential distribution.
    pub exponential: Option<Span>,
    /// Always the same.
    pub constant: Option<Span>,
}

/// `on_full`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum OnFull {
    /// `refuse`.
    Word(String),
    /// An answer.
    Answer(FullAnswer),
}

/// An answer to one too many.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FullAnswer {
    /// Its status.
    pub status: u16,
    /// Its Retry-After.
    #[serde(default)]
    pub retry_after: Option<Span>,
}

/// One entry of `traffic`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// `poisson`, `closed` or `log`.
    pub arrivals: String,
    /// Shares.
    #[serde(default)]
    pub methods: BTreeMap<String, f64>,
    /// Until the client goes away.
    #[serde(default)]
    pub patience: Option<Span>,
    /// poisson.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// poisson.
    #[serde(default)]
    pub bursts: Option<Bursts>,
    /// poisson.
    #[serde(default)]
    pub diurnal: Option<Diurnal>,
    /// closed.
    #[serde(default)]
    pub clients: Option<u32>,
    /// closed.
    #[serde(default)]
    pub think: Option<Span>,
    /// closed.
    #[serde(default)]
    pub again: Option<u32>,
    /// closed.
    #[serde(default)]
    pub pause: Option<Span>,
    /// closed.
    #[serde(default)]
    pub away: Option<Span>,
    /// log.
    #[serde(default)]
    pub file: Option<String>,
}

/// `bursts`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// From one to the next.
    pub every: Span,
    /// How long.
    pub lasts: Span,
    /// How much more.
    pub factor: f64,
}

/// `diurnal`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diurnal {
    /// From hill to hill.
    pub period: Span,
    /// The valley.
    pub low: f64,
}

/// One entry of `faults`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What.
    pub kind: String,
    /// When.
    pub at: Span,
    /// How long; to the end when it is left out.
    #[serde(default)]
    pub lasts: Option<Span>,
    /// Again after this.
    #[serde(default)]
    pub every: Option<Span>,
    /// No new one from here on.
    #[serde(default)]
    pub until: Option<Span>,
    /// To whom.
    #[serde(default)]
    pub on: Vec<String>,
    /// From which proxies.
    #[serde(default)]
    pub proxies: Option<Vec<u32>>,
    /// slow, cold, capacity.
    #[serde(default)]
    pub factor: Option<f64>,
    /// errors, resets, cuts, client_errors.
    #[serde(default)]
    pub share: Option<f64>,
    /// errors, client_errors.
    #[serde(default)]
    pub status: Option<u16>,
    /// errors.
    #[serde(default)]
    pub retry_after: Option<Span>,
    /// `pass` or `fail`.
    #[serde(default)]
    pub probes: Option<String>,
    /// `healthy` or `sick`.
    #[serde(default)]
    pub truth: Option<String>,
}
