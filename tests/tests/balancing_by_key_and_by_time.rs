//! ConsistentHash and PeakEwma on the real proxy: a key stays with its destination and leaves it only for a try, and of two
//! the faster one gets the requests.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use end_to_end::control::attempts;
use end_to_end::load::{Load, run};
use end_to_end::process::Lazaret;
use testkit::client::Client;
use testkit::destination::{Act, Destination, Moment, answer, refusing};

const USERS: usize = 24;

#[test]
fn each_key_has_its_destination_over_all_connections() {
    let all = ["a", "b", "c"].map(|id| Destination::answering(200, id));
    let lazaret = start(HASH, &[("a", all[0].addr()), ("b", all[1].addr()), ("c", all[2].addr())]);
    let homes = || (0..USERS).map(|user| ask(&lazaret, user, "/").1).collect::<Vec<_>>();
    let first = homes();
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 3, "{first:?}");
    assert_eq!(homes(), first);
}

/// HAProxy's redispatch (H2 of its measurements) leaves a request of a hash with the server that fails.
#[test]
fn a_key_whose_destination_refuses_goes_to_the_next_of_its_own_order() {
    let good = ["b", "c"].map(|id| Destination::answering(200, id));
    let lazaret = start(HASH, &[("a", refusing()), ("b", good[0].addr()), ("c", good[1].addr())]);
    let mut seconds: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for round in 0..2 {
        for user in 0..USERS {
            let path = format!("/{user}/{round}");
            let (status, body) = ask(&lazaret, user, &path);
            assert_eq!(status, 200, "{path}");
            let tries = attempts(&lazaret.log_line(&path));
            if tries.len() > 1 {
                assert!(tries[0].starts_with("a:") && tries.len() == 2, "{tries:?}");
                seconds.entry(user).or_default().insert(body);
            }
        }
    }
    assert!(seconds.values().all(|of_one| of_one.len() == 1), "one key, one second choice: {seconds:?}");
    let both: BTreeSet<_> = seconds.values().flatten().collect();
    assert_eq!(both.len(), 2, "and the keys of one are spread over the others: {seconds:?}");
}

#[test]
fn the_faster_of_two_gets_nearly_all_requests() {
    let slow = Destination::start(|moment| match moment {
        Moment::Accepted => vec![],
        Moment::Request(_) => [vec![Act::Pause(Duration::from_millis(80))], answer(200, "slow")].concat(),
    });
    let fast = Destination::answering(200, "fast");
    let lazaret = start("load_balancing: PeakEwma", &[("slow", slow.addr()), ("fast", fast.addr())]);
    let load =
        Load { to: lazaret.proxy, clients: 4, rate: 100, duration: Duration::from_secs(4), post_every: 0, path: "/" };
    let outcome = run(&load);
    let counts = (slow.requests().len(), fast.requests().len());
    assert!(outcome.sent > 200, "the load was not carried: {} requests", outcome.sent);
    assert_eq!(outcome.get_failed_before_head, 0, "{:?}", outcome.failures);
    assert!(counts.0 * 8 < counts.1, "slow and fast got {counts:?}");
}

const HASH: &str = "load_balancing: ConsistentHash\n    hash: {header: X-User}";

fn start(balancing: &str, destinations: &[(&str, SocketAddr)]) -> Lazaret {
    let list: Vec<_> =
        destinations.iter().map(|(id, address)| format!("{id}: {{address: \"http://{address}/\"}}")).collect();
    Lazaret::start(&format!(
        "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}}}\nclusters:\n  app:\n    {balancing}\n    \
         destinations: {{{}}}\n",
        list.join(", ")
    ))
}

/// A connection's only request; its status and body.
fn ask(lazaret: &Lazaret, user: usize, path: &str) -> (u16, String) {
    let mut client = Client::connect(lazaret.proxy);
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a.test\r\nX-User: user-{user}\r\n\r\n"));
    let response = client.response();
    (response.status(), response.text())
}
