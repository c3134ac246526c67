//! The decision about one VIP, and its reason.
//!
//! A decision is a plain yes or no that stays until the joined opinions of the upstreams say otherwise; holding and
//! freezing keep it and only change the reason. What is found on the interface at the start is the first decision.

use std::fmt;

use model::time::Timestamp;
use model::vip::UpstreamRef;
use serde::{Deserialize, Serialize};

use crate::quorum::Joined;
use crate::upstream::{Cause, HeldFor};

/// Whether a VIP belongs on the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// It is announced.
    Announced,
    /// It is withdrawn.
    Withdrawn,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What was decided.
    pub wanted: Wanted,
    /// Why.
    pub because: Because,
    /// When `wanted` last changed.
    pub since: Timestamp,
}

/// Why a VIP is announced or withdrawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// The condition over its upstreams holds.
    Healthy,
    /// It does not hold.
    Sick {
        /// The upstream that decided it.
        upstream: UpstreamRef,
        /// What is wrong with it.
        cause: Cause,
    },
    /// The last decision stands for now.
    Held {
        /// The upstream that cannot say yet.
        upstream: UpstreamRef,
        /// Why it cannot.
        why: HeldFor,
    },
    /// The control API does not answer and the VIP stays as it is.
    Frozen {
        /// The upstream without answers.
        upstream: UpstreamRef,
        /// Failed polls in a row.
        failed_polls: u32,
    },
}

impl Wanted {
    /// Announced when it is found on the interface.
    pub fn as_found(is_present: bool) -> Self {
        if is_present { Self::Announced } else { Self::Withdrawn }
    }

    /// Whether the address belongs on the interface.
    pub fn is_announced(self) -> bool {
        match self {
            Self::Announced => true,
            Self::Withdrawn => false,
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Announced => "announced",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// What a joined opinion makes of the last decision; `None` while it is too early to say.
pub fn decide(last: Wanted, joined: Joined, upstreams: &[UpstreamRef]) -> Option<(Wanted, Because)> {
    let named = |index: usize| upstreams.get(index).cloned();
    match joined {
        Joined::Up => Some((Wanted::Announced, Because::Healthy)),
        Joined::Down(index, cause) => Some((Wanted::Withdrawn, Because::Sick { upstream: named(index)?, cause })),
        Joined::Hold(index, why) => Some((last, Because::Held { upstream: named(index)?, why })),
        Joined::Freeze(index, failed_polls) => Some((last, Because::Frozen { upstream: named(index)?, failed_polls })),
        Joined::Undecided => None,
    }
}

impl Because {
    /// One word for machines.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Sick { cause, .. } => cause.word(),
            Self::Held { why, .. } => why.word(),
            Self::Frozen { .. } => "api_unreachable",
        }
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Healthy => f.write_str("its upstreams have healthy nodes"),
            Self::Sick { upstream, cause } => write!(f, "{upstream}: {cause}"),
            Self::Held { upstream, why: HeldFor::Warming } => {
                write!(f, "{upstream}: nodes are not judged yet, the last decision is held")
            }
            Self::Held { upstream, why: HeldFor::NoAnswer } => {
                write!(f, "{upstream}: no answer yet, the last decision is held")
            }
            Self::Frozen { upstream, failed_polls } => {
                write!(f, "{upstream}: {failed_polls} polls failed in a row, the VIP stays as it is")
            }
        }
    }
}
