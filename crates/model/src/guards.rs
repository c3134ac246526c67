//! Limits on what ejections may do to a cluster: they keep a destination available, they never change what is thought of
//! it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ratio::Ratio;

/// Which limits hold. The default: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Guards {
    /// At most this share of the weight is out because of its traffic alone, and for one that still answers some of its requests
    /// with those that probes have taken out; `None`: no limit.
    pub max_ejected: Option<Ratio>,
    /// Destinations leave one after the other: at most one in each n-th part of this, n their number; `None`: no limit.
    pub spacing: Option<Duration>,
    /// What becomes of the last one.
    pub last: LastDestination,
    /// What becomes of one that fails its probes and answers its requests.
    #[serde(default)]
    pub answering: AnsweringDestination,
}

/// What becomes of the last destination that is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastDestination {
    /// It leaves like any other.
    #[default]
    Leaves,
    /// It stays whatever its traffic says.
    Stays,
}

/// What becomes of a destination whose probes come to nothing (not a byte of an answer, 429 or 529) while its requests are
/// answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnsweringDestination {
    /// Probes are believed.
    #[default]
    Leaves,
    /// It is full and not dead: it stays for as long as the answers go on.
    Stays,
}

impl Guards {
    /// The native default.
    pub fn native() -> Self {
        Self {
            max_ejected: Ratio::new(0.5),
            spacing: Some(Duration::from_secs(10)),
            last: LastDestination::Stays,
            answering: AnsweringDestination::Stays,
        }
    }
}
