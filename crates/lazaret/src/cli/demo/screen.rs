//! What the demo shows: one frame of text from facts. Pure; the caller decides where it goes.

use std::fmt::Write as _;
use std::time::Duration;

/// The facts of one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// Since the start.
    pub(crate) elapsed: Duration,
    /// Per destination.
    pub(crate) rows: Vec<Row>,
    /// What the client has seen.
    pub(crate) seen: Seen,
    /// The last transitions and faults, oldest first.
    pub(crate) lines: Vec<String>,
}

/// One destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    /// Its id.
    pub(crate) id: String,
    /// What the script makes it do.
    pub(crate) does: String,
    /// Active value.
    pub(crate) active: String,
    /// Passive value.
    pub(crate) passive: String,
    /// Whether traffic may use it, and why.
    pub(crate) available: String,
    /// Requests it has served.
    pub(crate) served: u64,
}

/// What the client has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Requests sent.
    pub(crate) requests: u64,
    /// Answers of 500 and more, and no answers at all.
    pub(crate) failures: u64,
    /// Among these, requests that may not be repeated once they were sent (POST).
    pub(crate) unsafe_failures: u64,
    /// Slowest answer.
    pub(crate) slowest: Duration,
}

/// Draws a frame; every line ends with a clear-to-end when `is_terminal_width` is given.
pub(crate) fn draw(frame: &Frame) -> String {
    let mut text = String::new();
    let seen = &frame.seen;
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "lazaret demo  {:>5.1} s   {} requests, {} failures seen by the client ({} of them POST), slowest {} ms",
        frame.elapsed.as_secs_f64(),
        seen.requests,
        seen.failures,
        seen.unsafe_failures,
        seen.slowest.as_millis()
    );
    let _ = writeln!(text);
    let _ = writeln!(
        text,
        "  {:<12} {:<22} {:<10} {:<10} {:<20} {:>8}",
        "destination", "what it does", "active", "passive", "available", "served"
    );
    for row in &frame.rows {
        let _ = writeln!(
            text,
            "  {:<12} {:<22} {:<10} {:<10} {:<20} {:>8}",
            row.id, row.does, row.active, row.passive, row.available, row.served
        );
    }
    let _ = writeln!(text);
    for line in &frame.lines {
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// One line for places that are no terminal.
pub(crate) fn line(frame: &Frame) -> String {
    let rows: Vec<_> =
        frame.rows.iter().map(|row| format!("{}={}/{} {}", row.id, row.active, row.passive, row.available)).collect();
    format!(
        "{:>5.1} s  requests={} failures={}  {}",
        frame.elapsed.as_secs_f64(),
        frame.seen.requests,
        frame.seen.failures,
        rows.join("  ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_shows_each_destination_and_what_the_client_saw() {
        let frame = Frame {
            elapsed: Duration::from_millis(2500),
            rows: vec![Row {
                id: "app1".to_owned(),
                does: "dead".to_owned(),
                active: "unhealthy".to_owned(),
                passive: "unknown".to_owned(),
                available: "no (unhealthy)".to_owned(),
                served: 7,
            }],
            seen: Seen { requests: 100, failures: 1, unsafe_failures: 1, slowest: Duration::from_millis(12) },
            lines: vec!["  2.1 s  app1 active: healthy -> unhealthy".to_owned()],
        };
        let text = draw(&frame);
        assert!(text.contains("100 requests, 1 failures seen by the client (1 of them POST), slowest 12 ms"), "{text}");
        assert!(text.lines().any(|line| line.contains("app1") && line.contains("no (unhealthy)")), "{text}");
        assert!(line(&frame).contains("app1=unhealthy/unknown"));
    }
}
