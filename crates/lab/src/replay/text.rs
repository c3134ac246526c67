//! A replay in words and as JSON.

use std::fmt::Write;

use model::event::{Cause, Event, EventKind};
use model::health::Health;
use model::time::Timestamp;
use recorder::{Difference, Recording, Rerun};
use serde_json::{Value, json};

use super::question::{Answer, Row, Side};

/// What the recording holds, what the core told, and whether it is what was told then.
pub fn rerun(recording: &Recording, rerun: &Rerun, wall: &dyn Fn(Timestamp) -> String) -> String {
    let mut text = head(recording, rerun.ends_at, wall);
    for event in &rerun.events {
        let _ = writeln!(text, "{}  {}", wall(event.at), event_words(event));
    }
    text += &match &rerun.difference {
        None => format!(
            "identical: {} inputs gave the same {} events and the same {} states, to the byte\n",
            rerun.inputs,
            rerun.events.len(),
            recording.segments()
        ),
        Some(difference) => format!("different: {}", difference_words(recording, difference, wall)),
    };
    text
}

/// The same as one JSON document.
pub fn json(recording: &Recording, rerun: &Rerun, wall: &dyn Fn(Timestamp) -> String) -> Value {
    let difference = rerun.difference.as_ref().map(|difference| match difference {
        Difference::Event { at, recorded, replayed } => {
            json!({"at": wall(*at), "of": "event", "recorded": recorded, "replayed": replayed})
        }
        Difference::State { at, recorded, replayed } => {
            json!({"at": wall(*at), "of": "state", "recorded": recorded, "replayed": replayed})
        }
    });
    json!({
        "recording": recording_json(recording, wall),
        "ends": wall(rerun.ends_at),
        "inputs": rerun.inputs,
        "identical": rerun.difference.is_none(),
        "difference": difference,
        "events": rerun.events,
    })
}

/// What policies would have done, as a table for each; [`NOTE`] belongs below.
pub fn answers(answers: &[Answer]) -> String {
    let mut text = String::new();
    for answer in answers {
        let _ = writeln!(text, "{}", answer.policy);
        let head = ["ejections", "out s", "ejections", "out s", "spared", "moved", "unseen s"];
        let _ = writeln!(text, "  {:30} {:>20} {:>20}", "", "recorded", "would have been");
        let line = |text: &mut String, name: &str, cells: [String; 7]| {
            let _ = write!(text, "  {name:30}");
            cells.iter().for_each(|cell| *text += &format!(" {cell:>9}"));
            text.push('\n');
        };
        line(&mut text, "destination", head.map(str::to_owned));
        for (key, row) in &answer.rows {
            let seconds = |span: std::time::Duration| format!("{:.1}", span.as_secs_f64());
            let (recorded, other) = (row.recorded, row.other);
            let cells = [
                recorded.ejections.to_string(),
                seconds(recorded.out),
                other.ejections.to_string(),
                seconds(other.out),
                row.spared.to_string(),
                row.moved.to_string(),
                seconds(row.unseen),
            ];
            line(&mut text, &key.to_string(), cells);
        }
        text.push('\n');
    }
    text
}

