//! ConsistentHash over many keys: shares, and who moves when one is out and back.

use super::*;

const KEYS: u64 = 100_000;

#[test]
fn keys_are_spread_within_five_hundredths_and_only_those_of_the_lost_one_move() {
    let mut bench = Bench::new(hashing(&ten()), 1);
    let all: Vec<u32> = (0..10).collect();
    let rest: Vec<u32> = all.iter().copied().filter(|&at| at != 2).collect();
    let counts = |homes: &[u32]| {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        homes.iter().for_each(|&home| *counts.entry(home).or_default() += 1);
        counts
    };
    let before = homes(&mut bench, &all, KEYS);
    even(&counts(&before), 10_000, &all);
    let without = homes(&mut bench, &rest, KEYS);
    // The neighbour of the one that is out gets no more than the others.
    even(&counts(&without), 11_111, &rest);
    assert!(before.iter().zip(&without).all(|(was, is)| was == is || *was == 2));
    assert_eq!(homes(&mut bench, &all, KEYS), before);
}

#[test]
fn keys_follow_weights_and_weight_zero_has_none_not_even_alone() {
    let mut bench = Bench::new(hashing(&[("a", 100), ("b", 1), ("c", 0)]), 1);
    let homes = homes(&mut bench, &[0, 1, 2], KEYS);
    let light = homes.iter().filter(|home| **home == 1).count();
    assert!(homes.iter().all(|home| *home != 2));
    assert!((890..1090).contains(&light), "{light} of {KEYS}, where a 101st is its share");
    assert_eq!(bench.pick(&[2], &[]), None);
    assert_eq!(bench.pick(&[1, 2], &[]), Some(1));
}
