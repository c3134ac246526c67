//! Tests of the policies through the picker.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod hashing;
mod light;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use model::address::Url;
use model::available::AvailablePolicy;
use model::cluster::{HealthCheck, UpstreamHost, UpstreamTls};
use model::destination::Destination;
use model::passive::PassiveCheck;
use model::retry::RetryRules;
use model::timeouts::Timeouts;

use super::*;

struct Fixed(Vec<u32>);

impl Loads for Fixed {
    fn in_flight(&self, destination: DestinationIndex) -> u32 {
        self.0.get(destination.index()).copied().unwrap_or(0)
    }
}

fn cluster(load_balancing: LoadBalancing, compat: Compat, destinations: &[(&str, u32)]) -> Cluster {
    Cluster {
        id: ClusterId::from("c"),
        compat,
        load_balancing,
        session_affinity: None,
        health_check: HealthCheck {
            available_destinations_policy: AvailablePolicy::HealthyAndUnknown,
            guards: Default::default(),
            active: None,
            passive: None,
        },
        retry: RetryRules::native(),
        queue: Default::default(),
        timeouts: Timeouts::NATIVE,
        tls: UpstreamTls::default(),
        host: UpstreamHost::Destination,
        http: Default::default(),
        outbound: Default::default(),
        family: Default::default(),
        metadata: BTreeMap::new(),
        destinations: destinations
            .iter()
            .map(|(id, weight)| Destination {
                id: (*id).into(),
                address: Url::parse("http://127.0.0.1:1/").unwrap(),
                health: None,
                host: None,
                weight: *weight,
                max_fails: None,
                tier: Default::default(),
                max_connections: None,
            })
            .collect(),
    }
}

fn picker(load_balancing: LoadBalancing, compat: Compat, destinations: &[(&str, u32)]) -> Picker {
    Picker::new(&cluster(load_balancing, compat, destinations), &Policies::new())
}

/// One worker that picks.
struct Bench {
    picker: Picker,
    turns: Turns,
    random: Random,
    loads: Vec<u32>,
}

impl Bench {
    fn new(picker: Picker, seed: u64) -> Self {
        Self { picker, turns: Turns::new(), random: Random::new(seed), loads: vec![] }
    }

    fn pick(&mut self, available: &[u32], excluded: &[u32]) -> Option<u32> {
        let mut set = IndexSet::default();
        excluded.iter().for_each(|&index| set.insert(DestinationIndex(index)));
        let loads = Fixed(self.loads.clone());
        self.picker
            .pick(available, &set, Key::default(), &loads, &mut self.turns, &mut self.random)
            .map(|index| index.0)
    }

    fn order(&mut self, available: &[u32], n: usize) -> String {
        (0..n).map(|_| self.pick(available, &[]).map_or('-', |at| char::from(b'A' + at as u8))).collect()
    }

    /// Picks `n` times with eight requests in flight at any time; how many each got.
    fn counts(&mut self, available: &[u32], n: usize) -> BTreeMap<u32, usize> {
        self.loads = vec![0; 64];
        let mut running = VecDeque::new();
        let mut counts = BTreeMap::new();
        for _ in 0..n {
            let at = self.pick(available, &[]).unwrap();
            *counts.entry(at).or_default() += 1;
            self.loads[at as usize] += 1;
            running.push_back(at);
            if running.len() > 8 {
                self.loads[running.pop_front().unwrap() as usize] -= 1;
            }
        }
        counts
    }
}

fn even(counts: &BTreeMap<u32, usize>, expected: usize, among: &[u32]) {
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), among);
    for (at, &n) in counts {
        assert!(n.abs_diff(expected) * 20 <= expected, "{at} got {n}, not {expected} +- 5 %");
    }
}

fn ten() -> Vec<(&'static str, u32)> {
    ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"].map(|id| (id, 1)).to_vec()
}

