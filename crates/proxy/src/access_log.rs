//! The access log: one JSON object a line, one line per exchange.
//!
//! `bytes_in` counts the request's content, `bytes_out` everything that was sent to the client for it. `ms` runs from the
//! complete head to the end. An attempt's `outcome` is the failure where there was one, else the class.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use exchange::{Report, Snapshot};
use model::outcome::OutcomeClass;
use model::time::Timestamp;
use serde::Serialize;

/// One line.
#[derive(Serialize)]
pub(crate) struct Line<'a> {
    pub(crate) at: String,
    pub(crate) listener: &'a str,
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

/// The wall clock in RFC 3339, UTC, to the millisecond.
pub(crate) fn wall() -> String {
    rfc3339(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Civil date from days: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn rfc3339(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs();
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    let milli = since_epoch.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_times_are_rfc_3339() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_399, "2000-02-28T23:59:59.007Z"),
            (951_782_400, "2000-02-29T00:00:00.007Z"),
            (4_107_542_399, "2100-02-28T23:59:59.007Z"),
            (4_107_542_400, "2100-03-01T00:00:00.007Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds) + Duration::from_millis(7)), text);
        }
    }
}
