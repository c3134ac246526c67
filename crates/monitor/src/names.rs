//! Names of destinations: turns the membership core with real lookups, and turns what it knows into configurations.
//!
//! ```text
//!   configuration as written ──names──> Membership ──poll_lookup──> lookup tasks ──answered──> Membership
//!           └──────────────────────────────expand<──────────────────what changed────────────────────┘
//!                                            └──> configuration of addresses, for core and traffic
//! ```

use std::collections::BTreeSet;
use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use ::io::Io;
use health::membership::{self, Answer, Lifetimes, Membership, NameKey};
use model::cluster::Cluster;
use model::config::{Config, Dns};
use model::time::Timestamp;
use telemetry::metrics::Metrics;
use tokio::task::JoinSet;
use upstream::{LookUp, LookedUp};

/// The names of all destinations. Without a way to look names up every destination stays as it was written.
pub struct Names {
    membership: Membership,
    lookup: Option<Rc<dyn LookUp>>,
    running: JoinSet<(NameKey, LookedUp)>,
    /// What was said about them last; said again when it changes.
    troubled: BTreeSet<NameKey>,
}

impl Names {
    /// Nothing is looked up.
    pub fn off() -> Self {
        Self::with(0, None)
    }

    /// Looked up by `lookup`; `seed` spreads the lookups in time.
    pub fn new(seed: u64, lookup: Rc<dyn LookUp>) -> Self {
        Self::with(seed, Some(lookup))
    }

    fn with(seed: u64, lookup: Option<Rc<dyn LookUp>>) -> Self {
        let membership = Membership::new(seed, lifetimes(&Dns::default()));
        Self { membership, lookup, running: JoinSet::new(), troubled: BTreeSet::new() }
    }

    /// Takes the names of a configuration over and waits for their first answers, up to `patience`. Needs a local set or
    /// runtime.
    pub async fn start<I: Io>(&mut self, io: &I, metrics: &Metrics, config: &Config, patience: Duration) {
        self.configured(io.now(), config, None);
        let until = io.now() + patience;
        while !self.is_settled() && io.now() < until {
            self.start_due(io.now());
            let next = self.poll_timeout().map_or(until, |due| due.min(until));
            tokio::select! {
                ended = self.next() => self.ended(io.now(), metrics, ended),
                () = io.sleep_until(next) => {}
            }
        }
    }

    /// These names are looked up from now on: those of `config`, and, while it is not in force yet, those of `before`.
    pub(crate) fn configured(&mut self, now: Timestamp, config: &Config, before: Option<&Config>) {
        let Some(lookup) = &self.lookup else { return };
        let of = |config: &Config| config.clusters.iter().flat_map(membership::names).collect::<Vec<_>>();
        let keys: BTreeSet<NameKey> = of(config).into_iter().chain(before.map(of).into_iter().flatten()).collect();
        self.troubled.retain(|key| keys.contains(key));
        if !keys.is_empty() {
            lookup.use_servers(&config.dns.servers);
        }
        self.membership.configured(now, &keys, lifetimes(&config.dns));
    }

    /// The configuration with addresses in place of names.
    pub(crate) fn expand(&self, config: &Arc<Config>) -> Arc<Config> {
        if self.lookup.is_none() {
            return Arc::clone(config);
        }
        let expanded: Vec<Option<Cluster>> =
            config.clusters.iter().map(|cluster| membership::expand(cluster, &self.membership)).collect();
        if expanded.iter().all(Option::is_none) {
            return Arc::clone(config);
        }
        let clusters = expanded.into_iter().zip(&config.clusters);
        let clusters = clusters.map(|(expanded, written)| expanded.unwrap_or_else(|| written.clone())).collect();
        Arc::new(Config { clusters, ..Config::clone(config) })
    }

    /// Whether each name was answered once.
    pub(crate) fn is_settled(&self) -> bool {
        self.membership.is_settled()
    }

    /// Whether addresses have changed since the last call.
    pub(crate) fn take_change(&mut self) -> bool {
        self.membership.take_change()
    }

    /// When [`Self::start_due`] has something to do.
    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        self.membership.poll_timeout()
    }

    /// Starts the lookups that are due.
    pub(crate) fn start_due(&mut self, now: Timestamp) {
        let Some(lookup) = &self.lookup else { return };
        while let Some(key) = self.membership.poll_lookup(now) {
            let lookup = Rc::clone(lookup);
            self.running.spawn_local(async move {
                let found = lookup.look_up(&key.name, key.family).await;
                (key, found)
            });
        }
    }

    /// The next lookup that ends; never while none runs. Cancel safe.
    pub(crate) async fn next(&mut self) -> (NameKey, LookedUp) {
        loop {
            match self.running.join_next().await {
                None => pending().await,
                Some(Ok(ended)) => return ended,
                // Nobody aborts them, and a panic has been told already.
                Some(Err(_)) => {}
            }
        }
    }

    /// Takes over what a lookup came to.
    pub(crate) fn ended(&mut self, now: Timestamp, metrics: &Metrics, (key, found): (NameKey, LookedUp)) {
        let (result, answer, trouble) = match found {
            LookedUp::Found(addresses, ttl) => ("found", Answer::Found { addresses, ttl }, None),
            LookedUp::Empty => ("empty", Answer::Empty, Some("it has no addresses".to_owned())),
            LookedUp::NoName => ("no_name", Answer::NoName, Some("there is no such name".to_owned())),
            LookedUp::Failed(why) => ("failed", Answer::Failed, Some(why)),
        };
        metrics.lookup(result);
        match trouble {
            Some(why) => {
                if self.troubled.insert(key.clone()) {
                    tracing::warn!(target: "monitor", name = &*key.name, why, "a name is not found; addresses known before stay in use");
                }
            }
            None => {
                if self.troubled.remove(&key) {
                    tracing::info!(target: "monitor", name = &*key.name, "the name is found again");
                }
            }
        }
        self.membership.answered(now, &key, answer);
    }
}

fn lifetimes(dns: &Dns) -> Lifetimes {
    Lifetimes { least: dns.min_ttl, most: dns.max_ttl }
}
