//! One cluster's policy with the weights it looks at. Shared by all workers and by all snapshots of one configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use model::balancing::{HashKey, LoadBalancing};
use model::cluster::{Cluster, Compat};
use model::id::{ClusterId, DestinationIndex, PolicyName};
use model::passive::{MaxFails, PassivePolicy};
use model::random::Random;
use model::ratio::Ratio;

use crate::affinity::hash::spread;
use crate::candidates::{Candidates, Key, Loads, Member, Weights};
use crate::index_set::IndexSet;
use crate::policy::least_requests::Ties;
use crate::policy::{
    Policy, consistent_hash, least_requests, peak_ewma, power_of_two, random as random_policy, round_robin,
};
use crate::turns::{Phase, Turns};

/// The policies that were registered in code, by name.
pub type Policies = BTreeMap<PolicyName, Arc<dyn Policy>>;

/// Picks among available destinations.
#[derive(Clone)]
pub struct Picker {
    cluster: ClusterId,
    policy: Choice,
    members: Arc<[Member]>,
    weights: Weights,
    /// `None` where all get the whole of their weights.
    shares: Option<Shares>,
}

/// The parts of their weights that destinations get now.
#[derive(Clone)]
struct Shares {
    parts: Arc<[Ratio]>,
    members: Arc<[Member]>,
    weights: Weights,
}

#[derive(Clone)]
enum Choice {
    PowerOfTwoChoices,
    SmoothRoundRobin(Phase),
    CounterRoundRobin,
    LeastRequests(Ties),
    Random,
    FirstAlphabetical,
    ConsistentHash(HashKey),
    PeakEwma,
    Custom(Arc<dyn Policy>),
}

impl Picker {
    /// A picker for a cluster. A custom policy that is not registered (the configuration's check refuses such names)
    /// is PowerOfTwoChoices.
    pub fn new(cluster: &Cluster, registered: &Policies) -> Self {
        let is_yarp = cluster.compat == Compat::Yarp;
        let policy = match &cluster.load_balancing {
            LoadBalancing::PowerOfTwoChoices => Choice::PowerOfTwoChoices,
            LoadBalancing::RoundRobin => match cluster.compat {
                Compat::None => Choice::SmoothRoundRobin(Phase::Random),
                Compat::Nginx => Choice::SmoothRoundRobin(Phase::Zero),
                Compat::Yarp => Choice::CounterRoundRobin,
            },
            LoadBalancing::LeastRequests => Choice::LeastRequests(if is_yarp { Ties::Earliest } else { Ties::Drawn }),
            LoadBalancing::Random => Choice::Random,
            LoadBalancing::FirstAlphabetical => Choice::FirstAlphabetical,
            LoadBalancing::ConsistentHash(key) => Choice::ConsistentHash(key.clone()),
            LoadBalancing::PeakEwma => Choice::PeakEwma,
            LoadBalancing::Custom(name) => {
                registered.get(name).cloned().map_or(Choice::PowerOfTwoChoices, Choice::Custom)
            }
        };
        let members = members(cluster);
        let weights = weights(&members);
        Self { cluster: cluster.id.clone(), policy, members, weights, shares: None }
    }

    /// The same, with each destination's part of its weight (in the order of the configuration). One that gets nothing
    /// serves only where no other can.
    pub fn with_shares(mut self, shares: &[Ratio]) -> Self {
        if shares.iter().any(|share| *share != Ratio::ONE) {
            let members: Arc<[Member]> =
                self.members.iter().zip(shares).map(|(one, share)| reduced(one, *share)).collect();
            let weights = weights(&members);
            self.shares = Some(Shares { parts: shares.into(), members, weights });
        }
        self
    }

    /// What the policy tells requests apart by; `None` where it does not.
    pub fn hash_key(&self) -> Option<&HashKey> {
        match &self.policy {
            Choice::ConsistentHash(key) => Some(key),
            Choice::PowerOfTwoChoices
            | Choice::SmoothRoundRobin(_)
            | Choice::CounterRoundRobin
            | Choice::LeastRequests(_)
            | Choice::Random
            | Choice::FirstAlphabetical
            | Choice::PeakEwma
            | Choice::Custom(_) => None,
        }
    }

