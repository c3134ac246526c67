//! Passive checks: the options of every built-in policy that judges a destination by its own traffic.

mod options;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cluster::Compat;
use crate::id::PolicyName;
use crate::readmission::Readmission;

pub use options::{
    Burst, Comparison, ConnectFailures, ConsecutiveErrors, FailureRate, Latency, Overload, Plain500, Stall,
};

/// From ejection to Unknown where neither the cluster nor the policy says otherwise.
pub const DEFAULT_REACTIVATION: Duration = Duration::from_secs(60);

/// The passive check of a cluster. Present means on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassiveCheck {
    /// Policies that run side by side; the first one to find a destination bad ejects it.
    pub policies: Vec<PassivePolicy>,
    /// Policies that are judged beside them and never enforced.
    pub shadow: Vec<PassivePolicy>,
    /// From ejection to Unknown; `None`: the policy's own period (60 s).
    pub reactivation_period: Option<Duration>,
    /// The way back; `None`: full traffic at once.
    pub readmission: Option<Readmission>,
}

impl PassiveCheck {
    /// These policies, full traffic after an ejection, nothing beside.
    pub fn of(policies: Vec<PassivePolicy>) -> Self {
        Self { policies, shadow: Vec::new(), reactivation_period: None, readmission: None }
    }

    /// The native default set: the one that did best in the lab (docs/passive-checks.md). Failures are weighed against the
    /// rest of the cluster, 500 among them, since what everybody answers is nobody's sickness.
    pub fn native() -> Self {
        let plain_500 = Plain500::Counts;
        let policies = vec![
            PassivePolicy::ConnectFailures(ConnectFailures::default()),
            PassivePolicy::Burst(Burst { plain_500, ..Burst::default() }),
            PassivePolicy::Outlier(Comparison { plain_500, ..Comparison::default() }),
            PassivePolicy::Stall(Stall::default()),
            PassivePolicy::Latency(Latency::default()),
            PassivePolicy::Overload(Overload::default()),
        ];
        Self { readmission: Some(Readmission::default()), ..Self::of(policies) }
    }

    /// Whether a plain 500 is a failure of a trial request: it is where a policy that ejects takes it for one.
    pub fn plain_500(&self) -> Plain500 {
        let counts = self.policies.iter().any(|policy| match policy {
            PassivePolicy::ConsecutiveErrors(options) => options.plain_500 == Plain500::Counts,
            PassivePolicy::Outlier(options) => options.plain_500 == Plain500::Counts,
            PassivePolicy::Burst(options) => options.plain_500 == Plain500::Counts,
            PassivePolicy::MaxFails(_) | PassivePolicy::FailureRate(_) => true,
            PassivePolicy::TransportFailureRate(_)
            | PassivePolicy::ConnectFailures(_)
            | PassivePolicy::Stall(_)
            | PassivePolicy::Latency(_)
            | PassivePolicy::Overload(_)
            | PassivePolicy::Custom(_) => false,
        });
        if counts { Plain500::Counts } else { Plain500::Passes }
    }

    /// How long an ejection lasts where the cluster says so: its reactivation period, and under `compat: yarp` the window
    /// of a failure rate when that is longer. `None`: as the policy has it, and nginx's rule knows no other.
    pub fn ejection_period(&self, compat: Compat) -> Option<Duration> {
        let is_max_fails = |policy: &PassivePolicy| matches!(policy, PassivePolicy::MaxFails(_));
        if compat == Compat::Nginx && self.policies.iter().any(is_max_fails) {
            return None;
        }
        let windows = self.policies.iter().filter_map(|policy| match (policy, compat) {
            (PassivePolicy::TransportFailureRate(options), Compat::Yarp) => Some(options.window),
            (PassivePolicy::TransportFailureRate(_), Compat::None | Compat::Nginx)
            | (
                PassivePolicy::MaxFails(_)
                | PassivePolicy::ConsecutiveErrors(_)
                | PassivePolicy::FailureRate(_)
                | PassivePolicy::Outlier(_)
                | PassivePolicy::Burst(_)
                | PassivePolicy::ConnectFailures(_)
                | PassivePolicy::Stall(_)
                | PassivePolicy::Latency(_)
                | PassivePolicy::Overload(_)
                | PassivePolicy::Custom(_),
                _,
            ) => None,
        });
        self.reactivation_period.map(|period| windows.fold(period, Duration::max))
    }
}

