//! The stages that a request passes, for programs that want to choose them.
//!
//! The order is fixed: affinity lookup, balancing, affinity setting, passive checks. A stage that a cluster needs and
//! the pipeline lacks is refused when the proxy is built: a check that is configured and never runs is the worst kind.

use model::config::Config;
use thiserror::Error;

/// Which stages run. [`Pipeline::default`] has all of them; [`Pipeline::new`] has none yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    affinity_lookup: Stage,
    load_balancing: Stage,
    affinity_setting: Stage,
    passive_health_checks: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Present,
    Absent,
}

/// A stage that the configuration needs is not there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PipelineError {
    /// No balancing: nobody would be chosen.
    #[error("the pipeline has no load_balancing stage: add Pipeline::load_balancing()")]
    LoadBalancing,
    /// A cluster keeps clients with a destination.
    #[error(
        "cluster {0:?} has session_affinity, but the pipeline lacks its lookup or setting stage: add Pipeline::affinity_lookup() and Pipeline::affinity_setting()"
    )]
    Affinity(String),
    /// A cluster has passive checks.
    #[error(
        "cluster {0:?} has passive checks, but the pipeline lacks their stage: add Pipeline::passive_health_checks()"
    )]
    Passive(String),
}

impl Default for Pipeline {
    fn default() -> Self {
        Self::new().affinity_lookup().load_balancing().affinity_setting().passive_health_checks()
    }
}

impl Pipeline {
    /// No stage yet.
    pub fn new() -> Self {
        Self {
            affinity_lookup: Stage::Absent,
            load_balancing: Stage::Absent,
            affinity_setting: Stage::Absent,
            passive_health_checks: Stage::Absent,
        }
    }

    /// Narrows the choice to the destination that a client is bound to.
    #[must_use]
    pub fn affinity_lookup(mut self) -> Self {
        self.affinity_lookup = Stage::Present;
        self
    }

    /// Chooses a destination.
    #[must_use]
    pub fn load_balancing(mut self) -> Self {
        self.load_balancing = Stage::Present;
        self
    }

    /// Binds the client to the destination that answered.
    #[must_use]
    pub fn affinity_setting(mut self) -> Self {
        self.affinity_setting = Stage::Present;
        self
    }

    /// Lets passive policies see each outcome.
    #[must_use]
    pub fn passive_health_checks(mut self) -> Self {
        self.passive_health_checks = Stage::Present;
        self
    }

    /// Whether every stage that the configuration needs is there.
    pub(crate) fn check(&self, config: &Config) -> Result<(), PipelineError> {
        if self.load_balancing == Stage::Absent {
            return Err(PipelineError::LoadBalancing);
        }
        let has_affinity = self.affinity_lookup == Stage::Present && self.affinity_setting == Stage::Present;
        for cluster in &config.clusters {
            if cluster.session_affinity.is_some() && !has_affinity {
                return Err(PipelineError::Affinity(cluster.id.to_string()));
            }
            if cluster.health_check.passive.is_some() && self.passive_health_checks == Stage::Absent {
                return Err(PipelineError::Passive(cluster.id.to_string()));
            }
        }
        Ok(())
    }
}
