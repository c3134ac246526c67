//! What tells requests apart under ConsistentHash, whom sessions leave while their destination is spared, and what times say
//! under PeakEwma: the policies as exchanges use them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use exchange::snapshot::ClusterView;
use exchange::{Exchange, Snapshot, Step, Worker};
use model::affinity::{AffinityCookie, AffinityFailurePolicy, AffinityPolicy, SessionAffinity};
use model::balancing::{HashKey, LoadBalancing};
use model::cluster::{Cluster, Compat};
use model::id::DestinationIndex;
use model::outcome::{FailureKind, Progress};
use model::ratio::Ratio;
use model::request::{Fields, RequestFacts};
use model::time::Timestamp;
use support::words::{ended, head, word};
use support::*;

/// A request's fields.
#[derive(Clone, Default)]
struct Lines(Vec<(&'static str, String)>);

impl Fields for Lines {
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8])) {
        self.0.iter().filter(|line| line.0 == name).for_each(|line| visit(line.1.as_bytes()));
    }
}

#[derive(Clone)]
struct Asked {
    path: String,
    lines: Lines,
    client: IpAddr,
}

impl Asked {
    fn new(path: &str, lines: &[(&'static str, &str)], client: &str) -> Self {
        let lines = lines.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { path: path.to_owned(), lines: Lines(lines), client: client.parse().unwrap() }
    }

    /// Where its exchange begins.
    fn home(&self, snapshot: &Snapshot, worker: &mut Worker) -> u32 {
        let request = Request::get();
        let facts = RequestFacts { path: &self.path, fields: &self.lines, client: self.client, ..request.facts() };
        let (_, step) = Exchange::begin(Timestamp::from_secs(1), &facts, snapshot, worker, &Board::default());
        let Step::Connect(attempt) = step else { panic!("{step:?}") };
        attempt.destination.0
    }
}

fn hashing(key: HashKey) -> Cluster {
    let mut one = cluster(Compat::None, &["a", "b", "c", "d"]);
    one.load_balancing = LoadBalancing::ConsistentHash(key);
    one
}

/// With parts of the weights.
fn shared(cluster: &Cluster, shares: &[Ratio]) -> ClusterView {
    let mut view = whole(cluster);
    view.picker = view.picker.with_shares(shares);
    view.destinations.iter_mut().zip(shares).for_each(|(one, share)| one.share = *share);
    view
}

/// Where 40 requests of this kind go, the n-th telling itself apart as told.
fn homes(key: HashKey, request: impl Fn(usize) -> Asked) -> Vec<u32> {
    let snapshot = snapshot(whole(&hashing(key)), &[route(None)]);
    (0..40).map(|n| request(n).home(&snapshot, &mut Worker::new(n as u64))).collect()
}

#[test]
fn requests_are_told_apart_by_the_key_that_is_named_and_by_nothing_else() {
    let name = |n: usize| format!("n{n}");
    let host = |n: usize| format!("10.0.{}.{}", n / 200, n % 200 + 1);
    let cookie = |n: usize| format!("x=1; sid={}; y=2", name(n));
    let all = |path: &str, header: &str, sid: &str, client: &str| {
        Asked::new(path, &[("x-user", header), ("cookie", sid)], client)
    };
    type Request<'a> = &'a dyn Fn(usize, usize) -> Asked;
    let kinds: [(HashKey, Request<'_>); 4] = [
        (HashKey::ClientAddress, &|n, other| all(&format!("/{other}"), &name(other), &cookie(other), &host(n))),
        (HashKey::Path, &|n, other| all(&format!("/{n}"), &name(other), &cookie(other), &host(other))),
        (HashKey::Header("x-user".into()), &|n, other| {
            all(&format!("/{other}"), &name(n), &cookie(other), &host(other))
        }),
        (HashKey::Cookie("sid".into()), &|n, other| all(&format!("/{other}"), &name(other), &cookie(n), &host(other))),
    ];
    for (key, request) in kinds {
        let apart = homes(key.clone(), |n| request(n, 0));
        assert_eq!(apart.iter().collect::<BTreeSet<_>>().len(), 4, "{key:?}: 40 keys are spread: {apart:?}");
        assert_eq!(homes(key.clone(), |n| request(n, n + 7)), apart, "{key:?}: what else differs means nothing");
        let one = homes(key.clone(), |n| request(0, n));
        assert_eq!(one.iter().collect::<BTreeSet<_>>().len(), 1, "{key:?}: one key, one destination: {one:?}");
    }
}

#[test]
fn a_request_without_the_named_key_goes_by_its_clients_address() {
    let by_client = homes(HashKey::ClientAddress, |n| Asked::new("/", &[], &format!("10.0.0.{n}")));
    for key in [HashKey::Header("x-user".into()), HashKey::Cookie("sid".into())] {
        let homes = homes(key, |n| Asked::new("/", &[("cookie", "other=1")], &format!("10.0.0.{n}")));
        assert_eq!(homes, by_client);
    }
    // A whole /64 is one client.
    let block = homes(HashKey::ClientAddress, |n| Asked::new("/", &[], &format!("2001:db8:0:1::{n:x}")));
    assert_eq!(block.iter().collect::<BTreeSet<_>>().len(), 1);
}

#[test]
fn a_suspect_keeps_a_part_of_its_keys_requests_and_no_key_moves() {
    let cluster = hashing(HashKey::Path);
    let request = |n: usize| Asked::new(&format!("/{n}"), &[], "10.0.0.1");
    let mut worker = Worker::new(1);
    let mut all = |snapshot: &Snapshot| (0..4000).map(|n| request(n).home(snapshot, &mut worker)).collect::<Vec<_>>();
    let before = all(&snapshot(whole(&cluster), &[route(None)]));
    let shares = [Ratio::ONE, Ratio::percent(10), Ratio::ONE, Ratio::ONE];
    let during = all(&snapshot(shared(&cluster, &shares), &[route(None)]));
    let after = all(&snapshot(whole(&cluster), &[route(None)]));
    assert!(before.iter().zip(&during).all(|(was, is)| was == is || *was == 1), "no key of another one moves");
    let (of_it, kept) = before
        .iter()
        .zip(&during)
        .filter(|(was, _)| **was == 1)
        .fold((0, 0), |(all, kept), (_, is)| (all + 1, kept + u32::from(*is == 1)));
    assert!((900..1100).contains(&of_it) && (60..150).contains(&kept), "{kept} of {of_it}");
    assert_eq!(after, before);
}

#[test]
fn a_repeated_request_goes_to_the_next_of_its_keys_own_order() {
    let snapshot = snapshot(whole(&hashing(HashKey::Path)), &[route(None)]);
    let mut seconds: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for n in 0..60 {
        let path = format!("/{n}");
        let mut walks = Vec::new();
        for _ in 0..2 {
            let board = Board::default();
            let (mut walk, first) = Walk::begin(&Request { path: &path, ..Request::get() }, &snapshot, &board);
            let second = walk.handle(ended(Progress::NotSent, FailureKind::Refused));
            walks.push((word(&first), word(&second)));
        }
        assert_eq!(walks[0], walks[1], "the same way each time");
        assert_ne!(walks[0].0, walks[0].1);
        let first = walks[0].0.bytes().last().unwrap();
        seconds.entry(u32::from(first)).or_default().insert(walks[0].1.clone());
    }
    assert!(
        seconds.values().all(|seconds| seconds.len() == 3),
        "the load of one is spread over the others: {seconds:?}"
    );
}

fn sticky(failure_policy: AffinityFailurePolicy) -> Cluster {
    let mut one = cluster(Compat::None, &["a", "b", "c"]);
    one.load_balancing = LoadBalancing::Random;
    one.session_affinity = Some(SessionAffinity {
        policy: AffinityPolicy::HashCookie,
        failure_policy,
        key_name: "lz".to_owned(),
        cookie: AffinityCookie::default(),
    });
    one
}

#[test]
fn sessions_visit_others_while_their_destination_is_spared_and_stay_its_own() {
    let cookie = format!("lz={}", balance::affinity::key("b"));
    let request = Request { cookie: Some(&cookie), ..Request::get() };
    let shares = [Ratio::ONE, Ratio::percent(10), Ratio::ONE];
    let mut worker = Worker::new(1);
    for (policy, least, most) in
        [(AffinityFailurePolicy::Redistribute, 50, 250), (AffinityFailurePolicy::Return503Error, 1000, 1000)]
    {
        let (snapshot, board) = (snapshot(shared(&sticky(policy), &shares), &[route(None)]), Board::default());
        let mut at_home = 0;
        for _ in 0..1000 {
            let now = Timestamp::from_secs(1);
            let (mut exchange, step) = Exchange::begin(now, &request.facts(), &snapshot, &mut worker, &board);
            let Step::Connect(attempt) = step else { panic!("{step:?}") };
            at_home += u32::from(attempt.destination == DestinationIndex(1));
            exchange.handle(now, head(200), &snapshot, &mut worker, &board);
            assert_eq!(exchange.new_pin(), None, "a visit pins nobody");
        }
        assert!((least..=most).contains(&at_home), "{policy:?}: {at_home} of 1000");
    }
}

#[test]
fn the_time_to_first_byte_and_the_requests_in_flight_decide_under_peak_ewma() {
    let mut one = cluster(Compat::None, &["a", "b"]);
    one.load_balancing = LoadBalancing::PeakEwma;
    let (snapshot, board) = (snapshot(whole(&one), &[route(None)]), Board::default());
    board.latencies.borrow_mut().extend([(0, Duration::from_millis(50)), (1, Duration::from_millis(5))]);
    let (mut worker, request) = (Worker::new(1), Request::get());
    let mut begin = |tried: bool| {
        let now = Timestamp::from_secs(1);
        let (mut exchange, step) = Exchange::begin(now, &request.facts(), &snapshot, &mut worker, &board);
        if !tried {
            return word(&step);
        }
        let refused = ended(Progress::NotSent, FailureKind::Refused);
        word(&exchange.handle(now, refused, &snapshot, &mut worker, &board))
    };
    assert!((0..50).all(|_| begin(false) == "connect 1"), "ten times as fast");
    assert!((0..50).all(|_| begin(true) == "connect 0"), "a retry goes to the other one");
    board.loads.borrow_mut().insert(1, 20);
    assert!((0..50).all(|_| begin(false) == "connect 0"), "21 times 5 ms are more than 50");
}
