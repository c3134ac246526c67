//! Destinations of little weight beside heavy ones: a suspect at a tenth of its weight, one on its way back.

use proptest::prelude::*;

use super::*;
use crate::policy::is_less_busy;

const BY_LOAD: [LoadBalancing; 2] = [LoadBalancing::PowerOfTwoChoices, LoadBalancing::LeastRequests];

/// Times to first byte that are all the same.
struct Alike(Vec<u32>);

impl Loads for Alike {
    fn in_flight(&self, destination: DestinationIndex) -> u32 {
        self.0[destination.index()]
    }
    fn latency(&self, _: DestinationIndex) -> Option<Duration> {
        Some(Duration::from_millis(20))
    }
}

#[test]
fn a_light_destination_blurs_nothing_between_two_heavy_ones() {
    let cluster = [("a", 1), ("b", 1), ("c", 1)];
    for policy in [&BY_LOAD[..], &[LoadBalancing::PeakEwma]].concat() {
        let picker = picker(policy.clone(), Compat::None, &cluster);
        let picker = picker.with_shares(&[Ratio::ONE, Ratio::ONE, Ratio::percent(10)]);
        let (mut turns, mut random, loads) = (Turns::new(), Random::new(4), Alike(vec![5, 4, 0]));
        let mut n = [0; 3];
        for _ in 0..10_000 {
            let none = IndexSet::default();
            n[picker.pick(&[0, 1, 2], &none, Key::default(), &loads, &mut turns, &mut random).unwrap().index()] += 1;
        }
        // Of a and b the less busy one serves. Of a and c, where c is drawn second, a does: 10 of 110 after 100 of 210.
        assert!(n[0] < 600 && n[1] > 8000 && n[2] < 1400, "{policy:?}: {n:?}");
    }
}

#[test]
fn a_light_one_is_neither_starved_nor_flooded_at_low_and_at_high_load() {
    for policy in [&BY_LOAD[..], &[LoadBalancing::PeakEwma]].concat() {
        for in_flight in [1, 8, 60, 600] {
            let picker = picker(policy.clone(), Compat::None, &[("a", 100), ("b", 100), ("c", 10)]);
            let (mut turns, mut random) = (Turns::new(), Random::new(4));
            let (mut loads, mut running, mut n) = (Alike(vec![0; 3]), VecDeque::new(), [0_u32; 3]);
            for _ in 0..21_000 {
                let none = IndexSet::default();
                let at = picker.pick(&[0, 1, 2], &none, Key::default(), &loads, &mut turns, &mut random).unwrap();
                n[at.index()] += 1;
                loads.0[at.index()] += 1;
                running.push_back(at.index());
                if running.len() > in_flight {
                    loads.0[running.pop_front().unwrap()] -= 1;
                }
            }
            assert!(n[0].abs_diff(n[1]) < 600, "{policy:?}, {in_flight}: {n:?}");
            // A thousand is its share.
            assert!((700..2100).contains(&n[2]), "{policy:?}, {in_flight}: {n:?}");
        }
    }
}

proptest! {
    #[test]
    fn the_less_busy_of_two_is_told_exactly_and_never_both_ways(
        requests in [any::<u32>(), any::<u32>()],
        near in [0_u32..30, 0_u32..30],
        weights in [1_u32..=u32::MAX, 1_u32..=u32::MAX],
        small in [1_u32..200, 1_u32..200],
        is_small: bool,
    ) {
        let (requests, weights) = if is_small { (near, small) } else { (requests, weights) };
        let names = [("a", weights[0]), ("b", weights[1])];
        let picker = picker(LoadBalancing::PowerOfTwoChoices, Compat::None, &names);
        let none = IndexSet::default();
        let candidates = picker.candidates(&[0, 1], &none);
        let loads = Fixed(requests.to_vec());
        let is_less = |one: u32, other: u32| is_less_busy(DestinationIndex(one), DestinationIndex(other), &candidates, &loads);
        let exact = |one: usize, other: usize| {
            (u128::from(requests[one]) + 1) * u128::from(weights[other]) <= u128::from(requests[other]) * u128::from(weights[one])
        };
        prop_assert_eq!([is_less(0, 1), is_less(1, 0)], [exact(0, 1), exact(1, 0)]);
        prop_assert!(!(is_less(0, 1) && is_less(1, 0)));
        // Both are always drawn of two, so the less busy one serves.
        for seed in 0..4 {
            let mut bench = Bench::new(picker.clone(), seed);
            bench.loads = requests.to_vec();
            let picked = bench.pick(&[0, 1], &[]).unwrap();
            prop_assert!(!is_less(1 - picked, picked), "{} with {:?} of {:?}", picked, requests, weights);
        }
    }

    #[test]
    fn nobody_is_less_busy_than_whom_least_requests_picks(
        destinations in prop::collection::vec((0_u32..40, 1_u32..30), 2..8),
        seed: u64,
    ) {
        let names: Vec<String> = (0..destinations.len()).map(|at| format!("d{at}")).collect();
        let weights: Vec<(&str, u32)> = names.iter().map(String::as_str).zip(destinations.iter().map(|one| one.1)).collect();
        let picker = picker(LoadBalancing::LeastRequests, Compat::None, &weights);
        let mut bench = Bench::new(picker.clone(), seed);
        bench.loads = destinations.iter().map(|one| one.0).collect();
        let all: Vec<u32> = (0..).take(destinations.len()).collect();
        let picked = DestinationIndex(bench.pick(&all, &[]).unwrap());
        let none = IndexSet::default();
        let (candidates, loads) = (picker.candidates(&all, &none), Fixed(bench.loads.clone()));
        for &other in &all {
            prop_assert!(!is_less_busy(DestinationIndex(other), picked, &candidates, &loads));
        }
    }
}
