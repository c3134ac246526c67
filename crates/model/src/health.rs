//! The three values of health, and the two of them that each destination has.
//!
//! ```text
//!             first success, policy            failures reach the policy's limit
//!   Unknown ───────────────────────> Healthy ───────────────────────────────────> Unhealthy
//!      ^  └───────────────────────────────────────────────────────────────────────^  │  │
//!      │                        failures reach the limit                             │  │
//!      └──────────────── reactivation period is over (passive only) ─────────────────┘  │
//!                 Healthy <───────── a success, policy (active only) ───────────────────┘
//! ```
//!
//! Active and passive never write each other; the availability policy joins them (see [`crate::available`]).

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is known of a destination by one kind of check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// Nothing yet, or forgotten. Takes traffic.
    #[default]
    Unknown,
    /// The policy found it good.
    Healthy,
    /// The policy found it bad. Takes no traffic while the check is on.
    Unhealthy,
}

impl Health {
    /// Lower-case word, as in logs, metrics and documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which kind of check a value belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckKind {
    /// Probes.
    Active,
    /// The destination's own traffic.
    Passive,
}

impl CheckKind {
    /// Lower-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Passive => "passive",
        }
    }
}

/// The two independent values of a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HealthPair {
    /// By probes.
    pub active: Health,
    /// By traffic.
    pub passive: Health,
}

impl HealthPair {
    /// Joins two values.
    pub const fn new(active: Health, passive: Health) -> Self {
        Self { active, passive }
    }
}

/// Whether a kind of check is on. Values of a check that is off do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// The check runs.
    On,
    /// It does not; its value is Unknown.
    #[default]
    Off,
}
