//! One script for real: every contestant with destinations, a proxy and clients of its own, all at the same time.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use lab::chance::Chance;
use lab::scenario::Scenario;
use model::time::Timestamp;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::clients;
use crate::contestant::Contestant;
use crate::destinations::{self, Destinations, Doors};
use crate::peer::Peer;
use crate::refusals::{self, Refusals, Watch};
use crate::seen::Seen;

/// Runs it and tells what was seen of each, in the order of the contestants. Takes the scenario's time. Nobody's refusals are
/// among it where this process may not see them.
pub fn run(scenario: &Scenario, contestants: &[Contestant], seed: u64, folder: &Path) -> Result<Vec<Seen>> {
    destinations::check(scenario)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(all(scenario, contestants, seed, folder))
}

async fn all(scenario: &Scenario, contestants: &[Contestant], seed: u64, folder: &Path) -> Result<Vec<Seen>> {
    let chance = Chance::new(seed);
    let socket = match refusals::socket() {
        Ok(socket) => Some(socket),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
        Err(error) => return Err(error).context("a raw socket"),
    };
    let mut ready = Vec::new();
    for contestant in contestants {
        let destinations = Destinations::start(scenario, chance).await?;
        let peer = Peer::start(contestant, scenario, &destinations.doors(), folder)?;
        ready.push((destinations, peer));
    }
    let ports = |doors: Vec<Doors>| doors.into_iter().map(|doors| doors.traffic.port());
    let ports: Vec<Vec<u16>> = ready.iter().map(|(destinations, _)| ports(destinations.doors()).collect()).collect();
    let watch = socket.map(|socket| Watch::start(socket, ports.iter().flatten().copied()));
    // nginx counts whole seconds of the clock, the lab those of the script: they begin together.
    let past = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    let began = Instant::now() + START - Duration::from_nanos(u64::from(past));
    let mut tasks = JoinSet::new();
    for (place, (destinations, peer)) in ready.into_iter().enumerate() {
        let scenario = scenario.clone();
        tasks.spawn(async move {
            let addr = peer.addr;
            let (requests, ()) = tokio::join!(clients::ask(&scenario, chance, addr, began), destinations.suffer(began));
            drop(peer);
            let (arrivals, spoilt) = (destinations.arrivals(), destinations.spoilt());
            (place, Seen { requests, arrivals, spoilt, refusals: None })
        });
    }
    let mut seen = Vec::new();
    while let Some(one) = tasks.join_next().await {
        seen.push(one.context("a twin ended early")?);
    }
    seen.sort_by_key(|(place, _)| *place);
    let mut refusals = watch.map(Watch::end).transpose()?;
    let seen = seen.into_iter().zip(ports).map(|((_, seen), ports)| {
        let refusals = refusals.as_mut().map(|all| at_ports(all, &ports, began));
        Seen { refusals, ..seen }
    });
    Ok(seen.collect())
}

/// When each of these ports refused, as times of the script.
fn at_ports(all: &mut Refusals, ports: &[u16], began: Instant) -> Vec<Vec<Timestamp>> {
    let time = |at: std::time::Instant| Timestamp::ZERO + at.saturating_duration_since(began.into_std());
    let times = |port: &u16| all.remove(port).unwrap_or_default().into_iter().map(time).collect();
    ports.iter().map(times).collect()
}

/// From when all proxies listen: they make their first probes.
const START: Duration = Duration::from_secs(2);
