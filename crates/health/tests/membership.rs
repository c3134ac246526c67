//! Who a name stands for, in virtual time: what adds an address, what takes one away, and how often is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use health::membership::{Answer, Known, Lifetimes, MOST_AT_ONCE, Membership, NameKey, expand};
use model::address::Located;
use model::time::Timestamp;
use model::upstream::Family;
use proptest::prelude::*;

use crate::world::{at, cluster, secs, with};

const LIFETIMES: Lifetimes = Lifetimes { least: Duration::from_secs(5), most: Duration::from_secs(300) };

fn key(name: &str) -> NameKey {
    NameKey { name: name.into(), family: Family::Auto }
}

fn ips(all: &[&str]) -> Vec<IpAddr> {
    all.iter().map(|ip| ip.parse().unwrap()).collect()
}

fn found(all: &[&str], ttl: u64) -> Answer {
    Answer::Found { addresses: ips(all), ttl: Duration::from_secs(ttl) }
}

/// One name, asked whenever it is due.
struct One {
    membership: Membership,
    now: Timestamp,
    asked: Vec<f64>,
}

impl One {
    fn new() -> Self {
        let mut membership = Membership::new(7, LIFETIMES);
        membership.configured(Timestamp::ZERO, &BTreeSet::from([key("api.test")]), LIFETIMES);
        Self { membership, now: Timestamp::ZERO, asked: Vec::new() }
    }

    /// Lets the next lookup come to `answer`.
    fn answer(&mut self, answer: Answer) {
        self.now = self.now.max(self.membership.poll_timeout().unwrap());
        let key = self.membership.poll_lookup(self.now).unwrap();
        self.asked.push(self.now.as_secs_f64());
        self.membership.answered(self.now, &key, answer);
    }

    /// The same answer until `end`.
    fn answer_until(&mut self, end: f64, answer: &Answer) {
        while self.membership.poll_timeout().unwrap() <= at(end) {
            self.answer(answer.clone());
        }
    }

    fn addresses(&self) -> Vec<IpAddr> {
        match self.membership.known(&key("api.test")) {
            Known::Addresses(addresses) => addresses,
            Known::Nothing => panic!("nothing is known"),
        }
    }

    fn gap(&self) -> f64 {
        self.asked[self.asked.len() - 1] - self.asked[self.asked.len() - 2]
    }
}

#[test]
fn an_address_joins_at_once_and_leaves_after_three_answers_and_thirty_seconds_without_it() {
    let mut one = One::new();
    one.answer(found(&["10.0.0.1"], 5));
    one.answer(found(&["10.0.0.1", "10.0.0.2"], 5));
    assert_eq!(one.addresses(), ips(&["10.0.0.1", "10.0.0.2"]));
    let seen_at = one.now;
    while one.addresses().len() == 2 {
        one.answer(found(&["10.0.0.2"], 5));
    }
    let gone_after = one.now.since(seen_at);
    assert!(gone_after >= secs(30.0) && gone_after <= secs(35.0), "{gone_after:?}");
    // With long lifetimes the three answers are asked for, not waited for.
    let mut slow = One::new();
    slow.answer(found(&["10.0.0.1", "10.0.0.2"], 300));
    let seen_at = slow.now;
    let mut answers = 0;
    while slow.addresses().len() == 2 {
        slow.answer(found(&["10.0.0.2"], 300));
        answers += 1;
    }
    assert!(answers >= 3);
    assert!(slow.now.since(seen_at) <= secs(300.0 + 30.0));
}

#[test]
fn a_server_that_answers_with_subsets_in_turn_costs_no_address() {
    let mut one = One::new();
    for turn in 0..60 {
        let subset = [["10.0.0.1", "10.0.0.2"], ["10.0.0.3", "10.0.0.4"]][turn % 2];
        one.answer(found(&subset, 5));
        if turn > 0 {
            assert_eq!(one.addresses().len(), 4, "turn {turn}");
        }
    }
}

#[test]
fn errors_silence_and_empty_answers_keep_the_addresses() {
    for nothing in [Answer::Failed, Answer::Empty] {
        let mut one = One::new();
        one.answer(found(&["10.0.0.1"], 5));
        one.answer_until(3600.0, &nothing);
        assert_eq!(one.addresses(), ips(&["10.0.0.1"]), "{nothing:?}");
        assert!(one.gap() <= 15.0, "asked again within 15 s: {}", one.gap());
    }
}

#[test]
fn a_name_that_does_not_exist_keeps_its_addresses_for_five_minutes() {
    let mut one = One::new();
    one.answer(found(&["10.0.0.1"], 5));
    one.answer(Answer::NoName);
    let since = one.now;
    one.answer_until((since + secs(299.0)).as_secs_f64(), &Answer::NoName);
    assert_eq!(one.addresses().len(), 1);
    one.answer_until((since + secs(316.0)).as_secs_f64(), &Answer::NoName);
    assert_eq!(one.addresses().len(), 0);
    one.answer(found(&["10.0.0.9"], 5));
    assert_eq!(one.addresses(), ips(&["10.0.0.9"]));
    // An address in between starts the five minutes anew.
    one.answer(Answer::NoName);
    one.answer_until((one.now + secs(200.0)).as_secs_f64(), &Answer::NoName);
    one.answer(found(&["10.0.0.9"], 5));
    one.answer_until((one.now + secs(200.0)).as_secs_f64(), &Answer::NoName);
    assert_eq!(one.addresses().len(), 1);
}

