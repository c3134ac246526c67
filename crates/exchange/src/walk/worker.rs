//! What one worker keeps between exchanges.

use std::collections::{BTreeMap, BTreeSet};

use balance::Turns;
use model::config::Config;
use model::id::{ClusterId, RouteId};
use model::random::Random;
use retry::Pace;

/// Its part of balancing, its chance, and what it has learnt.
#[derive(Debug)]
pub struct Worker {
    /// Whose turn it is.
    pub turns: Turns,
    /// Where its random choices come from.
    pub random: Random,
    /// What routes with `per_try_timeout: adaptive` have taught it.
    pub(super) paces: BTreeMap<RouteId, Pace>,
}

impl Worker {
    /// A worker that has served nothing yet; give each worker another seed.
    pub fn new(seed: u64) -> Self {
        Self { turns: Turns::new(), random: Random::new(seed), paces: BTreeMap::new() }
    }

    /// Forgets the clusters that are not in `config`. To be called when a worker has seen another configuration.
    pub fn retain(&mut self, config: &Config) {
        let alive: BTreeSet<&ClusterId> = config.clusters.iter().map(|cluster| &cluster.id).collect();
        self.turns.retain(|cluster| alive.contains(cluster));
        let routes: BTreeSet<&RouteId> = config.routes.iter().map(|route| &route.id).collect();
        self.paces.retain(|route, _| routes.contains(route));
    }
}
