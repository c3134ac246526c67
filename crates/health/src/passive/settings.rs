//! What each passive policy of a destination is built from, and when two of them are the same policy.

use std::time::Duration;

use model::cluster::{Cluster, Compat};
use model::destination::Destination;
use model::id::DestinationId;
use model::passive::{PassiveCheck, PassivePolicy as Options};

/// What a passive policy is built from.
#[derive(Clone, Debug, PartialEq)]
pub struct PassiveSettings {
    /// The destination it serves.
    pub destination: DestinationId,
    /// The policy's own options.
    pub options: Options,
    /// Whose arithmetic the cluster follows.
    pub compat: Compat,
    /// The cluster's reactivation period, if one is set.
    pub reactivation_period: Option<Duration>,
    /// Destinations in the cluster, this one included.
    pub n_destinations: usize,
}

impl PassiveSettings {
    /// One per policy of the destination: the cluster's, with the destination's own max_fails in place of the cluster's
    /// where it has one.
    pub(crate) fn of(destination: &Destination, cluster: &Cluster, check: &PassiveCheck) -> Vec<Self> {
        let mut policies = check.policies.clone();
        if let Some(own) = destination.max_fails {
            policies.retain(|one| !matches!(one, Options::MaxFails(_)));
            policies.push(Options::MaxFails(own));
        }
        Self::all(policies, destination, cluster, check)
    }

    /// One per shadow policy.
    pub(crate) fn of_shadow(destination: &Destination, cluster: &Cluster, check: &PassiveCheck) -> Vec<Self> {
        Self::all(check.shadow.clone(), destination, cluster, check)
    }

    fn all(policies: Vec<Options>, destination: &Destination, cluster: &Cluster, check: &PassiveCheck) -> Vec<Self> {
        let settings = policies.into_iter().map(|options| Self {
            destination: destination.id.clone(),
            options,
            compat: cluster.compat,
            reactivation_period: check.reactivation_period,
            n_destinations: cluster.destinations.len(),
        });
        settings.collect()
    }

    /// Whether both are of one policy under one arithmetic, so that its history may stay when its options change.
    pub(crate) fn is_same_policy(&self, other: &Self) -> bool {
        self.compat == other.compat
            && match (&self.options, &other.options) {
                (Options::TransportFailureRate(_), Options::TransportFailureRate(_))
                | (Options::MaxFails(_), Options::MaxFails(_))
                | (Options::ConsecutiveErrors(_), Options::ConsecutiveErrors(_))
                | (Options::FailureRate(_), Options::FailureRate(_))
                | (Options::Outlier(_), Options::Outlier(_))
                | (Options::Burst(_), Options::Burst(_))
                | (Options::ConnectFailures(_), Options::ConnectFailures(_))
                | (Options::Stall(_), Options::Stall(_))
                | (Options::Latency(_), Options::Latency(_))
                | (Options::Overload(_), Options::Overload(_)) => true,
                (Options::Custom(a), Options::Custom(b)) => a == b,
                (
                    Options::TransportFailureRate(_)
                    | Options::MaxFails(_)
                    | Options::ConsecutiveErrors(_)
                    | Options::FailureRate(_)
                    | Options::Outlier(_)
                    | Options::Burst(_)
                    | Options::ConnectFailures(_)
                    | Options::Stall(_)
                    | Options::Latency(_)
                    | Options::Overload(_)
                    | Options::Custom(_),
                    _,
                ) => false,
            }
    }
}
