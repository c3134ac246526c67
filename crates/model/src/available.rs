//! Which destinations traffic may use: the policy that joins active and passive health.

use serde::{Deserialize, Serialize};

use crate::id::PolicyName;
use crate::ratio::Ratio;

/// Availability policies. Each runs for every cluster, checks on or off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum AvailablePolicy {
    /// All that no enabled check calls Unhealthy; none is an answer, too (503).
    HealthyAndUnknown,
    /// The same, but all destinations when it leaves none.
    HealthyOrPanic,
    /// All destinations when the share of those left falls below the threshold.
    PanicThreshold(Ratio),
    /// One registered in code.
    Custom(PolicyName),
}

/// Why a destination is in the available list, or is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// No enabled check holds anything against it.
    Health,
    /// Too few are left: all are used.
    Panic,
    /// The last one is kept whatever its health.
    Guard,
    /// The share of ejected ones has reached its cap.
    Cap,
    /// Out: a check that is on calls it Unhealthy.
    Unhealthy,
    /// Out: waits for its first passed probe while others are Healthy.
    ProbeFirst,
    /// Out: a backup, and primary ones serve.
    Backup,
    /// Out: its weight is 0.
    Weight,
    /// Out: its name has no address.
    NoAddress,
    /// Out: a person drained or ejected it, or the process is draining.
    Drained,
    /// A custom policy decided.
    Policy,
}

impl Because {
    /// Snake-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Panic => "panic",
            Self::Guard => "guard",
            Self::Cap => "cap",
            Self::Unhealthy => "unhealthy",
            Self::ProbeFirst => "probe_first",
            Self::Backup => "backup",
            Self::Weight => "weight",
            Self::NoAddress => "no_address",
            Self::Drained => "drained",
            Self::Policy => "policy",
        }
    }
}
