//! Who is next: the pin, then the balancing policy over the available ones that were not tried, past the gates.

use std::time::Duration;

use balance::affinity::{self, Pin, cookie, hash};
use balance::{IndexSet, Key, Loads};
use model::affinity::AffinityFailurePolicy;
use model::balancing::HashKey;
use model::id::{DestinationIndex, Slot};
use model::random::Random;
use model::ratio::Ratio;
use model::request::{Fields, RequestFacts};
use model::time::Timestamp;
use retry::Pool;

use crate::limit::ClientKey;
use crate::snapshot::{ClusterView, DestinationView};
use crate::step::{Admission, Places, Refused, Shared};
use crate::walk::Worker;

/// What a pick comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Picked {
    /// This one.
    One(DestinationIndex, Admission),
    /// There is none.
    Nobody,
    /// There are some, and all have as many requests as they may have.
    Busy,
}

/// What an exchange's first pick comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// That of balancing, or the pinned one.
    Picked(Picked),
    /// The pinned one has no place free; this is what balancing says of the others.
    Elsewhere(Picked),
    /// The pinned one has no place free, and no other may serve.
    PinBusy(Slot),
    /// The pinned one cannot serve, and no other may.
    PinLost,
}

/// Whether a request may be the trial of a destination that is on its way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trial {
    /// It may.
    Welcome,
    /// Only where there is nobody else: a failed trial could not be made good.
    LastResort,
}

/// The first pick of an exchange.
pub(crate) fn first(
    cluster: &ClusterView,
    pin: Pin,
    key: Key,
    trial: Trial,
    worker: &mut Worker,
    shared: &impl Shared,
) -> First {
    let mut balanced = || next(cluster, &IndexSet::default(), key, trial, worker, shared);
    let policy = cluster.affinity.as_ref().map(|affinity| affinity.failure_policy);
    let (Some(policy), Pin::To(_) | Pin::Unknown) = (policy, pin) else { return First::Picked(balanced()) };
    let refused = match pinned(cluster, pin) {
        None => Refused::Gate,
        Some((index, destination)) => match (admit(cluster, index, shared), policy) {
            (Ok(admission), _) => return First::Picked(Picked::One(index, admission)),
            (Err(Refused::Place), AffinityFailurePolicy::Return503Error) => return First::PinBusy(destination.slot),
            (Err(refused), _) => refused,
        },
    };
    match (policy, refused) {
        (AffinityFailurePolicy::Redistribute, Refused::Gate) => First::Picked(balanced()),
        (AffinityFailurePolicy::Redistribute, Refused::Place) => First::Elsewhere(balanced()),
        (AffinityFailurePolicy::Return503Error, Refused::Gate | Refused::Place) => First::PinLost,
    }
}

/// The destination that the client's session lives on, while it is available.
pub(crate) fn pinned(cluster: &ClusterView, pin: Pin) -> Option<(DestinationIndex, &DestinationView)> {
    let Pin::To(index) = pin else { return None };
    let destination = cluster.destinations.get(index.index())?;
    cluster.available.contains(&index.0).then_some((index, destination))
}

/// Whether this request leaves the destination that its session lives on: one that gets a part of its weight keeps that
/// part of its sessions' requests. The session itself stays.
pub(crate) fn diverts(cluster: &ClusterView, pin: Pin, random: &mut Random) -> bool {
    let Pin::To(index) = pin else { return false };
    let share = cluster.destinations.get(index.index()).map_or(Ratio::ONE, |destination| destination.share);
    let policy = cluster.affinity.as_ref().map(|affinity| affinity.failure_policy);
    share < Ratio::ONE && policy == Some(AffinityFailurePolicy::Redistribute) && random.unit() >= share.get()
}

/// The next pick by the balancing policy. One that is gated and whose gate somebody else holds counts as not available.
pub(crate) fn next(
    cluster: &ClusterView,
    tried: &IndexSet,
    key: Key,
    trial: Trial,
    worker: &mut Worker,
    shared: &impl Shared,
) -> Picked {
    let busy = Busy { cluster, shared };
    let Worker { turns, random, .. } = worker;
    let mut refused: Option<IndexSet> = None;
    // Gated ones that would have been picked by a request that may be their trial.
    let mut spared: Option<IndexSet> = None;
    let mut is_busy = false;
    // Each round but the last refuses one more.
    for _ in 0..=cluster.available.len() {
        let excluded = refused.as_ref().unwrap_or(tried);
        let Some(index) = cluster.picker.pick(&cluster.available, excluded, key, &busy, turns, random) else { break };
        let is_spared = trial == Trial::LastResort && is_gated(cluster, index);
        let admitted = if is_spared { Err(Refused::Gate) } else { admit(cluster, index, shared) };
        let why = match admitted {
            Ok(admission) => return Picked::One(index, admission),
            Err(why) => why,
        };
        let refused = refused.get_or_insert_with(|| tried.clone());
        refused.insert(index);
        match why {
            Refused::Gate if is_spared => spared.get_or_insert_with(IndexSet::default).insert(index),
            Refused::Gate => {}
            Refused::Place => {
                is_busy = true;
                // Where one is full many may be, and a round looks at all that are left: they are passed by together.
                let all = cluster.available.iter().map(|&index| DestinationIndex(index));
                all.filter(|&index| is_full(cluster, index, shared)).for_each(|index| refused.insert(index));
            }
        }
    }
    let is_spared = |index: &DestinationIndex| spared.as_ref().is_some_and(|spared| spared.contains(*index));
    let mut last = cluster.available.iter().map(|&index| DestinationIndex(index)).filter(is_spared);
    let found = last.find_map(|index| match admit(cluster, index, shared) {
        Ok(admission) => Some(Picked::One(index, admission)),
        Err(refused) => {
            is_busy |= refused == Refused::Place;
            None
        }
    });
    found.unwrap_or(if is_busy { Picked::Busy } else { Picked::Nobody })
}

