//! Passive checks: the options of every built-in policy that judges a destination by its own traffic.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::PolicyName;

/// The passive check of a cluster. Present means on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassiveCheck {
    /// Policies that run side by side; the first one to find a destination bad ejects it.
    pub policies: Vec<PassivePolicy>,
    /// From ejection to Unknown; `None`: the policy's own period (60 s).
    pub reactivation_period: Option<Duration>,
}

/// Policies that judge outcomes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PassivePolicy {
    /// Share of failed transports within a window.
    TransportFailureRate(TransportFailureRate),
    /// nginx's max_fails and fail_timeout.
    MaxFails(MaxFails),
    /// One registered in code.
    Custom(PolicyName),
}

/// Options of `TransportFailureRate`. Defaults are the YARP documentation's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransportFailureRate {
    /// Trips when failed / total reaches it. In (0, 1) unless a YARP file says otherwise (then as YARP acts).
    pub rate_limit: f64,
    /// How long an attempt counts; above zero.
    pub window: Duration,
    /// Below so many attempts in the window nothing trips; 1 or more.
    pub minimum: u32,
}

impl Default for TransportFailureRate {
    fn default() -> Self {
        Self { rate_limit: 0.3, window: Duration::from_secs(60), minimum: 10 }
    }
}

/// Options of `MaxFails`. Defaults are nginx's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaxFails {
    /// Trips at so many; 0 turns the rule off.
    pub max_fails: u32,
    /// A quiet period of this length forgives earlier failures; an ejection lasts as long. Above zero.
    pub fail_timeout: Duration,
}

impl Default for MaxFails {
    fn default() -> Self {
        Self { max_fails: 1, fail_timeout: Duration::from_secs(10) }
    }
}
