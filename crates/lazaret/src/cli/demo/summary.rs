//! The demo's story: faults and transitions in the order of time, and what it all came to.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lazaret::Health;
use model::event::{Cause, EventKind, Evidence, Transition};
use model::id::Revision;
use telemetry::journal::{After, Journal};

use super::screen::Seen;
use super::script::Ward;

/// Collects what happens.
pub(super) struct Story {
    after: Revision,
    n_changes: usize,
    lines: Vec<(Duration, String)>,
    ejections: Vec<(Duration, String)>,
    last_second: u64,
}

impl Story {
    /// From now on.
    pub(super) fn new(journal: &Arc<Journal>) -> Self {
        let after = *journal.subscribe().borrow();
        Self { after, n_changes: 0, lines: Vec::new(), ejections: Vec::new(), last_second: 0 }
    }

    /// Reads on; the new lines.
    pub(super) fn read(&mut self, journal: &Arc<Journal>, ward: &Ward) -> Vec<String> {
        let Some(began) = ward.began() else { return Vec::new() };
        let mut news = Vec::new();
        for change in ward.changes().into_iter().skip(self.n_changes) {
            self.n_changes += 1;
            let word = if change.is_recovery { "recovery" } else { "fault" };
            news.push((change.at, format!("{word}: {} {}", change.id, change.does)));
        }
        if let After::Events(entries) = journal.after(self.after, MANY) {
            for entry in entries {
                self.after = entry.event.revision;
                let age = jiff::Timestamp::now().duration_since(entry.wall);
                let at = Instant::now().duration_since(began).saturating_sub(age.unsigned_abs());
                if let EventKind::Transition(transition) = &entry.event.kind {
                    news.push((at, tell(transition)));
                    if transition.to == Health::Unhealthy {
                        self.ejections.push((at, transition.destination.destination.to_string()));
                    }
                }
            }
        }
        news.sort_by_key(|(at, _)| *at);
        self.lines.extend(news.iter().cloned());
        news.into_iter().map(|(at, line)| format!("{:>6.2} s  {line}", at.as_secs_f64())).collect()
    }

    /// The last `n` lines.
    pub(super) fn last(&self, n: usize) -> Vec<String> {
        let skip = self.lines.len().saturating_sub(n);
        self.lines.iter().skip(skip).map(|(at, line)| format!("{:>6.2} s  {line}", at.as_secs_f64())).collect()
    }

    /// Whether a new second has begun since the last call.
    pub(super) fn is_second(&mut self, elapsed: Duration) -> bool {
        let is_new = elapsed.as_secs() > self.last_second;
        self.last_second = elapsed.as_secs();
        is_new
    }

    /// What it came to.
    pub(super) fn summary(&self, seen: &Seen, ward: &Ward) -> String {
        let mut text = String::from("\nsummary\n");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  requests                    {}", seen.requests);
        let _ = writeln!(
            text,
            "  failures the client saw     {} ({} GET, {} POST: a POST that was sent is never repeated)",
            seen.failures,
            seen.failures - seen.unsafe_failures,
            seen.unsafe_failures
        );
        let _ = writeln!(text, "  ejections                   {}", self.ejections.len());
        for change in ward.changes().iter().filter(|change| !change.is_recovery) {
            let found = self.ejections.iter().find(|(at, id)| *at >= change.at && id == change.id);
            let next = ward.changes().into_iter().find(|next| next.id == change.id && next.at > change.at);
            let is_in_time = |at: Duration| next.as_ref().is_none_or(|next| at < next.at + Duration::from_secs(1));
            let outcome = match found {
                Some((at, _)) if is_in_time(*at) => format!("ejected after {} ms", (*at - change.at).as_millis()),
                Some(_) | None => "not ejected".to_owned(),
            };
            let _ = writeln!(text, "  {:>6.2} s  {} {:<14} {outcome}", change.at.as_secs_f64(), change.id, change.does);
        }
        text
    }
}

/// Events of one look; the next one takes the rest.
const MANY: usize = 1000;

fn tell(transition: &Transition) -> String {
    let Transition { destination, check, from, to, cause, evidence } = transition;
    let why = match cause {
        Cause::Probe { policy } | Cause::Traffic { policy } => format!("{policy}{}", counts(evidence)),
        Cause::Reactivation => "reactivation: its time is over".to_owned(),
        Cause::CheckOff | Cause::AddressChanged | Cause::External => cause.as_str().to_owned(),
    };
    format!("{} {}: {from} -> {to} ({why})", destination.destination, check.as_str())
}

fn counts(evidence: &Evidence) -> String {
    let mut text = String::new();
    match (evidence.failed, evidence.total) {
        (Some(failed), Some(total)) => text.push_str(&format!(", {failed} of {total} failed")),
        (Some(failed), None) => text.push_str(&format!(", {failed} failed")),
        (None, _) => {}
    }
    if let Some(failure) = evidence.last.last().and_then(|seen| seen.failure) {
        text.push_str(&format!(", last: {}", failure.as_str()));
    } else if let Some(status) = evidence.last.last().and_then(|seen| seen.status) {
        text.push_str(&format!(", last: {status}"));
    }
    text
}
