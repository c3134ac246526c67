//! docs/outcomes.md is the rule; this test reads it row by row and holds `model::classify` to it.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use model::classify::classify;
use model::outcome::{AttemptEnd, CallStatus, FailureKind, OutcomeClass, Progress};

const TABLE: &str = include_str!("../../../docs/outcomes.md");

#[test]
fn every_row_of_the_documented_table_holds() {
    let rows: Vec<Vec<&str>> = TABLE
        .lines()
        .skip_while(|line| !line.starts_with("| progress"))
        .skip(2)
        .take_while(|line| line.starts_with("| "))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert!(rows.len() >= 45, "the table was not found");
    for row in rows {
        let [progress, failure, status, note, class] = row[..] else { panic!("not five columns: {row:?}") };
        let end = AttemptEnd {
            progress: progress_of(progress),
            failure: failure_of(failure),
            status: status.parse().ok(),
            call: call_of(note),
            retry_after: note.contains("Retry-After"),
            response_bytes_seen: status != "-",
            client_gone: failure == "client_gone",
            reused: progress == "stale_reuse",
        };
        assert_eq!(classify(&end).as_str(), class, "{row:?}");
    }
}

#[test]
fn every_failure_kind_and_every_class_stands_in_the_table() {
    for kind in FailureKind::ALL {
        // Status and Body are failures of probes; traffic has its statuses in the rows without a failure.
        let is_probe_only = matches!(kind, FailureKind::Status | FailureKind::Body);
        assert!(is_probe_only || TABLE.contains(&format!("| {} |", kind.as_str())), "{kind:?}");
    }
    for class in OutcomeClass::ALL {
        assert!(class == OutcomeClass::Slow || TABLE.contains(&format!("| {} |", class.as_str())), "{class:?}");
    }
}

#[test]
fn a_client_that_left_is_never_held_against_the_destination() {
    for failure in FailureKind::ALL {
        let end = AttemptEnd {
            progress: Progress::Sent,
            failure: Some(failure),
            status: None,
            call: None,
            retry_after: false,
            response_bytes_seen: false,
            client_gone: true,
            reused: false,
        };
        assert_eq!(classify(&end), OutcomeClass::Neutral, "{failure:?}");
    }
}

/// The gRPC status that a note names.
fn call_of(note: &str) -> Option<CallStatus> {
    let number: String = note.strip_prefix("grpc-status ")?.chars().take_while(char::is_ascii_digit).collect();
    Some(CallStatus::parse(number.as_bytes()))
}

fn progress_of(word: &str) -> Progress {
    match word {
        "not_sent" => Progress::NotSent,
        "stale_reuse" => Progress::StaleReuse,
        "sent" => Progress::Sent,
        "head_seen" => Progress::HeadSeen,
        "forwarded" => Progress::Forwarded,
        other => panic!("no progress: {other}"),
    }
}

fn failure_of(word: &str) -> Option<FailureKind> {
    if word == "-" {
        return None;
    }
    Some(*FailureKind::ALL.iter().find(|kind| kind.as_str() == word).unwrap())
}
