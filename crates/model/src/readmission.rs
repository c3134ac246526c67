//! How an ejected destination comes back: after a time that grows with each failed try, by single trial requests, and
//! then with a growing share of its weight.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ratio::Ratio;

/// The way back. Where a cluster has none, an ejected destination takes its full share as soon as its time is over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Readmission {
    /// Length of the first ejection; doubled by each failed readmission. Above zero.
    pub first: Duration,
    /// It grows no further than this; not below `first`.
    pub longest: Duration,
    /// Each ejection is longer or shorter by up to this part, so that many do not come back at once.
    pub jitter: Ratio,
    /// So many trial requests in a row must come to something good, one at a time; 0: none is asked for.
    pub canaries: u32,
    /// Passed probes count in their place after so long without one.
    pub patience: Duration,
    /// Without any sign for so long it goes on to the ramp: a cluster without traffic has nobody to lose.
    pub quiet: Duration,
    /// The time from the least share to all of its weight; zero: at once.
    pub ramp: Duration,
    /// Where the ramp begins.
    pub least_share: Ratio,
}

impl Default for Readmission {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(2),
            longest: Duration::from_secs(15),
            jitter: Ratio::percent(25),
            canaries: 3,
            patience: Duration::from_secs(5),
            quiet: Duration::from_secs(60),
            ramp: Duration::from_secs(5),
            least_share: Ratio::percent(10),
        }
    }
}
