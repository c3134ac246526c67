//! What a checkpoint holds of a destination's traffic: the counts of its policies, and how far it is on its way back.

use std::time::Duration;

use model::cluster::Cluster;
use model::destination::Destination;
use model::id::PolicyName;
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::ResumeError;
use crate::destination::{Recent, Traffic};
use crate::doubt::Shadow;
use crate::guards::Departure;
use crate::passive::{self, BuiltIn, PassivePolicy, PassiveSettings};
use crate::readmission::Comeback;
use crate::registry::Registry;
use crate::window::Window;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TrafficPoint {
    pub(super) policies: Vec<PolicyPoint>,
    pub(super) shadow: Vec<(PolicyPoint, Option<Timestamp>)>,
    window: Window,
    comeback: Comeback,
    departure: Departure,
    is_worse: bool,
    compared_at: Option<Timestamp>,
    is_unconfirmed: bool,
    ejected_at: Option<Timestamp>,
    has_failed: bool,
    is_unproven: bool,
    /// Younger than the format: what was written without it has heard of none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    good_at: Option<Timestamp>,
    failed: Recent,
    /// Younger than the format, too.
    #[serde(default, skip_serializing_if = "is_zero")]
    failures_in_row: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mean: Option<Duration>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum PolicyPoint {
    BuiltIn(BuiltIn),
    /// Written by others.
    Stranger(PolicyName),
}

impl TrafficPoint {
    pub(super) fn of(traffic: &Traffic) -> Self {
        let shadow = traffic.shadow.iter().map(|one| (PolicyPoint::of(one.policy.as_ref()), one.out_until));
        Self {
            policies: traffic.policies.iter().map(|(_, policy)| PolicyPoint::of(policy.as_ref())).collect(),
            shadow: shadow.collect(),
            window: traffic.window.clone(),
            comeback: traffic.comeback,
            departure: traffic.departure,
            is_worse: traffic.is_worse,
            compared_at: traffic.compared_at,
            is_unconfirmed: traffic.is_unconfirmed,
            ejected_at: traffic.ejected_at,
            has_failed: traffic.has_failed,
            is_unproven: traffic.is_unproven,
            good_at: traffic.good_at,
            failed: traffic.failed.clone(),
            failures_in_row: traffic.failures_in_row,
            mean: traffic.mean,
        }
    }

    pub(super) fn into_state(
        self,
        config: &Destination,
        cluster: &Cluster,
        registry: &Registry,
    ) -> Result<Traffic, ResumeError> {
        let check = cluster.health_check.passive.as_ref();
        let settings = check.map(|check| PassiveSettings::of(config, cluster, check)).unwrap_or_default();
        let shadows = check.map(|check| PassiveSettings::of_shadow(config, cluster, check)).unwrap_or_default();
        let policies = paired(self.policies, settings, registry)?;
        let (points, until): (Vec<_>, Vec<_>) = self.shadow.into_iter().unzip();
        let shadow = paired(points, shadows, registry)?.into_iter().zip(until);
        Ok(Traffic {
            policies,
            shadow: shadow.map(|((settings, policy), out_until)| Shadow { settings, policy, out_until }).collect(),
            window: self.window,
            comeback: self.comeback,
            departure: self.departure,
            is_worse: self.is_worse,
            compared_at: self.compared_at,
            is_unconfirmed: self.is_unconfirmed,
            ejected_at: self.ejected_at,
            has_failed: self.has_failed,
            is_unproven: self.is_unproven,
            good_at: self.good_at,
            failed: self.failed,
            failures_in_row: self.failures_in_row,
            mean: self.mean,
        })
    }
}

impl PolicyPoint {
    fn of(policy: &dyn PassivePolicy) -> Self {
        policy.as_built_in().map_or_else(|| Self::Stranger(policy.name().into()), Self::BuiltIn)
    }
}

type Pair = (PassiveSettings, Box<dyn PassivePolicy>);

/// The policies with the settings that they were built from. A custom one that nobody had registered was never built.
fn paired(
    points: Vec<PolicyPoint>,
    settings: Vec<PassiveSettings>,
    registry: &Registry,
) -> Result<Vec<Pair>, ResumeError> {
    let mut settings = settings.into_iter();
    let mut pairs = Vec::with_capacity(points.len());
    for point in points {
        let is_its_own = |settings: &PassiveSettings| match (&point, &settings.options) {
            (PolicyPoint::Stranger(_), model::passive::PassivePolicy::Custom(_)) => true,
            (PolicyPoint::BuiltIn(_), model::passive::PassivePolicy::Custom(_)) | (PolicyPoint::Stranger(_), _) => {
                false
            }
            (PolicyPoint::BuiltIn(_), _) => true,
        };
        let own = settings.find(is_its_own).ok_or(ResumeError::Misfit)?;
        let policy = match point {
            PolicyPoint::BuiltIn(policy) => policy.into_policy(),
            PolicyPoint::Stranger(name) => passive::build(&own, registry).ok_or(ResumeError::Unknown(name))?,
        };
        pairs.push((own, policy));
    }
    Ok(pairs)
}

/// A segment of a recording lasts the longer the larger the state is that it begins with.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
