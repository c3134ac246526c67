//! One event as JSON: in the event stream, in `/api/journal` and `/api/transitions`, and (the part on a change of
//! health) as a destination's last transition.

use model::available::Because;
use model::event::{EventKind, Evidence, ShareCause, Transition};
use model::health::{CheckKind, Health};
use model::id::DestinationKey;
use model::time::Timestamp;
use model::view::NodeStatus;
use serde::{Deserialize, Serialize};
use telemetry::journal::{Entry, Standing};

use super::clock::{millis, text};

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventDocument {
    /// Its kind; also the `event:` line of the stream.
    pub event: EventWord,
    /// Its number.
    pub revision: u64,
    /// When it happened.
    pub at: String,
    /// Whose, for changes of health and availability.
    #[serde(flatten)]
    pub subject: Option<Subject>,
    /// The change of health.
    #[serde(flatten)]
    pub change: Option<ChangeDocument>,
    /// The part of its weight that the destination gets from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Why it gets that part: `whole`, `suspect` or `ramp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_because: Option<String>,
    /// The policy that suspects it, that would have it out and is held back, or that is not enforced and has changed its mind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whether that one would have it out from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_eject: Option<bool>,
    /// A configuration: whether it is now in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<bool>,
    /// A configuration: what changed, or why it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventWord {
    /// A health value changed.
    Transition,
    /// A destination entered or left its cluster's available list.
    Availability,
    /// A destination gets another part of its weight.
    Share,
    /// A policy that is not enforced changed its mind.
    Shadow,
    /// An active policy would have a destination out whose probes come to nothing; it answers requests and stays.
    Kept,
    /// A configuration was taken over or refused.
    Config,
    /// A planned stop began.
    Draining,
    /// Events are missing before this point: start over from `/api/clusters`.
    Lost,
}

impl EventWord {
    /// Snake-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transition => "transition",
            Self::Availability => "availability",
            Self::Share => "share",
            Self::Shadow => "shadow",
            Self::Kept => "kept",
            Self::Config => "config",
            Self::Draining => "draining",
            Self::Lost => "lost",
        }
    }
}

/// The destination that an event is about, as it stood right after it; values are missing when the destination was gone
/// by then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// Its cluster.
    pub cluster: String,
    /// Its id.
    pub destination: String,
    /// Health by probes.
    pub active: Option<Health>,
    /// Health by traffic.
    pub passive: Option<Health>,
    /// Status in APISIX's words.
    pub status: Option<NodeStatus>,
    /// Whether traffic may use it.
    pub available: Option<bool>,
    /// Why.
    pub because: Option<Because>,
}

/// A change of a health value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeDocument {
    /// Which value.
    pub check: CheckKind,
    /// Before.
    pub from: Health,
    /// After.
    pub to: Health,
    /// Why, in one word.
    pub cause: String,
    /// The policy that judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// What it rests on.
    pub evidence: EvidenceDocument,
}

/// What a verdict rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EvidenceDocument {
    /// Failures counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// Out of so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// The limit that was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// Within this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u64>,
    /// Meanwhile so many failures of the rest of its cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest_failed: Option<u64>,
    /// Out of so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest_total: Option<u64>,
    /// An ejection ends after this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reactivation_ms: Option<u64>,
    /// The last failures, newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last: Vec<SeenDocument>,
}

/// One observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenDocument {
    /// When.
    pub at: String,
    /// Its class (traffic).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