const SPREADING: [LoadBalancing; 4] =
    [LoadBalancing::RoundRobin, LoadBalancing::PowerOfTwoChoices, LoadBalancing::LeastRequests, LoadBalancing::Random];

#[test]
fn shares_are_even_with_all_with_one_out_and_with_it_back() {
    for policy in SPREADING {
        let mut bench = Bench::new(picker(policy.clone(), Compat::None, &ten()), 5);
        let all: Vec<u32> = (0..10).collect();
        let without_third: Vec<u32> = all.iter().copied().filter(|&at| at != 2).collect();
        even(&bench.counts(&all, 100_000), 10_000, &all);
        // The neighbour of the one that is out gets no more than the others.
        even(&bench.counts(&without_third, 99_000), 11_000, &without_third);
        even(&bench.counts(&all, 100_000), 10_000, &all);
    }
}

#[test]
fn shares_follow_weights_and_weight_zero_gets_none() {
    let destinations = [("a", 100), ("b", 1), ("c", 0)];
    for policy in SPREADING {
        let mut bench = Bench::new(picker(policy.clone(), Compat::None, &destinations), 5);
        let counts = bench.counts(&[0, 1, 2], 101_000);
        assert_eq!(counts.get(&2), None, "{policy:?}");
        let heavy = counts[&0];
        assert!(heavy.abs_diff(100_000) <= 5_000, "{policy:?}: {counts:?}");
        assert_eq!(bench.pick(&[2], &[]), None, "{policy:?}: weight 0 serves nobody, not even alone");
        assert_eq!(bench.pick(&[1, 2], &[]), Some(1), "{policy:?}");
    }
    let mut bench = Bench::new(picker(LoadBalancing::RoundRobin, Compat::None, &destinations), 5);
    let counts = bench.counts(&[0, 1, 2], 10_100);
    assert!(counts[&1].abs_diff(100) <= 1, "{counts:?}");
}

#[test]
fn the_tried_are_not_picked_again() {
    for policy in [&SPREADING[..], &[LoadBalancing::FirstAlphabetical]].concat() {
        for compat in [Compat::None, Compat::Yarp, Compat::Nginx] {
            let mut bench = Bench::new(picker(policy.clone(), compat, &[("a", 1), ("b", 1), ("c", 1)]), 1);
            for _ in 0..20 {
                assert_ne!(bench.pick(&[0, 1, 2], &[1]), Some(1));
                assert_eq!(bench.pick(&[0, 1, 2], &[0, 2]), Some(1));
                assert_eq!(bench.pick(&[0, 2], &[0, 2]), None);
            }
            assert_eq!(bench.pick(&[], &[]), None);
        }
    }
}

#[test]
fn the_first_request_after_a_start_does_not_always_hit_the_first() {
    for policy in SPREADING {
        let firsts: std::collections::BTreeSet<u32> = (0..20)
            .map(|seed| {
                Bench::new(picker(policy.clone(), Compat::None, &ten()), seed).pick(&[0, 1, 2, 3, 4], &[]).unwrap()
            })
            .collect();
        assert!(firsts.len() > 1, "{policy:?}: {firsts:?}");
    }
}

#[test]
fn round_robin_serves_each_once_a_round_and_spreads_the_heavy_one() {
    let mut bench = Bench::new(picker(LoadBalancing::RoundRobin, Compat::None, &[("a", 1), ("b", 1), ("c", 1)]), 3);
    let order = bench.order(&[0, 1, 2], 9);
    assert_eq!(&order[..3], &order[3..6]);
    assert_eq!(&order[..3], &order[6..]);
    let mut nginx = Bench::new(picker(LoadBalancing::RoundRobin, Compat::Nginx, &[("a", 5), ("b", 1), ("c", 1)]), 3);
    assert_eq!(nginx.order(&[0, 1, 2], 14), "AABACAAAABACAA");
}

