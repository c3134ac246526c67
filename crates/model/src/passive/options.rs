//! Options of the passive policies that weigh failures against the rest of the cluster, against time, or in a row.
//!
//! Which outcomes each of them counts, and when it trips, stands in the head of its file in the health core.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ratio::Ratio;

/// Whether an answer of 500 counts as a failure. It is as often the request's fault as the server's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plain500 {
    /// It counts.
    Counts,
    /// It counts as an answer.
    #[default]
    Passes,
}

/// Options of `ConsecutiveErrors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsecutiveErrors {
    /// Trips at so many failed attempts in a row; 1 or more.
    pub threshold: u32,
    /// Whether 500 is one.
    pub plain_500: Plain500,
}

impl Default for ConsecutiveErrors {
    /// Envoy's `consecutive_5xx`: 5, any of them.
    fn default() -> Self {
        Self { threshold: 5, plain_500: Plain500::Counts }
    }
}

/// Options of `FailureRate`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureRate {
    /// Trips when failed / total reaches it; above 0.
    pub rate_limit: Ratio,
    /// How long an attempt counts; above zero.
    pub window: Duration,
    /// Below so many attempts in the window nothing trips; 1 or more.
    pub minimum: u32,
}

impl Default for FailureRate {
    fn default() -> Self {
        Self { rate_limit: Ratio::percent(30), window: Duration::from_secs(10), minimum: 20 }
    }
}

/// When one destination's failures are more than its cluster's.
///
/// z = (p - p_rest) / sqrt(q (1 - q) (1/n + 1/n_rest)), q the share over both: the two-proportion test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Convicts above so many standard deviations; above 0.
    pub z: f64,
    /// And only when the shares differ by more than this.
    pub difference: Ratio,
    /// Nobody is convicted while the rest fails as often as this: what fails lies behind all of them.
    pub rest_limit: Ratio,
    /// Attempts of its own that are needed, of the last 10 s; 1 or more.
    pub minimum: u32,
    /// Whether 500 is a failure.
    pub plain_500: Plain500,
}

impl Default for Comparison {
    fn default() -> Self {
        Self {
            z: 3.0,
            difference: Ratio::percent(10),
            rest_limit: Ratio::percent(30),
            minimum: 20,
            plain_500: Plain500::Passes,
        }
    }
}

/// Options of `Burst`: a CUSUM of failures that must also last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// Share of failures that is normal; above 0, below `bad`.
    pub good: Ratio,
    /// Share of failures that is to be found; below 1.
    pub bad: Ratio,
    /// Suspects at this sum; 9.2 is four failures from nothing with the other defaults.
    pub limit: f64,
    /// The sum must have been above zero for so long.
    pub persist: Duration,
    /// The part of its weight that a suspect keeps.
    pub suspect_share: Ratio,
    /// Whether 500 is a failure.
    pub plain_500: Plain500,
}

impl Default for Burst {
    fn default() -> Self {
        Self {
            good: Ratio::percent(5),
            bad: Ratio::percent(50),
            limit: 9.2,
            persist: Duration::from_secs(1),
            suspect_share: Ratio::percent(10),
            plain_500: Plain500::Passes,
        }
    }
}

/// Options of `ConnectFailures`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConnectFailures {
    /// Suspects at so many attempts in a row that got no connection; 1 or more.
    pub threshold: u32,
    /// Trips when the row has lasted for so long, too.
    pub persist: Duration,
    /// The part of its weight that a suspect keeps.
    pub suspect_share: Ratio,
}

impl Default for ConnectFailures {
    fn default() -> Self {
        Self { threshold: 3, persist: Duration::from_millis(500), suspect_share: Ratio::percent(10) }
    }
}

/// Options of `Stall`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// So many requests must wait for their response head; 1 or more.
    pub minimum: u32,
    /// Silence of this length is no stall.
    pub at_least: Duration,
    /// Nor one below so many times the 99th percentile of the time to first byte; above 0.
    pub factor: f64,
}

impl Default for Stall {
    fn default() -> Self {
        Self { minimum: 3, at_least: Duration::from_secs(1), factor: 4.0 }
    }
}

/// Options of `Latency`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Slow is above so many times the median of the cluster; above 1.
    pub factor: f64,
    /// And slower than the median by more than this.
    pub difference: Duration,
    /// For so long.
    pub persist: Duration,
    /// The least part of its weight that it keeps.
    pub least_share: Ratio,
}

impl Default for Latency {
    fn default() -> Self {
        Self {
            factor: 3.0,
            difference: Duration::from_millis(20),
            persist: Duration::from_secs(5),
            least_share: Ratio::percent(10),
        }
    }
}

/// Options of `Overload`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overload {
    /// Asks for less more often than the rest is above so many standard deviations; above 0.
    pub z: f64,
    /// And only when the shares differ by more than this.
    pub difference: Ratio,
    /// Attempts that are needed on either side; 1 or more.
    pub minimum: u32,
    /// The least part of its weight that it keeps.
    pub least_share: Ratio,
}

impl Default for Overload {
    fn default() -> Self {
        Self { z: 3.0, difference: Ratio::percent(10), minimum: 20, least_share: Ratio::percent(10) }
    }
}
