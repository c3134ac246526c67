//! What happened: the events that the health core emits and the journal keeps.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::available::Because;
use crate::health::{CheckKind, Health};
use crate::id::{DestinationKey, Revision};
use crate::outcome::{FailureKind, OutcomeClass};
use crate::ratio::Ratio;
use crate::time::Timestamp;

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its number; each event has its own.
    pub revision: Revision,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub kind: EventKind,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A value of a destination changed.
    Transition(Transition),
    /// A destination entered or left its cluster's available list.
    Availability {
        /// Whose.
        destination: DestinationKey,
        /// Whether traffic may use it now.
        available: bool,
        /// Why.
        because: Because,
    },
    /// A destination gets another part of its weight.
    Share {
        /// Whose.
        destination: DestinationKey,
        /// The part from here on.
        share: Ratio,
        /// Why.
        because: ShareCause,
        /// What the cause rests on.
        evidence: Evidence,
    },
    /// A policy that is judged and not enforced changed its mind.
    Shadow {
        /// Whose.
        destination: DestinationKey,
        /// The policy's name.
        policy: String,
        /// Whether it would have the destination out from here on.
        would_eject: bool,
        /// What it rests on.
        evidence: Evidence,
    },
    /// A destination answers requests while its probes come to nothing, for which its active policy would have it out: it
    /// stays. Told once, until a probe passes or the policy's word holds.
    Kept {
        /// Whose.
        destination: DestinationKey,
        /// The active policy's name.
        policy: String,
        /// What the policy rests on.
        evidence: Evidence,
    },
    /// A configuration was taken over, or refused.
    Config {
        /// Whether it is now in force.
        applied: bool,
        /// In one line: what changed, or why it was refused.
        summary: String,
    },
    /// The process began a planned stop.
    Draining,
}

/// A change of health with its cause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transition {
    /// Whose.
    pub destination: DestinationKey,
    /// Which of its two values.
    pub check: CheckKind,
    /// The value before.
    pub from: Health,
    /// The value now.
    pub to: Health,
    /// Why.
    pub cause: Cause,
    /// What the cause rests on.
    pub evidence: Evidence,
}

/// Why a destination gets the part of its weight that it gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShareCause {
    /// Nothing holds it back.
    Whole,
    /// A passive policy suspects it.
    Suspect {
        /// The policy's name.
        policy: String,
    },
    /// It came back, or is new, and takes over its weight step by step.
    Ramp,
}

impl ShareCause {
    /// One snake-case word for the kind of cause.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Suspect { .. } => "suspect",
            Self::Ramp => "ramp",
        }
    }
}

/// Why a value changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// An active policy judged a probe.
    Probe {
        /// The policy's name.
        policy: String,
    },
    /// A passive policy judged traffic.
    Traffic {
        /// The policy's name.
        policy: String,
    },
    /// The reactivation period is over.
    Reactivation,
    /// Probes passed that were sent because of an ejection: it does not stand.
    Unconfirmed,
    /// A trial request failed after an ejection was over.
    Canary,
    /// The check was turned off (the value is Unknown again).
    CheckOff,
    /// The address changed: it is another server.
    AddressChanged,
    /// Set from outside by a program.
    External,
}

impl Cause {
    /// One snake-case word for the kind of cause.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Probe { .. } => "probe",
            Self::Traffic { .. } => "traffic",
            Self::Reactivation => "reactivation",
            Self::Unconfirmed => "unconfirmed",
            Self::Canary => "canary",
            Self::CheckOff => "check_off",
            Self::AddressChanged => "address_changed",
            Self::External => "external",
        }
    }

    /// The policy that judged, when one did.
    pub fn policy(&self) -> Option<&str> {
        match self {
            Self::Probe { policy } | Self::Traffic { policy } => Some(policy),
            Self::Reactivation
            | Self::Unconfirmed
            | Self::Canary
            | Self::CheckOff
            | Self::AddressChanged
            | Self::External => None,
        }
    }
}

/// What a verdict rests on. All parts are optional: a policy gives what it has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Failures counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// Out of so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// The limit that was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// Within this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Duration>,
    /// Meanwhile so many failures of the rest of its cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest_failed: Option<u64>,
    /// Out of so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest_total: Option<u64>,
    /// The last failures, newest last; 5 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last: Vec<Seen>,
    /// An ejection ends after this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reactivation: Option<Duration>,
}

/// One observation in an evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// When.
    pub at: Timestamp,
    /// Its class (traffic).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<OutcomeClass>,
    /// The failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureKind>,
    /// The status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}
