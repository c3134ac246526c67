//! What a passive policy has seen, as a value: carried over to the process that takes over.

use std::collections::VecDeque;
use std::time::Duration;

use model::ratio::Ratio;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

/// One policy's history. A policy that is given another one's begins anew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum History {
    /// Of `TransportFailureRate`, our own arithmetic.
    WindowedFailureRate {
        /// What the buckets' numbers count in: another window, other numbers.
        window: Duration,
        /// Number, failed attempts, all attempts; oldest first.
        buckets: VecDeque<(u64, u64, u64)>,
    },
    /// Of `TransportFailureRate` under `compat: yarp`.
    YarpFailureRate {
        /// The bucket that is open: when it closes, failed, all.
        open: Option<(Timestamp, u64, u64)>,
        /// The closed ones, oldest first.
        closed: VecDeque<(Timestamp, u64, u64)>,
    },
    /// Of `MaxFails`, our own arithmetic: when attempts failed, oldest first.
    SlidingMaxFails(VecDeque<Timestamp>),
    /// Of `MaxFails` under `compat: nginx`.
    NginxMaxFails {
        /// Counted failures.
        fails: u32,
        /// The second of the last one.
        accessed: u64,
        /// That, or the second of a later pick.
        checked: u64,
    },
    /// Of `Burst`.
    Burst {
        /// The sum, as a part of the most it can be.
        sum: Ratio,
        /// Since when it is above zero.
        positive_since: Option<Timestamp>,
        /// The last failure.
        failed_at: Timestamp,
        /// Failures since the sum was zero.
        failed: u64,
    },
    /// Of a policy written by others, in words of its own.
    Custom(String),
}
