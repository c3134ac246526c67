//! Each available destination gets its share and no more: the neighbour of a dead one does not inherit its load, a weight
//! of 0 gets nothing, shares return with the destination, and neither a start nor a reload begins at the first one.
//! (mosn/mosn #1867, apple/servicetalk #3021, traefik/traefik #2986, apache/apisix #5246)
//!
//! 4 000 requests are counted for each policy and state; `LAZARET_LONG=1`: 100 000. RoundRobin may differ from its shares
//! by 5 %, what is random by five standard deviations. What looks at requests in flight rightly sends less to whom a busy
//! machine makes slow, so time must not say what is in flight: [`CLIENTS`] requests go out together, none is answered before
//! all have come to their destinations, and the next ones wait for all answers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use end_to_end::control::is_long;
use end_to_end::probed::Probed;
use end_to_end::process::Lazaret;
use testkit::client::Client;
use testkit::gathering::Gathering;

const CLIENTS: usize = 16;

#[test]
fn the_share_of_a_dead_destination_goes_to_all_others_and_returns_with_it() {
    let total = if is_long() { 100_000 } else { 4000 };
    let together = Gathering::of(CLIENTS);
    let destinations: Vec<_> = (0..10).map(|index| Probed::gathering(&format!("d{index}"), &together)).collect();
    let policies = ["RoundRobin", "PowerOfTwoChoices", "LeastRequests", "Random"];
    let mut body = String::from("workers: 4\nroutes:\n");
    for policy in policies {
        body += &format!("  {policy}: {{match: {{path: \"/{policy}\"}}, cluster: {policy}}}\n");
    }
    body += "clusters:\n";
    for policy in policies {
        body += &format!(
            "  {policy}:\n    load_balancing: {policy}\n    health_check: {{active: {{interval: 1s, timeout: 2s, threshold: 2, \
             confirm_interval: 200ms, path: /health}}}}\n    destinations:\n"
        );
        for (index, one) in destinations.iter().enumerate() {
            body += &format!("      d{index}: {{address: \"{}\"}}\n", one.url());
        }
    }
    let lazaret = Lazaret::start(&body);
    lazaret.wait_ready();
    let everywhere = |health: &str| policies.iter().all(|policy| lazaret.health(policy, "d3") == health);
    for (phase, status, health, members) in
        [("all", 200, "healthy", 10), ("d3 down", 500, "unhealthy", 9), ("d3 back", 200, "healthy", 10)]
    {
        destinations[3].turn(status);
        lazaret.wait_until(phase, || everywhere(&format!("{health}/unknown")));
        for policy in policies {
            let counts = spread(lazaret.proxy, &format!("/{policy}"), total);
            assert_eq!(counts.len(), members, "{phase}, {policy}: {counts:?}");
            assert_eq!(counts.contains_key("d3"), health == "healthy", "{phase}, {policy}: {counts:?}");
            let share = total as f64 / members as f64;
            let off = match policy {
                "RoundRobin" => share * 0.05,
                // What looks at requests in flight varies less than what draws alone.
                _ => (5.0 * share.sqrt()).max(share * 0.05),
            };
            for (name, count) in &counts {
                let is_fair = (*count as f64 - share).abs() <= off;
                assert!(is_fair, "{phase}, {policy}: {name} got {count}, its share is {share}: {counts:?}");
            }
        }
    }
}

