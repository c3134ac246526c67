//! The built-in policies with all that they have seen: what a checkpoint keeps of them.

use serde::{Deserialize, Serialize};

use super::{
    Burst, ConnectFailures, ConsecutiveErrors, Latency, NginxMaxFails, Outlier, Overload, PassivePolicy,
    SlidingMaxFails, Stall, WindowedFailureRate, YarpFailureRate,
};

/// One of them, to the last bit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are the policies'")]
pub enum BuiltIn {
    Burst(Burst),
    ConnectFailures(ConnectFailures),
    ConsecutiveErrors(ConsecutiveErrors),
    Latency(Latency),
    NginxMaxFails(NginxMaxFails),
    Outlier(Outlier),
    Overload(Overload),
    SlidingMaxFails(SlidingMaxFails),
    Stall(Stall),
    WindowedFailureRate(WindowedFailureRate),
    YarpFailureRate(YarpFailureRate),
}

impl BuiltIn {
    /// The policy, ready to go on.
    pub(crate) fn into_policy(self) -> Box<dyn PassivePolicy> {
        match self {
            Self::Burst(policy) => Box::new(policy),
            Self::ConnectFailures(policy) => Box::new(policy),
            Self::ConsecutiveErrors(policy) => Box::new(policy),
            Self::Latency(policy) => Box::new(policy),
            Self::NginxMaxFails(policy) => Box::new(policy),
            Self::Outlier(policy) => Box::new(policy),
            Self::Overload(policy) => Box::new(policy),
            Self::SlidingMaxFails(policy) => Box::new(policy),
            Self::Stall(policy) => Box::new(policy),
            Self::WindowedFailureRate(policy) => Box::new(policy),
            Self::YarpFailureRate(policy) => Box::new(policy),
        }
    }
}
