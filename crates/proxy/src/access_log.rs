//! The access log: one JSON object a line, one line per exchange.
//!
//! `bytes_in` counts the request's content, `bytes_out` everything that was sent to the client for it. `ms` runs from the
//! complete head to the end. An attempt's `outcome` is the failure where there was one, else the class.

use std::time::Duration;

use exchange::{Report, Snapshot};
use model::outcome::OutcomeClass;
use model::time::Timestamp;
use serde::Serialize;

/// One line.
#[derive(Serialize)]
pub(crate) struct Line<'a> {
    pub(crate) at: String,
    pub(crate) listener: &'a str,
    pub(crate) request_id: Option<&'a str>,
    pub(crate) client: String,
    pub(crate) route: Option<&'a str>,
    pub(crate) cluster: Option<&'a str>,
    pub(crate) method: &'a str,
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    pub(crate) reason: &'a str,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) ms: f64,
    pub(crate) attempts: &'a [AttemptLine],
    pub(crate) retry_denied: Option<&'static str>,
}

/// One attempt in a line.
#[derive(Serialize)]
pub(crate) struct AttemptLine {
    pub(crate) destination: String,
    pub(crate) outcome: &'static str,
    pub(crate) status: Option<u16>,
    pub(crate) ms: f64,
    pub(crate) reused: bool,
}

impl AttemptLine {
    /// From what the machine reports.
    pub(crate) fn of(report: &Report, snapshot: &Snapshot, now: Timestamp, reused: bool) -> Self {
        let cluster = snapshot.clusters.get(report.cluster.index());
        let destination = cluster.and_then(|cluster| cluster.destinations.get(report.destination.index()));
        let class = report.outcome.class;
        let is_fine = matches!(class, OutcomeClass::Ok);
        Self {
            destination: destination.map(|destination| destination.id.to_string()).unwrap_or_default(),
            outcome: match report.outcome.failure {
                Some(failure) if !is_fine => failure.as_str(),
                Some(_) | None => class.as_str(),
            },
            status: report.outcome.status,
            ms: millis(now.since(report.picked_at)),
            reused,
        }
    }
}

impl Line<'_> {
    /// The line's bytes, without a line break.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        // Strings, numbers and lists of them always serialise.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Milliseconds to three places.
pub(crate) fn millis(span: Duration) -> f64 {
    span.as_micros() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_field_stands_in_the_documentation() {
        let attempt = AttemptLine { destination: String::new(), outcome: "", status: None, ms: 0.0, reused: false };
        let line = Line {
            at: String::new(),
            listener: "",
            request_id: None,
            client: String::new(),
            route: None,
            cluster: None,
            method: "",
            host: "",
            path: "",
            status: 0,
            reason: "",
            bytes_in: 0,
            bytes_out: 0,
            ms: 0.0,
            attempts: &[attempt],
            retry_denied: None,
        };
        let section = include_str!("../../../docs/operations.md").split("## Access log").nth(1).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let documented = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
        let mut documented: Vec<_> =
            documented.flat_map(|names| names.split(", ")).map(|name| name.trim_matches('`').to_owned()).collect();
        let written: serde_json::Value = serde_json::from_slice(&line.to_bytes()).unwrap();
        let fields = written.as_object().unwrap().keys().cloned();
        let of_attempts = written["attempts"][0].as_object().unwrap().keys().map(|name| format!("attempts[].{name}"));
        let mut written: Vec<_> = fields.chain(of_attempts).collect();
        documented.sort();
        written.sort();
        assert_eq!(documented, written);
    }
}
