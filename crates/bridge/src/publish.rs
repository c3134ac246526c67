//! From the core to the board: the configuration and the health view become the one snapshot that requests load.
//!
//! A part that did not change is the same `Arc` in two snapshots: routes while the routes are equal, a cluster while
//! its configuration and what traffic sees of its health are equal. Facts for people (probe times, counts) stand in the
//! health view alone and never renew a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use balance::{Picker, Policies, affinity};
use exchange::snapshot::{ClusterView, DestinationView, Endpoint, Needs, RouteView, Snapshot};
use health::Core;
use model::cluster::Cluster;
use model::config::Config;
use model::destination::Destination;
use model::id::{ClusterId, Revision, Slot};
use model::view::{ClusterHealth, DestinationHealth};
use route::Table;

use crate::budgets::Budgets;

/// Builds snapshots.
pub struct Publisher {
    policies: Policies,
    config: Arc<Config>,
    table: Arc<Table>,
    routes: Arc<[RouteView]>,
    clusters: Vec<Arc<Cluster>>,
    published: BTreeMap<ClusterId, Arc<ClusterView>>,
    /// Whose slot it is; made anew when a cluster is.
    owners: BTreeMap<Slot, ClusterId>,
    revision: Revision,
}

impl Publisher {
    /// For snapshots of `config`, with balancing policies that are registered in code.
    pub fn new(policies: Policies, config: Arc<Config>) -> Self {
        let mut publisher = Self {
            policies,
            table: Arc::new(Table::new(&config.routes)),
            routes: route_views(&config),
            clusters: Vec::new(),
            config: Arc::clone(&config),
            published: BTreeMap::new(),
            owners: BTreeMap::new(),
            revision: Revision::default(),
        };
        publisher.configure(config);
        publisher
    }

    /// Snapshots are made of `config` from here on.
    pub fn configure(&mut self, config: Arc<Config>) {
        if self.config.routes != config.routes {
            self.table = Arc::new(Table::new(&config.routes));
        }
        // Always anew: clusters may stand in other places.
        self.routes = route_views(&config);
        let before: BTreeMap<&ClusterId, &Arc<Cluster>> =
            self.clusters.iter().map(|cluster| (&cluster.id, cluster)).collect();
        let kept = |cluster: &Cluster| {
            before.get(&cluster.id).filter(|kept| ****kept == *cluster).map(|kept| Arc::clone(kept))
        };
        self.clusters =
            config.clusters.iter().map(|cluster| kept(cluster).unwrap_or_else(|| Arc::new(cluster.clone()))).collect();
        self.config = config;
    }

    /// The configuration that snapshots are made of.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The clusters, each shared with the core and with the snapshots.
    pub fn clusters(&self) -> Vec<Arc<Cluster>> {
        self.clusters.clone()
    }

    /// All slots of the last snapshot, and whose they are.
    pub fn owners(&self) -> &BTreeMap<Slot, ClusterId> {
        &self.owners
    }

    /// The snapshot of this moment.
    pub fn snapshot(&mut self, core: &mut Core, budgets: &mut Budgets) -> Snapshot {
        let health = core.view();
        let mut clusters = Vec::with_capacity(self.clusters.len());
        let mut is_any_new = self.published.len() != self.clusters.len();
        for (cluster, state) in self.clusters.iter().zip(&health.clusters) {
            debug_assert_eq!(cluster.id, state.id, "the core keeps the order of the configuration");
            let needs = needs(core.needs(&cluster.id));
            let last = self.published.get(&cluster.id).filter(|view| is_current(view, cluster, state, needs));
            clusters.push(match last {
                Some(view) => Arc::clone(view),
                None => {
                    is_any_new = true;
                    Arc::new(cluster_view(
                        cluster,
                        state,
                        &self.policies,
                        needs,
                        budgets.place(&cluster.id, cluster.retry.budget),
                    ))
                }
            });
        }
        if is_any_new {
            self.published = clusters.iter().map(|view| (view.id.clone(), Arc::clone(view))).collect();
            let owned = |view: &Arc<ClusterView>| {
                let id = view.id.clone();
                view.destinations
                    .iter()
                    .map(|destination| destination.slot)
                    .zip(std::iter::repeat(id))
                    .collect::<Vec<_>>()
            };
            self.owners = clusters.iter().flat_map(owned).collect();
        }
        self.revision = self.revision.next();
        Snapshot {
            revision: self.revision,
            config: Arc::clone(&self.config),
            health,
            table: Arc::clone(&self.table),
            routes: Arc::clone(&self.routes),
            clusters,
        }
    }
}

/// Whether traffic would see no difference.
fn is_current(view: &ClusterView, cluster: &Arc<Cluster>, state: &ClusterHealth, needs: Needs) -> bool {
    Arc::ptr_eq(&view.config, cluster)
        && view.needs == needs
        && view.available == state.available
        && view.destinations.len() == state.destinations.len()
        && view.destinations.iter().zip(&state.destinations).all(|(view, state)| {
            view.slot == state.slot
                && view.because == state.because
                && view.is_gated == state.is_gated
                && view.share == state.share
        })
}

fn cluster_view(
    cluster: &Arc<Cluster>,
    state: &ClusterHealth,
    policies: &Policies,
    needs: Needs,
    budget: u32,
) -> ClusterView {
    let shares: Vec<_> = state.destinations.iter().map(|destination| destination.share).collect();
    ClusterView {
        id: cluster.id.clone(),
        config: Arc::clone(cluster),
        compat: cluster.compat,
        destinations: cluster
            .destinations
            .iter()
            .zip(&state.destinations)
            .map(|(destination, state)| destination_view(destination, state))
            .collect(),
        available: state.available.clone(),
        picker: Picker::new(cluster, policies).with_shares(&shares),
        affinity: cluster.session_affinity.clone(),
        retry: cluster.retry.clone(),
        queue: ClusterView::queue_of(cluster),
        timeouts: cluster.timeouts,
        host: cluster.host,
        http: cluster.traffic_http(),
        needs,
        budget,
    }
}

fn destination_view(destination: &Destination, state: &DestinationHealth) -> DestinationView {
    let address = &destination.address;
    let host = destination.host.clone().unwrap_or_else(|| address.authority());
    DestinationView {
        id: destination.id.clone(),
        slot: state.slot,
        host: host.into(),
        endpoint: match address.literal() {
            Some(literal) => Endpoint::Address(literal),
            None => Endpoint::Name(address.host.as_str().into(), address.port),
        },
        address: address.clone(),
        weight: destination.weight,
        affinity_key: affinity::key(destination.id.as_str()).into(),
        because: state.because,
        is_gated: state.is_gated,
        share: state.share,
        max_connections: destination.max_connections,
    }
}

fn route_views(config: &Config) -> Arc<[RouteView]> {
    config.routes.iter().map(|route| RouteView::of(route, config)).collect()
}

fn needs(needs: health::Needs) -> Needs {
    match needs {
        health::Needs::Nothing => Needs::Nothing,
        health::Needs::Failures => Needs::Failures,
        health::Needs::EveryOutcome => Needs::EveryOutcome,
    }
}