    /// One of `available` (indexes into the cluster's destinations) that is not `excluded` and has a weight; `None`
    /// when there is none.
    pub fn pick(
        &self,
        available: &[u32],
        excluded: &IndexSet,
        key: Key,
        loads: &dyn Loads,
        turns: &mut Turns,
        random: &mut Random,
    ) -> Option<DestinationIndex> {
        if let Choice::ConsistentHash(_) = self.policy {
            // By the full weights: parts of them must not move keys.
            let candidates = Candidates::new(&self.members, available, excluded, self.weights);
            let shares = self.shares.as_ref().map(|shares| &*shares.parts);
            return consistent_hash::pick(&candidates, key, shares, random);
        }
        let (members, weights) = self.members_of(available, excluded);
        let candidates = Candidates::new(members, available, excluded, weights);
        if let Choice::SmoothRoundRobin(phase) = self.policy {
            // Also with one candidate: effective weights recover with each pick.
            let turn = turns.turn(&self.cluster, members, phase, random);
            return round_robin::smooth(&candidates, turn);
        }
        if let (Some(only), None) = (candidates.nth(0), candidates.nth(1)) {
            return Some(only);
        }
        match &self.policy {
            Choice::PowerOfTwoChoices => power_of_two::pick(&candidates, loads, random),
            Choice::PeakEwma => peak_ewma::pick(&candidates, loads, random),
            Choice::SmoothRoundRobin(_) | Choice::ConsistentHash(_) => None,
            Choice::CounterRoundRobin => {
                let turn = turns.turn(&self.cluster, members, Phase::Zero, random);
                round_robin::counter(&candidates, turn)
            }
            Choice::LeastRequests(ties) => least_requests::pick(&candidates, loads, *ties, random),
            Choice::Random => random_policy::pick(&candidates, random),
            Choice::FirstAlphabetical => {
                candidates.iter().min_by_key(|(_, member)| member.alphabetical).map(|(index, _)| index)
            }
            Choice::Custom(policy) => {
                // A custom policy may answer anything; only candidates are served.
                policy
                    .pick(&candidates, loads, random)
                    .filter(|&picked| candidates.iter().any(|(index, _)| index == picked))
            }
        }
    }

    /// The candidates of a pick.
    pub fn candidates<'a>(&'a self, available: &'a [u32], excluded: &'a IndexSet) -> Candidates<'a> {
        let (members, weights) = self.members_of(available, excluded);
        Candidates::new(members, available, excluded, weights)
    }

    /// The weights that a pick looks at: the full ones where all that are left get nothing.
    fn members_of(&self, available: &[u32], excluded: &IndexSet) -> (&Arc<[Member]>, Weights) {
        match &self.shares {
            Some(Shares { members, weights, .. })
                if Candidates::new(members, available, excluded, *weights).nth(0).is_some() =>
            {
                (members, *weights)
            }
            Some(_) | None => (&self.members, self.weights),
        }
    }

    /// Destinations with a weight above 0, available or not.
    pub fn peers(&self) -> u32 {
        u32::try_from(self.members.iter().filter(|member| member.weight > 0).count()).unwrap_or(u32::MAX)
    }

    /// A failure of this destination was counted: under `compat: nginx` RoundRobin lowers its effective weight.
    pub fn failed(&self, destination: DestinationIndex, turns: &mut Turns, random: &mut Random) {
        if let Choice::SmoothRoundRobin(Phase::Zero) = self.policy {
            turns.turn(&self.cluster, &self.members, Phase::Zero, random).decay(destination.index());
        }
    }
}

impl fmt::Debug for Picker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Picker").field("cluster", &self.cluster).field("members", &self.members).finish_non_exhaustive()
    }
}

fn members(cluster: &Cluster) -> Arc<[Member]> {
    let destinations = &cluster.destinations;
    let mut sorted: Vec<usize> = (0..destinations.len()).collect();
    sorted.sort_by_cached_key(|&at| destinations.get(at).map(|d| ordinal(d.id.as_str())));
    let mut alphabetical = vec![0u32; destinations.len()];
    for (place, at) in (0u32..).zip(sorted) {
        if let Some(slot) = alphabetical.get_mut(at) {
            *slot = place;
        }
    }
    let passive = cluster.health_check.passive.iter().flat_map(|check| &check.policies);
    let common = passive
        .filter_map(|policy| match policy {
            PassivePolicy::MaxFails(options) => Some(*options),
            PassivePolicy::TransportFailureRate(_)
            | PassivePolicy::ConsecutiveErrors(_)
            | PassivePolicy::FailureRate(_)
            | PassivePolicy::Outlier(_)
            | PassivePolicy::Burst(_)
            | PassivePolicy::ConnectFailures(_)
            | PassivePolicy::Stall(_)
            | PassivePolicy::Latency(_)
            | PassivePolicy::Overload(_)
            | PassivePolicy::Custom(_) => None,
        })
        .next();
    destinations
        .iter()
        .zip(alphabetical)
        .map(|(destination, alphabetical)| {
            let MaxFails { max_fails, .. } = destination.max_fails.or(common).unwrap_or_default();
            Member {
                id: destination.id.clone(),
                weight: destination.weight,
                alphabetical,
                decay: destination.weight.checked_div(max_fails).unwrap_or(0),
                hash: spread(destination.id.as_str().as_bytes()),
            }
        })
        .collect()
}

/// Weights are counted in hundredths, so that a tenth of weight 1 is something.
fn reduced(member: &Member, share: Ratio) -> Member {
    let hundredths = (share.get() * 100.0).round() as u32;
    let least = u32::from(member.weight > 0 && share > Ratio::ZERO);
    Member { weight: member.weight.saturating_mul(hundredths).max(least), ..member.clone() }
}

fn weights(members: &[Member]) -> Weights {
    let first = members.first().map_or(0, |member| member.weight);
    if first > 0 && members.iter().all(|member| member.weight == first) {
        return Weights::Equal;
    }
    Weights::Differ
}

/// The sort key of .NET's OrdinalIgnoreCase: UTF-16 units of the upper-cased text.
fn ordinal(id: &str) -> Vec<u16> {
    let mut units = [0; 2];
    crate::affinity::upper(id).flat_map(|c| c.encode_utf16(&mut units).to_vec()).collect()
}

#[cfg(test)]
mod tests;