/// Policies that judge outcomes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum PassivePolicy {
    /// Share of failed transports within a window.
    TransportFailureRate(TransportFailureRate),
    /// nginx's max_fails and fail_timeout.
    MaxFails(MaxFails),
    /// Failed attempts in a row.
    ConsecutiveErrors(ConsecutiveErrors),
    /// Share of failed attempts within a window.
    FailureRate(FailureRate),
    /// More failures than the rest of the cluster.
    Outlier(Comparison),
    /// Failures that come in a burst and last.
    Burst(Burst),
    /// No connection, in a row.
    ConnectFailures(ConnectFailures),
    /// Requests wait and nothing comes. Suspects only.
    Stall(Stall),
    /// Answers, but far slower than the rest. Suspects only.
    Latency(Latency),
    /// Asks for less more often than the rest. Suspects only.
    Overload(Overload),
    /// One registered in code.
    Custom(PolicyName),
}

impl PassivePolicy {
    /// Its name, as configurations and events show it.
    pub fn name(&self) -> &str {
        match self {
            Self::TransportFailureRate(_) => "TransportFailureRate",
            Self::MaxFails(_) => "MaxFails",
            Self::ConsecutiveErrors(_) => "ConsecutiveErrors",
            Self::FailureRate(_) => "FailureRate",
            Self::Outlier(_) => "Outlier",
            Self::Burst(_) => "Burst",
            Self::ConnectFailures(_) => "ConnectFailures",
            Self::Stall(_) => "Stall",
            Self::Latency(_) => "Latency",
            Self::Overload(_) => "Overload",
            Self::Custom(name) => name.as_str(),
        }
    }

    /// How long its ejections last where the cluster does not say. `None`: [`DEFAULT_REACTIVATION`] unless the policy
    /// registered in code says otherwise with each verdict.
    pub fn own_ejection_period(&self, compat: Compat) -> Option<Duration> {
        match (self, compat) {
            (Self::TransportFailureRate(options), Compat::Yarp) => Some(DEFAULT_REACTIVATION.max(options.window)),
            (Self::TransportFailureRate(_), Compat::None | Compat::Nginx) => Some(DEFAULT_REACTIVATION),
            (Self::MaxFails(options), _) => Some(options.fail_timeout),
            (
                Self::ConsecutiveErrors(_)
                | Self::FailureRate(_)
                | Self::Outlier(_)
                | Self::Burst(_)
                | Self::ConnectFailures(_)
                | Self::Stall(_)
                | Self::Latency(_)
                | Self::Overload(_),
                _,
            ) => Some(DEFAULT_REACTIVATION),
            (Self::Custom(_), _) => None,
        }
    }
}

/// Options of `TransportFailureRate`. Defaults are the YARP documentation's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransportFailureRate {
    /// Trips when failed / total reaches it. In (0, 1) unless a YARP file says otherwise (then as YARP acts).
    #[serde(with = "crate::number")]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ejection_lasts_as_long_as_the_window_under_compat_yarp_alone() {
        let rate = TransportFailureRate { window: Duration::from_secs(60), ..TransportFailureRate::default() };
        let check = |period| PassiveCheck {
            reactivation_period: Some(Duration::from_secs(period)),
            ..PassiveCheck::of(vec![PassivePolicy::TransportFailureRate(rate)])
        };
        let lasts = |period, compat| check(period).ejection_period(compat).map(|lasts| lasts.as_secs());
        assert_eq!(lasts(10, Compat::Yarp), Some(60));
        assert_eq!(lasts(90, Compat::Yarp), Some(90));
        assert_eq!(lasts(10, Compat::None), Some(10));
        let nginx = PassiveCheck { policies: vec![PassivePolicy::MaxFails(MaxFails::default())], ..check(90) };
        assert_eq!(nginx.ejection_period(Compat::Nginx), None);
        let unset = PassiveCheck { reactivation_period: None, ..check(0) };
        assert_eq!(unset.ejection_period(Compat::Yarp), None);
    }
}