impl EventDocument {
    /// The document of a journal entry.
    pub fn new(entry: &Entry) -> Self {
        let bare = |event| Self::bare(event, entry.event.revision.0, entry.wall);
        match &entry.event.kind {
            EventKind::Transition(transition) => {
                let mut subject = Subject::new(&transition.destination, entry.standing);
                match transition.check {
                    CheckKind::Active => subject.active = Some(transition.to),
                    CheckKind::Passive => subject.passive = Some(transition.to),
                }
                let change = ChangeDocument::new(transition, |at| text(entry.wall_of(at)));
                Self { subject: Some(subject), change: Some(change), ..bare(EventWord::Transition) }
            }
            EventKind::Availability { destination, available, because } => {
                let (available, because) = (Some(*available), Some(*because));
                let subject = Subject { available, because, ..Subject::new(destination, entry.standing) };
                Self { subject: Some(subject), ..bare(EventWord::Availability) }
            }
            EventKind::Share { destination, share, because, .. } => Self {
                subject: Some(Subject::new(destination, entry.standing)),
                share: Some(share.get()),
                share_because: Some(because.as_str().to_owned()),
                by: match because {
                    ShareCause::Suspect { policy } => Some(policy.clone()),
                    ShareCause::Whole | ShareCause::Ramp => None,
                },
                ..bare(EventWord::Share)
            },
            EventKind::Shadow { destination, policy, would_eject, .. } => Self {
                subject: Some(Subject::new(destination, entry.standing)),
                by: Some(policy.clone()),
                would_eject: Some(*would_eject),
                ..bare(EventWord::Shadow)
            },
            EventKind::Kept { destination, policy, .. } => Self {
                subject: Some(Subject::new(destination, entry.standing)),
                by: Some(policy.clone()),
                ..bare(EventWord::Kept)
            },
            EventKind::Config { applied, summary } => {
                Self { applied: Some(*applied), summary: Some(summary.clone()), ..bare(EventWord::Config) }
            }
            EventKind::Draining => bare(EventWord::Draining),
        }
    }

    /// Says that events before `revision` are missing.
    pub fn lost(revision: u64, wall: jiff::Timestamp) -> Self {
        Self::bare(EventWord::Lost, revision, wall)
    }

    /// One that says nothing of its own yet.
    fn bare(event: EventWord, revision: u64, wall: jiff::Timestamp) -> Self {
        Self {
            event,
            revision,
            at: text(wall),
            subject: None,
            change: None,
            share: None,
            share_because: None,
            by: None,
            would_eject: None,
            applied: None,
            summary: None,
        }
    }
}

impl Subject {
    fn new(key: &DestinationKey, standing: Option<Standing>) -> Self {
        Self {
            cluster: key.cluster.to_string(),
            destination: key.destination.to_string(),
            active: standing.map(|standing| standing.health.active),
            passive: standing.map(|standing| standing.health.passive),
            status: standing.map(|standing| standing.status),
            available: standing.map(|standing| standing.is_available),
            because: standing.map(|standing| standing.because),
        }
    }
}

impl ChangeDocument {
    /// The document of a transition; `place` puts its times on the wall clock.
    pub fn new(transition: &Transition, place: impl Fn(Timestamp) -> String) -> Self {
        let Evidence { failed, total, limit, window, rest_failed, rest_total, last, reactivation } =
            &transition.evidence;
        let last = last.iter().map(|seen| SeenDocument {
            at: place(seen.at),
            class: seen.class.map(|class| class.as_str().to_owned()),
            failure: seen.failure.map(|failure| failure.as_str().to_owned()),
            status: seen.status,
        });
        Self {
            check: transition.check,
            from: transition.from,
            to: transition.to,
            cause: transition.cause.as_str().to_owned(),
            policy: transition.cause.policy().map(str::to_owned),
            evidence: EvidenceDocument {
                failed: *failed,
                total: *total,
                limit: *limit,
                window_ms: window.map(millis),
                rest_failed: *rest_failed,
                rest_total: *rest_total,
                reactivation_ms: reactivation.map(millis),
                last: last.collect(),
            },
        }
    }
}

/// A page of events: `GET /api/journal` and `GET /api/transitions`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventPage {
    /// The process.
    pub instance: String,
    /// Number of the last event there is.
    pub revision: u64,
    /// Events between `after` and the first one here are gone (or `after` was never given by this process).
    pub lost: bool,
    /// The events, oldest first.
    pub events: Vec<EventDocument>,
}