#[test]
fn lifetimes_are_kept_between_five_seconds_and_five_minutes() {
    for (ttl, least, most) in [(0, 4.5, 5.0), (60, 54.0, 60.0), (86_400, 270.0, 300.0)] {
        let mut one = One::new();
        (0..20).for_each(|_| {
            one.answer(found(&["10.0.0.1"], ttl));
            if one.asked.len() > 1 {
                assert!((least..=most + 0.001).contains(&one.gap()), "{ttl}: {}", one.gap());
            }
        });
    }
}

#[test]
fn only_one_family_counts_unless_both_are_asked_for() {
    let all = || found(&["2001:db8::1", "10.0.0.1", "0.0.0.0", "::ffff:10.0.0.2", "224.0.0.1", "10.0.0.1"], 60);
    for (family, expected) in [
        (Family::Auto, vec!["10.0.0.1", "10.0.0.2"]),
        (Family::V4, vec!["10.0.0.1", "10.0.0.2"]),
        (Family::V6, vec!["2001:db8::1"]),
        (Family::Both, vec!["10.0.0.1", "10.0.0.2", "2001:db8::1"]),
    ] {
        let key = NameKey { name: "api.test".into(), family };
        let mut membership = Membership::new(1, LIFETIMES);
        membership.configured(Timestamp::ZERO, &BTreeSet::from([key.clone()]), LIFETIMES);
        assert!(!membership.is_settled());
        let asked = membership.poll_lookup(Timestamp::ZERO).unwrap();
        membership.answered(Timestamp::ZERO, &asked, all());
        assert_eq!(membership.known(&key), Known::Addresses(ips(&expected)), "{family:?}");
        assert!(membership.is_settled() && membership.take_change() && !membership.take_change());
    }
}

#[test]
fn ten_thousand_names_are_spread_and_never_more_than_the_pool_at_once() {
    let keys: BTreeSet<NameKey> = (0..10_000).map(|n| key(&format!("n{n}.test"))).collect();
    let mut membership = Membership::new(3, LIFETIMES);
    membership.configured(Timestamp::ZERO, &keys, LIFETIMES);
    let mut now = Timestamp::ZERO;
    let mut running: Vec<(Timestamp, NameKey)> = Vec::new();
    let mut started: BTreeMap<u64, u32> = BTreeMap::new();
    while now < at(60.0) {
        while let Some(key) = membership.poll_lookup(now) {
            *started.entry(now.as_nanos() / 1_000_000_000).or_default() += 1;
            running.push((now + Duration::from_millis(20), key));
        }
        assert!(running.len() <= MOST_AT_ONCE);
        let ended = running.iter().map(|(at, _)| *at).min();
        now = [membership.poll_timeout(), ended].into_iter().flatten().min().unwrap().max(now);
        let due: Vec<_> = running.extract_if(.., |(at, _)| *at <= now).collect();
        due.into_iter().for_each(|(_, key)| membership.answered(now, &key, found(&["10.0.0.1"], 30)));
    }
    assert!(membership.is_settled());
    assert!(started.values().all(|n| *n <= 1000), "{started:?}");
}

#[test]
fn names_with_one_address_keep_their_id_and_with_several_carry_it() {
    let mut written = cluster("c", &["a", "b"]);
    written.destinations[0].health = Some(model::address::Url::parse("http://a.test:81/up").unwrap());
    written.destinations[1].health = Some(model::address::Url::parse("http://other.test/").unwrap());
    written.destinations[1].host = Some("own.test".to_owned());
    let mut membership = Membership::new(1, LIFETIMES);
    let keys: BTreeSet<NameKey> = health::membership::names(&written).collect();
    membership.configured(Timestamp::ZERO, &keys, LIFETIMES);
    let none = expand(&written, &membership).unwrap();
    assert!(none.destinations.iter().all(|one| one.address.located == Located::Nowhere));

    membership.answered(Timestamp::ZERO, &key("a.test"), found(&["10.0.0.1", "10.0.0.2", "10.0.0.3"], 9));
    membership.answered(Timestamp::ZERO, &key("b.test"), found(&["2001:db8::7"], 9));
    let shown = expand(&written, &membership).unwrap();
    let ids: Vec<String> = shown.destinations.iter().map(|one| one.id.to_string()).collect();
    assert_eq!(ids, ["a[10.0.0.1]", "a[10.0.0.2]", "a[10.0.0.3]", "b"]);
    let weights: Vec<u32> = shown.destinations.iter().map(|one| one.weight).collect();
    assert_eq!(weights, [1, 1, 1, 3], "a name has one share of the traffic, however many addresses it has");
    let first = &shown.destinations[0];
    assert_eq!(first.address.literal(), Some("10.0.0.1:80".parse().unwrap()));
    assert_eq!(first.health.as_ref().unwrap().literal(), Some("10.0.0.1:81".parse().unwrap()));
    assert_eq!((first.address.authority(), first.stem()), ("a.test".to_owned(), "a"));
    let last = &shown.destinations[3];
    assert_eq!(last.address.literal(), Some("[2001:db8::7]:80".parse().unwrap()));
    assert_eq!((last.host.as_deref(), last.health.as_ref().unwrap().literal()), (Some("own.test"), None));

    membership.answered(Timestamp::ZERO, &key("b.test"), found(&["2001:db8::8"], 9));
    let shown = expand(&written, &membership).unwrap();
    assert!(shown.destinations.iter().any(|one| one.id.as_str() == "b[2001:db8::8]"));
}