/// The same as one JSON document.
pub fn answers_json(recording: &Recording, answers: &[Answer], wall: &dyn Fn(Timestamp) -> String) -> Value {
    let side = |side: Side| json!({"ejections": side.ejections, "out_ms": millis(side.out)});
    let row = |(key, row): &(model::id::DestinationKey, Row)| {
        json!({
            "cluster": key.cluster.as_str(),
            "destination": key.destination.as_str(),
            "recorded": side(row.recorded),
            "would_have_been": side(row.other),
            "spared": row.spared,
            "moved": row.moved,
            "unseen_ms": millis(row.unseen),
        })
    };
    let answer = |answer: &Answer| json!({"policy": answer.policy, "destinations": answer.rows.iter().map(row).collect::<Vec<_>>()});
    json!({
        "recording": recording_json(recording, wall),
        "note": NOTE.trim_end(),
        "policies": answers.iter().map(answer).collect::<Vec<_>>(),
    })
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// What such an answer is not.
pub const NOTE: &str = "\
The traffic is the recorded one: a real process would have sent what is spared and moved to the other destinations, which
would have felt it. spared: failed attempts while it would have been out; moved: good ones. unseen: it was out and would
have been in; how it would have served then nobody knows. At the recording's beginning the other policy has seen nothing.
";

fn recording_json(recording: &Recording, wall: &dyn Fn(Timestamp) -> String) -> Value {
    let header = &recording.header;
    json!({
        "version": header.version,
        "instance": header.instance,
        "digest": recording.digest,
        "begins": wall(recording.begins_at()),
        "saved": wall(header.saved_at),
        "segments": recording.segments(),
    })
}

/// A document as it is printed.
pub fn pretty(document: &Value) -> String {
    // Text keys and finite numbers alone, so that it always prints.
    serde_json::to_string_pretty(document).unwrap_or_default() + "\n"
}

/// Who recorded, when and for how long, in one line.
pub fn head(recording: &Recording, ends_at: Timestamp, wall: &dyn Fn(Timestamp) -> String) -> String {
    let header = &recording.header;
    let span = ends_at.since(recording.begins_at());
    format!(
        "lazaret {}, instance {}, configuration {}: {} s from {}, saved {}\n",
        header.version,
        header.instance,
        recording.digest,
        span.as_secs(),
        wall(recording.begins_at()),
        wall(header.saved_at),
    )
}

fn difference_words(recording: &Recording, difference: &Difference, wall: &dyn Fn(Timestamp) -> String) -> String {
    let nothing = || "nothing".to_owned();
    let (what, at, then, now) = match difference {
        Difference::Event { at, recorded, replayed } => (
            "after the input of",
            at,
            recorded.clone().unwrap_or_else(nothing),
            replayed.clone().unwrap_or_else(nothing),
        ),
        Difference::State { at, recorded, replayed } => ("in the state of", at, recorded.clone(), replayed.clone()),
    };
    format!(
        "{what} {}\n  recorded: {then}\n  replayed: {now}\nlazaret {} recorded; another version may judge otherwise\n",
        wall(*at),
        recording.header.version
    )
}

/// An event in one line.
pub fn event_words(event: &Event) -> String {
    match &event.kind {
        EventKind::Transition(one) => {
            // Traffic that finds it good is no policy's finding.
            let is_praise = matches!((&one.cause, one.to), (Cause::Traffic { .. }, Health::Healthy));
            let policy = one.cause.policy().filter(|_| !is_praise);
            let policy = policy.map_or_else(String::new, |policy| format!(", {policy}"));
            let counts = match (one.evidence.failed, one.evidence.total) {
                (Some(failed), Some(total)) => format!(", {failed} of {total} failed"),
                (Some(failed), None) => format!(", {failed} failed"),
                (None, _) => String::new(),
            };
            let (from, to, cause) = (one.from.as_str(), one.to.as_str(), one.cause.as_str());
            format!("{}  {} {from} -> {to} ({cause}{policy}{counts})", one.destination, one.check.as_str())
        }
        EventKind::Availability { destination, available: true, .. } => format!("{destination}  is in use"),
        EventKind::Availability { destination, available: false, because } => {
            format!("{destination}  is not in use ({})", word(because))
        }
        EventKind::Share { destination, share, because, .. } => {
            format!("{destination}  when in use, {:.0} % of its weight ({})", share.get() * 100.0, because.as_str())
        }
        EventKind::Shadow { destination, policy, would_eject: true, .. } => {
            format!("{destination}  {policy}, not enforced, would eject it")
        }
        EventKind::Shadow { destination, policy, would_eject: false, .. } => {
            format!("{destination}  {policy}, not enforced, would have it back")
        }
        EventKind::Kept { destination, policy, evidence } => {
            let failed = evidence.failed.map_or_else(String::new, |failed| format!(", {failed} failed"));
            format!("{destination}  stays: it answers requests, though its probes fail ({policy}{failed})")
        }
        EventKind::Config { applied: true, summary } => format!("configuration: {summary}"),
        EventKind::Config { applied: false, summary } => format!("configuration refused: {summary}"),
        EventKind::Draining => "a planned stop begins".to_owned(),
    }
}

/// A word of the vocabulary as it is written everywhere else.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