#[test]
fn weights_are_kept_and_a_weight_of_0_gets_nothing() {
    let together = Gathering::of(CLIENTS);
    let destinations: Vec<_> = ["heavy", "light", "none"].map(|name| Probed::gathering(name, &together)).into();
    let policies = ["RoundRobin", "PowerOfTwoChoices", "LeastRequests", "Random"];
    let mut body = String::from("workers: 2\nroutes:\n  alone: {match: {path: /alone}, cluster: alone}\n");
    for policy in policies {
        body += &format!("  {policy}: {{match: {{path: \"/{policy}\"}}, cluster: {policy}}}\n");
    }
    body += "clusters:\n";
    let [heavy, light, none] = [0, 1, 2].map(|index: usize| destinations[index].url());
    body += &format!("  alone: {{destinations: {{none: {{address: \"{none}\", weight: 0}}}}}}\n");
    for policy in policies {
        body += &format!(
            "  {policy}:\n    load_balancing: {policy}\n    destinations: {{heavy: {{address: \"{heavy}\", weight: 100}}, light: \
             {{address: \"{light}\", weight: 1}}, none: {{address: \"{none}\", weight: 0}}}}\n"
        );
    }
    let lazaret = Lazaret::start(&body);
    let total = if is_long() { 100_000 } else { 4048 };
    for policy in policies {
        let counts = spread(lazaret.proxy, &format!("/{policy}"), total);
        let light = counts.get("light").copied().unwrap_or(0) as f64;
        let share = total as f64 / 101.0;
        let off = if policy == "RoundRobin" { share * 0.1 + 4.0 } else { 5.0 * share.sqrt() };
        assert!((light - share).abs() <= off, "{policy}: light got {light}, its share is {share}: {counts:?}");
    }
    // The rule for one that is alone: nobody is available.
    assert_eq!(Client::connect(lazaret.proxy).get("/alone").status(), 503);
    assert_eq!(destinations[2].served(), 0, "a weight of 0 got traffic");
}

#[test]
fn neither_a_start_nor_a_reload_begins_at_the_first_destination() {
    let destinations: Vec<_> = (0..10).map(|index| Probed::start(&format!("d{index}"))).collect();
    let config = |number: usize| {
        let list: Vec<_> =
            (0..10).map(|index| format!("d{index}: {{address: \"{}\"}}", destinations[index].url())).collect();
        format!(
            "routes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: app}}, unrelated: {{match: {{path: \
             \"/unrelated-{number}\"}}, respond: {{status: 200}}}}}}\nclusters: {{app: {{load_balancing: RoundRobin, destinations: \
             {{{}}}}}}}\n",
            list.join(", ")
        )
    };
    let mut first = BTreeSet::new();
    for _ in 0..if is_long() { 20 } else { 10 } {
        let lazaret = Lazaret::start(&config(0));
        let mut client = Client::connect(lazaret.proxy);
        first.insert(client.get("/").text());
        let short: BTreeSet<_> = (0..9).map(|_| client.get("/").text()).chain(first.iter().cloned()).collect();
        assert!(short.len() >= 9, "ten requests right after the start came to {short:?} alone");
    }
    assert!(first.len() > 1, "every start begins at {first:?}");

    let lazaret = Lazaret::start(&config(0));
    let mut client = Client::connect(lazaret.proxy);
    let mut first = BTreeMap::new();
    for number in 1..=12 {
        lazaret.apply(&config(number));
        *first.entry(client.get("/").text()).or_insert(0) += 1;
        let counts: BTreeSet<_> = (0..17).map(|_| client.get("/").text()).collect();
        assert!(counts.len() >= 8, "requests right after a reload came to {counts:?} alone");
    }
    assert!(first.len() > 1, "every reload begins at {first:?}");
}

/// Sends `total` GETs by [`CLIENTS`] connections, one by each and then all their answers, and counts who answered.
fn spread(proxy: SocketAddr, path: &str, total: usize) -> BTreeMap<String, usize> {
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| Client::connect(proxy)).collect();
    let mut counts = BTreeMap::new();
    for _ in 0..total / CLIENTS {
        for client in &mut clients {
            client.send(format!("GET {path} HTTP/1.1\r\nHost: lazaret.test\r\n\r\n"));
        }
        for client in &mut clients {
            let response = client.response();
            assert_eq!(response.status(), 200, "{path}");
            *counts.entry(response.text()).or_insert(0) += 1;
        }
    }
    counts
}