#[test]
fn a_cluster_of_addresses_is_left_alone_and_an_id_that_is_taken_stays_whose_it_is() {
    let membership = Membership::new(1, LIFETIMES);
    let literal = with(cluster("c", &["a"]), |cluster| {
        cluster.destinations[0].address = model::address::Url::parse("http://[::1]:80/").unwrap();
    });
    assert!(expand(&literal, &membership).is_none());

    let twice = cluster("c", &["a", "a[10.0.0.1]"]);
    let twice = with(twice, |cluster| cluster.destinations[1].address = literal.destinations[0].address.clone());
    let mut membership = Membership::new(1, LIFETIMES);
    membership.configured(Timestamp::ZERO, &BTreeSet::from([key("a.test")]), LIFETIMES);
    membership.answered(Timestamp::ZERO, &key("a.test"), found(&["10.0.0.1", "10.0.0.2"], 9));
    let ids: Vec<String> =
        expand(&twice, &membership).unwrap().destinations.iter().map(|one| one.id.to_string()).collect();
    assert_eq!(ids, ["a[10.0.0.2]", "a[10.0.0.1]"]);
}

proptest! {
    #[test]
    fn shares_stay_within_a_percent_and_nobody_loses_his(
        parts in prop::collection::vec((0_u32..=65_535, 1_usize..=12), 1..12)
    ) {
        let ids: Vec<String> = (0..parts.len()).map(|n| format!("d{n}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let mut written = cluster("c", &ids);
        let mut membership = Membership::new(1, LIFETIMES);
        membership.configured(Timestamp::ZERO, &health::membership::names(&written).collect(), LIFETIMES);
        for (n, (weight, addresses)) in parts.iter().enumerate() {
            written.destinations[n].weight = *weight;
            let all: Vec<String> = (0..*addresses).map(|ip| format!("10.0.{n}.{ip}")).collect();
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            membership.answered(Timestamp::ZERO, &key(&format!("d{n}.test")), found(&all, 60));
        }
        let shown = expand(&written, &membership).unwrap();
        prop_assert_eq!(shown.destinations.len(), parts.iter().map(|(_, addresses)| addresses).sum::<usize>());
        let total: u64 = shown.destinations.iter().map(|one| u64::from(one.weight)).sum();
        let wanted: u64 = parts.iter().map(|(weight, _)| u64::from(*weight)).sum();
        for (n, (weight, _)) in parts.iter().enumerate() {
            let stem = format!("d{n}");
            let own = shown.destinations.iter().filter(|one| one.stem() == stem);
            let own: u64 = own.map(|one| u64::from(one.weight)).sum();
            prop_assert_eq!(own == 0, *weight == 0);
            if wanted > 0 {
                let (is, should) = (own as f64 / total as f64, f64::from(*weight) / wanted as f64);
                prop_assert!((is - should).abs() <= 0.01, "{}: {} for {}", stem, is, should);
            }
        }
    }

    #[test]
    fn whatever_is_answered_the_names_are_asked_again_and_known_addresses_were_answered(
        answers in prop::collection::vec((0_u8..4, prop::collection::vec(1_u8..6, 1..4), 0_u64..400), 1..80)
    ) {
        let mut one = One::new();
        let mut told = BTreeSet::new();
        for (kind, addresses, ttl) in answers {
            let addresses: Vec<IpAddr> = addresses.into_iter().map(|n| IpAddr::from([10, 0, 0, n])).collect();
            let before = one.now;
            one.answer(match kind {
                0 => Answer::Failed,
                1 => Answer::Empty,
                2 => Answer::NoName,
                _ => {
                    told.extend(addresses.iter().copied());
                    Answer::Found { addresses: addresses.clone(), ttl: Duration::from_secs(ttl) }
                }
            });
            prop_assert!(one.now.since(before) <= secs(300.1));
            let known = one.addresses();
            prop_assert!(known.iter().all(|ip| told.contains(ip)));
            if kind == 3 {
                prop_assert!(addresses.iter().all(|ip| known.contains(ip)));
            }
        }
    }
}
