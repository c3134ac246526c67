//! Facts in words: spans, causes, reasons. Pure functions, shared by all commands.

use control::document::event::{ChangeDocument, EventDocument, EventWord, EvidenceDocument, SeenDocument};
use model::available::Because;
use model::health::Health;

/// A span as people say it: `340 ms`, `2.0 s`, `5 min 3 s`, `2 h 10 min`.
pub(super) fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0 => format!("{ms} ms"),
        1..60 if ms.is_multiple_of(1000) => format!("{seconds} s"),
        1..60 => format!("{}.{} s", seconds, ms % 1000 / 100),
        60..3600 => two(seconds / 60, "min", seconds % 60, "s"),
        3600.. => two(seconds / 3600, "h", seconds % 3600 / 60, "min"),
    }
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 { format!("{large} {large_unit}") } else { format!("{large} {large_unit} {small} {small_unit}") }
}

/// Why a destination is in the available list, or is not.
pub(super) fn because(because: Because) -> &'static str {
    match because {
        Because::Health => "no check holds anything against it",
        Because::Panic => "too few destinations are healthy, so all are used",
        Because::Guard => "the last one is kept in use",
        Because::Cap => "the largest share of ejected destinations is reached",
        Because::Unhealthy => "a check found it unhealthy",
        Because::ProbeFirst => "it waits for its first passed probe",
        Because::Backup => "it is a backup, and others serve",
        Because::Weight => "its weight is 0",
        Because::NoAddress => "its name has no address",
        Because::Drained => "it is drained",
        Because::Policy => "a custom policy decides",
    }
}

/// Why a health value changed, and on what evidence.
pub(super) fn cause(change: &ChangeDocument) -> String {
    let policy = change.policy.as_deref().unwrap_or("a policy");
    match change.cause.as_str() {
        "probe" => match change.to {
            Health::Healthy => format!("{policy}: the probe passed"),
            Health::Unhealthy | Health::Unknown => evidence(&format!("{policy} on probes"), "probes", &change.evidence),
        },
        "traffic" => match change.to {
            // Nobody was at fault.
            Health::Healthy => evidence("traffic", "attempts", &change.evidence),
            Health::Unhealthy | Health::Unknown => {
                evidence(&format!("{policy} on traffic"), "attempts", &change.evidence)
            }
        },
        "reactivation" => "the reactivation period is over".to_owned(),
        "unconfirmed" => "a probe passed right after the ejection: trial requests decide".to_owned(),
        "canary" => "a trial request failed".to_owned(),
        "check_off" => "the check was turned off".to_owned(),
        "address_changed" => "the address changed: it is another server".to_owned(),
        "external" => "set from outside".to_owned(),
        // A newer process may know causes that this program does not.
        other => other.to_owned(),
    }
}

fn evidence(who: &str, what: &str, evidence: &EvidenceDocument) -> String {
    let mut text = who.to_owned();
    match (evidence.failed, evidence.total) {
        (Some(failed), Some(total)) => text.push_str(&format!(": {failed} of {total} {what} failed")),
        (Some(failed), None) => text.push_str(&format!(": {failed} {what} failed")),
        (None, _) => {}
    }
    if let Some(window) = evidence.window_ms {
        text.push_str(&format!(" within {}", span(window)));
    }
    if let Some(limit) = evidence.limit {
        text.push_str(&format!(", limit {limit}"));
    }
    if let Some(period) = evidence.reactivation_ms {
        text.push_str(&format!(", ejected for {}", span(period)));
    }
    if !evidence.last.is_empty() {
        let last: Vec<String> = evidence.last.iter().map(seen).collect();
        text.push_str(&format!("; last: {}", last.join(", ")));
    }
    text
}

fn seen(seen: &SeenDocument) -> String {
    match (seen.status, &seen.failure, &seen.class) {
        (Some(status), _, _) => format!("status {status}"),
        (None, Some(failure), _) => failure.clone(),
        (None, None, Some(class)) => class.clone(),
        (None, None, None) => "a failure".to_owned(),
    }
}

/// What an event says, without number and time.
pub(super) fn event(event: &EventDocument) -> String {
    let whose = event.subject.as_ref().map(|subject| format!("{}/{} ", subject.cluster, subject.destination));
    whose.unwrap_or_default() + &what(event)
}

/// The same without whose it is.
pub(super) fn what(event: &EventDocument) -> String {
    match (event.event, &event.change, &event.subject) {
        (EventWord::Transition, Some(change), _) => transition(change),
        (EventWord::Availability, _, Some(subject)) => {
            let into = if subject.available == Some(true) { "is in use" } else { "is not in use" };
            format!("{into}: {}", subject.because.map_or("", because))
        }
        (EventWord::Transition, None, _) => "a health value changed".to_owned(),
        (EventWord::Availability, _, None) => "a destination entered or left the available list".to_owned(),
        (EventWord::Config, _, _) => {
            let summary = event.summary.as_deref().unwrap_or("");
            let applied = if event.applied == Some(true) { "applied" } else { "refused, the one before stays" };
            format!("configuration {applied}: {summary}")
        }
        (EventWord::Share, _, _) => {
            let part = event.share.unwrap_or(1.0) * 100.0;
            // One behind a gate takes less than it may; whether it is in use is for other events to tell.
            let most = if event.share_because.as_deref() == Some("whole") { "at most " } else { "" };
            format!("when in use, {most}{part:.0} % of its weight: {}", share(event))
        }
        (EventWord::Shadow, _, _) => {
            let would = if event.would_eject == Some(true) { "would eject it" } else { "would have it back" };
            format!("{} (not enforced) {would}", event.by.as_deref().unwrap_or("a policy"))
        }
        (EventWord::Kept, _, _) => {
            let policy = event.by.as_deref().unwrap_or("a policy");
            format!("stays: it answers requests, though its probes fail ({policy} would have it out)")
        }
        (EventWord::Draining, _, _) => "a planned stop began".to_owned(),
        (EventWord::Lost, _, _) => "events before this point are lost".to_owned(),
    }
}

/// Why a destination gets the part of its weight that it gets.
pub(super) fn share(event: &EventDocument) -> String {
    match (event.share_because.as_deref(), event.by.as_deref()) {
        (Some("suspect"), Some(policy)) => format!("suspect by {policy}"),
        (Some("ramp"), _) => "back, and taking over step by step".to_owned(),
        (Some("whole"), _) => "nothing but its gate, where it has one, holds it back".to_owned(),
        (Some(other), Some(policy)) => format!("{other} by {policy}"),
        (other, _) => other.unwrap_or_default().to_owned(),
    }
}

/// A change of health in one line.
pub(super) fn transition(change: &ChangeDocument) -> String {
    format!("{} {} -> {}: {}", change.check.as_str(), change.from, change.to, cause(change))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_said_as_people_say_them() {
        for (ms, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (2000, "2 s"),
            (2340, "2.3 s"),
            (60_000, "1 min"),
            (303_000, "5 min 3 s"),
            (7_800_000, "2 h 10 min"),
        ] {
            assert_eq!(span(ms), text);
        }
    }
}