#[test]
fn round_robin_goes_on_where_it_was_after_an_unrelated_reload() {
    let destinations = [("a", 1), ("b", 1), ("c", 1)];
    let mut bench = Bench::new(picker(LoadBalancing::RoundRobin, Compat::None, &destinations), 3);
    let before = bench.order(&[0, 1, 2], 4);
    bench.picker = picker(LoadBalancing::RoundRobin, Compat::None, &destinations);
    let after = bench.order(&[0, 1, 2], 2);
    assert_eq!(before[1..3], after);
}

#[test]
fn under_yarp_round_robin_is_a_counter_modulo_the_number_available() {
    let mut bench = Bench::new(picker(LoadBalancing::RoundRobin, Compat::Yarp, &[("a", 9), ("b", 1), ("c", 1)]), 3);
    assert_eq!(bench.order(&[0, 1, 2], 4), "ABCA");
    // The counter stands at 4.
    assert_eq!(bench.order(&[0, 2], 3), "ACA");
    // With one left nobody asks the counter, which stands at 7.
    assert_eq!(bench.order(&[1], 2), "BB");
    assert_eq!(bench.order(&[0, 1, 2], 2), "BC");
}

#[test]
fn under_nginx_a_counted_failure_lowers_the_weight_for_a_few_picks() {
    let mut cluster = cluster(LoadBalancing::RoundRobin, Compat::Nginx, &[("a", 10), ("b", 10)]);
    cluster.health_check.passive = Some(PassiveCheck::of(vec![PassivePolicy::MaxFails(MaxFails::default())]));
    let mut bench = Bench::new(Picker::new(&cluster, &Policies::new()), 0);
    assert_eq!(bench.order(&[0, 1], 2), "AB");
    let Bench { picker, turns, random, .. } = &mut bench;
    picker.failed(DestinationIndex(1), turns, random);
    // With max_fails 1 the whole weight is gone and comes back by one a pick.
    assert_eq!(bench.order(&[0], 3), "AAA");
    let order = bench.order(&[0, 1], 12);
    assert!(order.starts_with("AA") && order.ends_with("AB") | order.ends_with("BA"), "{order}");
}

#[test]
fn power_of_two_choices_prefers_the_less_busy_and_by_weight() {
    let mut bench = Bench::new(picker(LoadBalancing::PowerOfTwoChoices, Compat::None, &[("a", 1), ("b", 1)]), 9);
    bench.loads = vec![5, 4];
    // With two, both are always drawn, and they are distinct.
    assert!((0..100).all(|_| bench.pick(&[0, 1], &[]) == Some(1)));
    let mut weighted = Bench::new(picker(LoadBalancing::PowerOfTwoChoices, Compat::None, &[("a", 10), ("b", 1)]), 9);
    weighted.loads = vec![9, 1];
    assert!((0..100).all(|_| weighted.pick(&[0, 1], &[]) == Some(0)));
}

#[test]
fn power_of_two_choices_ties_go_to_the_first_drawn_so_all_get_their_share() {
    let mut bench = Bench::new(picker(LoadBalancing::PowerOfTwoChoices, Compat::Yarp, &[("a", 1), ("b", 1)]), 9);
    let n = (0..1000).filter(|_| bench.pick(&[0, 1], &[]) == Some(0)).count();
    assert!((400..600).contains(&n), "{n}");
}

#[test]
fn least_requests_takes_the_earliest_of_equals_under_yarp_and_draws_otherwise() {
    let destinations = [("a", 1), ("b", 1), ("c", 1)];
    let mut yarp = Bench::new(picker(LoadBalancing::LeastRequests, Compat::Yarp, &destinations), 2);
    yarp.loads = vec![3, 1, 1];
    assert_eq!(yarp.order(&[0, 1, 2], 5), "BBBBB");
    let mut native = Bench::new(picker(LoadBalancing::LeastRequests, Compat::None, &destinations), 2);
    native.loads = vec![3, 1, 1];
    let order = native.order(&[0, 1, 2], 50);
    assert!(order.contains('B') && order.contains('C') && !order.contains('A'), "{order}");
}

