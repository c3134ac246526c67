//! What came out of the core, in words.

use health::Output;
use model::event::{Cause, Event, EventKind, ShareCause};

/// An output in one line.
pub(super) fn words(output: &Output) -> String {
    match output {
        Output::Probe(order) => format!("probe {} at {}", order.destination, order.base),
        Output::CancelProbe(_) => "cancel probe".to_owned(),
        Output::FreeSlot(slot) => format!("free slot {}", slot.0),
        Output::Publish => "publish".to_owned(),
        Output::Event(Event { revision, kind, .. }) => match kind {
            EventKind::Transition(one) => {
                let evidence = serde_json::to_string(&one.evidence).unwrap();
                let (destination, check) = (&one.destination, one.check.as_str());
                let cause = match &one.cause {
                    Cause::Probe { policy } | Cause::Traffic { policy } => format!("{} {policy}", one.cause.as_str()),
                    other => other.as_str().to_owned(),
                };
                format!("#{revision} {destination} {check} {} -> {}: {cause} {evidence}", one.from, one.to)
            }
            EventKind::Availability { destination, available, because } => {
                let word = if *available { "in" } else { "out" };
                format!("#{revision} {destination} {word}: {}", because.as_str())
            }
            EventKind::Share { destination, share, because, .. } => {
                let policy = match because {
                    ShareCause::Suspect { policy } => format!(" {policy}"),
                    ShareCause::Whole | ShareCause::Ramp => String::new(),
                };
                format!("#{revision} {destination} share {}: {}{policy}", share.get(), because.as_str())
            }
            EventKind::Shadow { destination, policy, would_eject, .. } => {
                format!("#{revision} {destination} shadow {policy}: {would_eject}")
            }
            EventKind::Kept { destination, policy, evidence } => {
                format!("#{revision} {destination} kept: {policy} {}", serde_json::to_string(evidence).unwrap())
            }
            EventKind::Config { applied, summary } => {
                format!("#{revision} configuration {}: {summary}", if *applied { "applied" } else { "refused" })
            }
            EventKind::Draining => format!("#{revision} draining"),
        },
    }
}
