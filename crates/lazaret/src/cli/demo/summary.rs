//! The demo's story: faults and transitions in the order of time, and what it all came to.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lazaret::Health;
use model::event::{Cause, EventKind, Evidence, ShareCause, Transition};
use model::health::CheckKind;
use model::id::{DestinationKey, Revision};
use model::ratio::Ratio;
use serde::Serialize;
use telemetry::journal::{After, Journal};

use super::screen::Seen;
use super::script::{Change, Ward};

/// Collects what happens.
pub(super) struct Story {
    after: Revision,
    n_changes: usize,
    lines: Vec<(Duration, String)>,
    /// Changes to Unhealthy, of either value.
    verdicts: Vec<(Duration, String)>,
    /// Those of traffic among them.
    n_ejections: usize,
    /// Those that traffic may not use: which share they would get is of no interest.
    out: BTreeSet<DestinationKey>,
    last_second: u64,
}

impl Story {
    /// From now on.
    pub(super) fn new(journal: &Arc<Journal>) -> Self {
        let after = *journal.subscribe().borrow();
        Self {
            after,
            n_changes: 0,
            lines: Vec::new(),
            verdicts: Vec::new(),
            n_ejections: 0,
            out: BTreeSet::new(),
            last_second: 0,
        }
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
                match &entry.event.kind {
                    EventKind::Transition(transition) => {
                        news.push((at, tell(transition)));
                        if transition.to == Health::Unhealthy {
                            self.verdicts.push((at, transition.destination.destination.to_string()));
                            self.n_ejections += usize::from(transition.check == CheckKind::Passive);
                        }
                    }
                    EventKind::Share { destination, share, because, evidence } => {
                        let line = tell_share(*share, because, evidence).filter(|_| !self.out.contains(destination));
                        news.extend(line.map(|line| (at, format!("{} {line}", destination.destination))));
                    }
                    EventKind::Availability { destination, available: true, .. } => {
                        self.out.remove(destination);
                    }
                    EventKind::Availability { destination, available: false, .. } => {
                        self.out.insert(destination.clone());
                    }
                    EventKind::Shadow { .. }
                    | EventKind::Kept { .. }
                    | EventKind::Config { .. }
                    | EventKind::Draining => {}
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

    /// What it came to when it ended, `end` after its begin.
    pub(super) fn summary(&self, seen: &Seen, ward: &Ward, end: Duration) -> Summary {
        let changes = ward.changes();
        let faults = changes.iter().filter(|change| !change.is_recovery).map(|change| Fault {
            at_ms: millis(change.at),
            destination: change.id,
            does: change.does.clone(),
            outcome: outcome(change, &changes, &self.verdicts, end),
        });
        Summary {
            requests: seen.requests,
            get_failures: seen.failures - seen.unsafe_failures,
            post_failures: seen.unsafe_failures,
            ejections: self.n_ejections,
            faults: faults.collect(),
        }
    }
}

/// What the demo came to.
#[derive(Serialize)]
pub(super) struct Summary {
    requests: u64,
    /// Failures that the client saw.
    get_failures: u64,
    post_failures: u64,
    ejections: usize,
    faults: Vec<Fault>,
}

#[derive(Serialize)]
struct Fault {
    /// Since the begin.
    at_ms: u64,
    destination: &'static str,
    does: String,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum Outcome {
    Unhealthy { after_ms: u64 },
    NeverUnhealthy,
    TooLateToTell,
}

impl Summary {
    /// For people.
    pub(super) fn text(&self) -> String {
        let Self { requests, get_failures, post_failures, ejections, faults } = self;
        let failures = get_failures + post_failures;
        let mut text = format!(
            "\nsummary\n  requests                    {requests}\n  failures the client saw     {failures} \
             ({get_failures} GET, {post_failures} POST: a POST that was sent is never repeated)\n  \
             ejections                   {ejections}\n"
        );
        for Fault { at_ms, destination, does, outcome } in faults {
            let outcome = match outcome {
                Outcome::Unhealthy { after_ms } => format!("unhealthy after {after_ms} ms"),
                Outcome::NeverUnhealthy => "never unhealthy".to_owned(),
                Outcome::TooLateToTell => "too late to tell".to_owned(),
            };
            let at = Duration::from_millis(*at_ms).as_secs_f64();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {at:>6.2} s  {destination} {does:<14} {outcome}");
        }
        text
    }

    /// For programs: one JSON object in one line.
    pub(super) fn json(&self) -> String {
        // Text keys and integers always print.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// What a fault came to. Verdicts are given by time and id, in order.
fn outcome(fault: &Change, changes: &[Change], verdicts: &[(Duration, String)], end: Duration) -> Outcome {
    let found = verdicts.iter().find(|(at, id)| *at >= fault.at && id == fault.id);
    let next = changes.iter().find(|next| next.id == fault.id && next.at > fault.at);
    let is_in_time = |at: Duration| next.is_none_or(|next| at < next.at + Duration::from_secs(1));
    match found {
        Some((at, _)) if is_in_time(*at) => Outcome::Unhealthy { after_ms: millis(*at - fault.at) },
        None if next.is_none() && end < fault.at + TOLD => Outcome::TooLateToTell,
        Some(_) | None => Outcome::NeverUnhealthy,
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A fault is followed by its verdict within this, or by none.
const TOLD: Duration = Duration::from_secs(2);
/// Events of one look; the next one takes the rest.
const MANY: usize = 1000;

fn tell(transition: &Transition) -> String {
    let Transition { destination, check, from, to, cause, evidence } = transition;
    let why = match cause {
        Cause::Traffic { .. } if *to == Health::Healthy => "traffic".to_owned(),
        Cause::Probe { policy } | Cause::Traffic { policy } => format!("{policy}{}", counts(evidence)),
        Cause::Reactivation => "reactivation: its time is over".to_owned(),
        Cause::Canary => "canary: a trial request failed".to_owned(),
        Cause::Unconfirmed => "unconfirmed: a probe passed, trial requests decide".to_owned(),
        Cause::CheckOff | Cause::AddressChanged | Cause::External => cause.as_str().to_owned(),
    };
    format!("{} {}: {from} -> {to} ({why})", destination.destination, check.as_str())
}

/// Steps of a ramp are left out: they are many, and say nothing new.
fn tell_share(share: Ratio, because: &ShareCause, evidence: &Evidence) -> Option<String> {
    match because {
        ShareCause::Suspect { policy } => {
            let percent = (share.get() * 100.0).round();
            Some(format!("gets {percent} % of its share: suspect ({policy}{})", counts(evidence)))
        }
        ShareCause::Whole => Some("gets its whole share".to_owned()),
        ShareCause::Ramp => None,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn change(millis: u64, is_recovery: bool) -> Change {
        Change { at: at(millis), id: "app1", does: String::new(), is_recovery }
    }

    #[test]
    fn a_fault_near_the_end_is_too_late_to_tell_unless_it_was_told() {
        let fault = change(2000, false);
        let of = |verdicts: &[(Duration, String)], end| outcome(&fault, &[change(2000, false)], verdicts, at(end));
        assert_eq!(of(&[], 3999), Outcome::TooLateToTell);
        assert_eq!(of(&[], 4000), Outcome::NeverUnhealthy);
        assert_eq!(of(&[(at(2300), "app1".to_owned())], 3000), Outcome::Unhealthy { after_ms: 300 });
        assert_eq!(of(&[(at(2300), "app2".to_owned())], 9000), Outcome::NeverUnhealthy);
    }

    #[test]
    fn a_fault_that_was_over_in_time_is_told() {
        let changes = [change(2000, false), change(2500, true)];
        let of = |verdicts: &[(Duration, String)], end| outcome(&changes[0], &changes, verdicts, at(end));
        assert_eq!(of(&[], 3000), Outcome::NeverUnhealthy);
        assert_eq!(of(&[(at(3600), "app1".to_owned())], 9000), Outcome::NeverUnhealthy);
    }

    #[test]
    fn a_summary_reads_for_people_and_for_programs() {
        let fault = |at_ms, outcome| Fault { at_ms, destination: "app1", does: "is dead".to_owned(), outcome };
        let faults = vec![fault(2000, Outcome::Unhealthy { after_ms: 24 }), fault(22_000, Outcome::TooLateToTell)];
        let summary = Summary { requests: 9, get_failures: 0, post_failures: 2, ejections: 1, faults };
        assert_eq!(
            summary.text(),
            "
summary
  requests                    9
  failures the client saw     2 (0 GET, 2 POST: a POST that was sent is never repeated)
  ejections                   1
    2.00 s  app1 is dead        unhealthy after 24 ms
   22.00 s  app1 is dead        too late to tell
"
        );
        let expected = serde_json::json!({
            "requests": 9, "get_failures": 0, "post_failures": 2, "ejections": 1,
            "faults": [
                {"at_ms": 2000, "destination": "app1", "does": "is dead", "outcome": "unhealthy", "after_ms": 24},
                {"at_ms": 22000, "destination": "app1", "does": "is dead", "outcome": "too_late_to_tell"},
            ],
        });
        assert_eq!(serde_json::from_str::<serde_json::Value>(&summary.json()).ok(), Some(expected));
    }
}