#[test]
fn first_alphabetical_ignores_case() {
    let mut bench = Bench::new(
        picker(LoadBalancing::FirstAlphabetical, Compat::None, &[("b", 1), ("C", 1), ("A", 1), ("_", 1)]),
        0,
    );
    assert_eq!(bench.order(&[0, 1, 2, 3], 2), "CC");
    assert_eq!(bench.order(&[0, 1, 3], 1), "A");
    assert_eq!(bench.order(&[1, 3], 1), "B");
}

struct Last(RefCell<u32>);

// Only one thread uses it here.
struct Scripted(std::sync::Mutex<Last>);

impl Policy for Scripted {
    fn pick(&self, candidates: &Candidates<'_>, _: &dyn Loads, _: &mut Random) -> Option<DestinationIndex> {
        let last = self.0.lock().unwrap();
        *last.0.borrow_mut() += 1;
        candidates.iter().last().map(|(index, _)| DestinationIndex(index.0 + (*last.0.borrow() - 1) * 7))
    }
}

#[test]
fn a_custom_policy_picks_and_cannot_pick_others_than_candidates() {
    let custom = cluster(LoadBalancing::Custom("last".into()), Compat::None, &[("a", 1), ("b", 1), ("c", 1)]);
    let scripted: Arc<dyn Policy> = Arc::new(Scripted(std::sync::Mutex::new(Last(RefCell::new(0)))));
    let registered = Policies::from([(PolicyName::from("last"), scripted)]);
    let mut bench = Bench::new(Picker::new(&custom, &registered), 0);
    assert_eq!(bench.pick(&[0, 1, 2], &[2]), Some(1));
    assert_eq!(bench.pick(&[0, 1, 2], &[2]), None);
    assert_eq!(bench.pick(&[0], &[]), Some(0));
}

/// Where each of `n` keys goes.
fn homes(bench: &mut Bench, available: &[u32], n: u64) -> Vec<u32> {
    let excluded = IndexSet::default();
    let keys = (0..n).map(|key| Key(spread(&key.to_be_bytes())));
    let loads = Fixed(vec![]);
    keys.map(|key| bench.picker.pick(available, &excluded, key, &loads, &mut bench.turns, &mut bench.random).unwrap().0)
        .collect()
}

fn hashing(destinations: &[(&str, u32)]) -> Picker {
    picker(LoadBalancing::ConsistentHash(HashKey::ClientAddress), Compat::None, destinations)
}

#[test]
fn only_the_keys_of_a_destination_that_leaves_move_and_they_come_back() {
    let mut bench = Bench::new(hashing(&ten()), 1);
    let all: Vec<u32> = (0..10).collect();
    let rest: Vec<u32> = (0..10).filter(|at| *at != 3).collect();
    let before = homes(&mut bench, &all, 5000);
    let without = homes(&mut bench, &rest, 5000);
    assert!(before.iter().zip(&without).all(|(was, is)| was == is || *was == 3));
    let mut taken: BTreeMap<u32, usize> = BTreeMap::new();
    before.iter().zip(&without).filter(|(was, _)| **was == 3).for_each(|(_, is)| *taken.entry(*is).or_default() += 1);
    assert!(taken.len() == 9 && taken.values().all(|n| (30..=90).contains(n)), "{taken:?}");
    assert_eq!(homes(&mut bench, &all, 5000), before);
}

#[test]
fn keys_are_shared_by_weight_and_a_heavier_one_takes_keys_without_moving_others() {
    let light = homes(&mut Bench::new(hashing(&[("a", 1), ("b", 1), ("c", 2)]), 1), &[0, 1, 2], 8000);
    let n = |homes: &[u32], at| homes.iter().filter(|home| **home == at).count();
    assert!((1900..=2100).contains(&n(&light, 0)) && (3850..=4150).contains(&n(&light, 2)));
    let heavy = homes(&mut Bench::new(hashing(&[("a", 1), ("b", 1), ("c", 4)]), 1), &[0, 1, 2], 8000);
    assert!(light.iter().zip(&heavy).all(|(was, is)| was == is || *is == 2));
}

