//! From a cluster as it was written to one whose destinations are addresses.
//!
//! | the name has | destinations |
//! |---|---|
//! | no answer yet, no address | the one, located nowhere: no traffic |
//! | one address | the one, with its plain id |
//! | several | `id[address]` each (`id[2001:db8::1]` for IPv6), sharing its weight |
//!
//! Host header, TLS name and the text of the address stay those of the name. A `health` URL at the same name is located
//! with the address; at another name it stays what it is.

use std::collections::BTreeSet;
use std::net::IpAddr;

use model::address::{Located, Url};
use model::cluster::Cluster;
use model::destination::Destination;
use model::id::DestinationId;

use super::{Known, Membership, NameKey};

/// The names that a cluster's destinations stand behind.
pub fn names(cluster: &Cluster) -> impl Iterator<Item = NameKey> {
    cluster.destinations.iter().filter_map(|destination| key(cluster, destination))
}

/// The cluster with every destination at an address, or nowhere; `None`: no destination is a name.
pub fn expand(cluster: &Cluster, membership: &Membership) -> Option<Cluster> {
    names(cluster).next()?;
    let found: Vec<Option<Vec<IpAddr>>> = cluster
        .destinations
        .iter()
        .map(|destination| {
            key(cluster, destination).map(|key| match membership.known(&key) {
                Known::Nothing => Vec::new(),
                Known::Addresses(addresses) => addresses,
            })
        })
        .collect();
    let shares = Shares::of(cluster.destinations.iter().zip(&found).map(|(destination, found)| {
        (destination.weight, found.as_ref().map_or(1, |found| u32::try_from(found.len().max(1)).unwrap_or(u32::MAX)))
    }));
    let written: BTreeSet<&DestinationId> = cluster.destinations.iter().map(|destination| &destination.id).collect();
    let mut destinations = Vec::new();
    for (destination, found) in cluster.destinations.iter().zip(&found) {
        let weight = |n: usize| shares.weight(destination.weight, u32::try_from(n.max(1)).unwrap_or(u32::MAX));
        match found.as_deref() {
            None => destinations.push(Destination { weight: weight(1), ..destination.clone() }),
            Some([]) => destinations.push(located(destination, Located::Nowhere, weight(1))),
            Some([ip]) => destinations.push(located(destination, Located::At(*ip), weight(1))),
            Some(several) => {
                for ip in several {
                    let id = DestinationId::from(format!("{}[{ip}]", destination.id));
                    // One that the configuration itself calls so goes first.
                    if !written.contains(&id) {
                        let one = located(destination, Located::At(*ip), weight(several.len()));
                        destinations.push(Destination { id, ..one });
                    }
                }
            }
        }
    }
    Some(Cluster { destinations, ..cluster.clone() })
}

fn key(cluster: &Cluster, destination: &Destination) -> Option<NameKey> {
    let name = destination.address.name()?;
    Some(NameKey { name: name.into(), family: cluster.family })
}

fn located(destination: &Destination, located: Located, weight: u32) -> Destination {
    let at = |url: &Url| {
        let located = if url.host == destination.address.host { located } else { url.located };
        Url { located, ..url.clone() }
    };
    Destination {
        address: at(&destination.address),
        health: destination.health.as_ref().map(at),
        weight,
        ..destination.clone()
    }
}

/// Whole weights in which a destination's part can be split evenly among its addresses.
struct Shares {
    /// Each weight is multiplied by this before it is divided.
    factor: u64,
}

impl Shares {
    /// Of weights and the number of addresses behind each.
    fn of(destinations: impl Iterator<Item = (u32, u32)>) -> Self {
        let (mut factor, mut heaviest) = (1_u64, 1_u64);
        for (weight, addresses) in destinations.filter(|(weight, _)| *weight > 0) {
            let addresses = u64::from(addresses).max(1);
            // Stays below MOST * u32::MAX.
            factor = (factor / gcd(factor, addresses) * addresses).min(MOST);
            heaviest = heaviest.max(u64::from(weight));
        }
        Self { factor: factor.min(MOST / heaviest.min(MOST)).max(1) }
    }

    /// The weight of each of `n` addresses; 0 stays 0, and nothing else becomes it.
    fn weight(&self, weight: u32, n: u32) -> u32 {
        let n = u64::from(n).max(1);
        let split = (u64::from(weight) * self.factor + n / 2) / n;
        u32::try_from(split.max(u64::from(weight > 0))).unwrap_or(u32::MAX)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// No weight becomes larger than this, or than it was written.
const MOST: u64 = 1 << 20;