fn is_gated(cluster: &ClusterView, index: DestinationIndex) -> bool {
    cluster.destinations.get(index.index()).is_some_and(|destination| destination.is_gated)
}

fn is_full(cluster: &ClusterView, index: DestinationIndex, shared: &impl Shared) -> bool {
    let limited = cluster.destinations.get(index.index()).and_then(|one| Some((one.slot, one.max_connections?)));
    limited.is_some_and(|(slot, most)| shared.is_full(slot, Places { most, cluster: cluster.budget }))
}

fn is_held(now: Timestamp, cluster: &ClusterView, index: DestinationIndex, shared: &impl Shared) -> bool {
    let gated = cluster.destinations.get(index.index()).filter(|destination| destination.is_gated);
    gated.is_some_and(|destination| shared.is_held(destination.slot, now))
}

/// Claims the destination's gate where one stands, and one of its places where they are counted.
fn admit(cluster: &ClusterView, index: DestinationIndex, shared: &impl Shared) -> Result<Admission, Refused> {
    let destination = cluster.destinations.get(index.index()).ok_or(Refused::Gate)?;
    let places = destination.max_connections.map(|most| Places { most, cluster: cluster.budget });
    if destination.is_gated {
        return shared.claim(destination.slot, places).map(|()| Admission::Gate);
    }
    match places {
        None => Ok(Admission::Open),
        Some(places) if shared.occupy(destination.slot, places) => Ok(Admission::Place),
        Some(_) => Err(Refused::Place),
    }
}

/// How the untried ones are doing that could take a request at this moment: not the full ones, nor those whose gate
/// somebody holds.
pub(crate) fn pool(now: Timestamp, cluster: &ClusterView, tried: &IndexSet, shared: &impl Shared) -> Pool {
    let mut pool = Pool::Empty;
    for (index, _) in cluster.picker.candidates(&cluster.available, tried).iter() {
        if is_full(cluster, index, shared) || is_held(now, cluster, index, shared) {
            continue;
        }
        match cluster.destinations.get(index.index()) {
            Some(destination) if shared.is_failing(destination.slot) => pool = Pool::Failing,
            Some(_) | None => return Pool::Good,
        }
    }
    pool
}

/// What the cluster's balancing tells this request apart by.
pub(crate) fn key(cluster: &ClusterView, facts: &RequestFacts<'_>) -> Key {
    let mut key = None;
    let mut take = |value: &[u8]| {
        key.get_or_insert_with(|| hash::spread(value));
    };
    match cluster.picker.hash_key() {
        None => return Key::default(),
        Some(HashKey::ClientAddress) => {}
        Some(HashKey::Path) => take(facts.path.as_bytes()),
        Some(HashKey::Header(name)) => facts.fields.each(name, &mut take),
        Some(HashKey::Cookie(name)) => facts.fields.each("cookie", &mut |line| {
            cookie::values(line, name.as_bytes()).for_each(&mut take);
        }),
    }
    Key(key.unwrap_or_else(|| ClientKey::of_address(facts.client).spread()))
}

/// What the request's cookie says.
pub(crate) fn pin(cluster: &ClusterView, fields: &dyn Fields) -> Pin {
    let keys = cluster.destinations.iter().map(|destination: &DestinationView| &destination.affinity_key);
    match &cluster.affinity {
        Some(affinity) => affinity::lookup(affinity, cluster.compat, keys, fields),
        None => Pin::Absent,
    }
}

struct Busy<'a, S> {
    cluster: &'a ClusterView,
    shared: &'a S,
}

impl<S: Shared> Loads for Busy<'_, S> {
    fn in_flight(&self, destination: DestinationIndex) -> u32 {
        self.cluster.destinations.get(destination.index()).map_or(0, |d| self.shared.in_flight(d.slot))
    }

    fn latency(&self, destination: DestinationIndex) -> Option<Duration> {
        self.shared.latency(self.cluster.destinations.get(destination.index())?.slot)
    }
}