#[test]
fn a_spared_destination_keeps_a_part_of_the_requests_of_its_keys_and_no_key_moves() {
    let shares = [Ratio::ONE, Ratio::percent(10), Ratio::ONE];
    let mut whole = Bench::new(hashing(&[("a", 1), ("b", 1), ("c", 1)]), 1);
    let before = homes(&mut whole, &[0, 1, 2], 6000);
    let mut spared = Bench::new(hashing(&[("a", 1), ("b", 1), ("c", 1)]).with_shares(&shares), 1);
    let now = homes(&mut spared, &[0, 1, 2], 6000);
    assert!(before.iter().zip(&now).all(|(was, is)| was == is || *was == 1));
    let kept = before.iter().zip(&now).filter(|(was, is)| **was == 1 && **is == 1).count();
    assert!((140..=260).contains(&kept), "{kept} of about 2000");
    // Where all are spared the key's own serves.
    let mut none = Bench::new(hashing(&[("a", 1), ("b", 1)]).with_shares(&[Ratio::ZERO; 2]), 1);
    assert_eq!(homes(&mut none, &[0, 1], 100), homes(&mut Bench::new(hashing(&[("a", 1), ("b", 1)]), 1), &[0, 1], 100));
}

#[test]
fn a_part_of_a_weight_is_a_part_of_the_traffic_and_none_of_it_is_the_last_choice() {
    for policy in SPREADING {
        let shares = [Ratio::ONE, Ratio::percent(10), Ratio::ONE];
        let picker = picker(policy.clone(), Compat::None, &[("a", 1), ("b", 1), ("c", 1)]);
        let mut bench = Bench::new(picker.clone().with_shares(&shares), 3);
        let n = bench.counts(&[0, 1, 2], 2100).get(&1).copied().unwrap_or(0);
        assert!((50..=250).contains(&n), "{policy:?}: {n} of 2100, where 100 are its share");
        let mut bench = Bench::new(picker.with_shares(&[Ratio::ZERO, Ratio::ONE, Ratio::ONE]), 3);
        assert!(!bench.counts(&[0, 1, 2], 500).contains_key(&0), "{policy:?}");
        assert_eq!(bench.pick(&[0], &[]), Some(0), "{policy:?}");
    }
}

/// Times to first byte by destination.
struct Timed(Vec<Option<u64>>);

impl Loads for Timed {
    fn in_flight(&self, destination: DestinationIndex) -> u32 {
        destination.0
    }
    fn latency(&self, destination: DestinationIndex) -> Option<Duration> {
        self.0[destination.index()].map(Duration::from_millis)
    }
}

#[test]
fn peak_ewma_takes_the_sooner_one_of_two() {
    let picker = picker(LoadBalancing::PeakEwma, Compat::None, &[("a", 1), ("b", 1)]);
    let (mut turns, mut random) = (Turns::new(), Random::new(1));
    let mut all = |loads: Timed| -> Vec<u32> {
        let mut pick = || picker.pick(&[0, 1], &IndexSet::default(), Key::default(), &loads, &mut turns, &mut random);
        (0..50).map(|_| pick().unwrap().0).collect()
    };
    // b has one request in flight, a none.
    assert!(all(Timed(vec![Some(30), Some(10)])).iter().all(|at| *at == 1));
    assert!(all(Timed(vec![Some(15), Some(10)])).iter().all(|at| *at == 0));
    assert!(all(Timed(vec![Some(15), None])).iter().all(|at| *at == 0), "asked once, then waited for");
    assert!(all(Timed(vec![None, Some(1)])).iter().all(|at| *at == 0), "an idle one that nobody knows is tried");
}
