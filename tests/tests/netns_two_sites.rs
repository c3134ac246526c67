//! The main job from end to end: destinations die, `lazaret` judges them, `lazaret-rhi` takes the VIP off the interface,
//! BIRD withdraws the route, and the router sends clients to the other site; and back.
//!
//! Real programs throughout: two sites, a router with eBGP, a client that asks the VIP.

use std::time::{Duration, Instant};

use end_to_end::netns::lab::{Lab, hop};
use end_to_end::netns::must_skip;
use end_to_end::netns::site::{EventWatch, SERVICE, Site, VIP};
use end_to_end::process::{get, poll};

/// Probes each 500 ms, polls each second, three failed polls: nothing takes this long.
const LIMIT: Duration = Duration::from_secs(20);

fn rhi(policy: &str) -> String {
    format!(
        "apisix_poll_interval: 1s\napisix_timeout: 1s\nfailure_policy: {{control_api_unreachable: {policy}, \
         max_failed_polls: 3}}\nvips:\n  - {{address: {VIP}, description: \"Production API\", upstreams: \
         [/apisix/upstreams/api]}}\n"
    )
}

fn wait_site(lab: &Lab, sites: &[&Site<'_>], site: Option<usize>) {
    if !poll(LIMIT, || lab.site_of(VIP) == site) {
        let logs: Vec<String> = sites.iter().map(|site| site.logs()).collect();
        panic!("the route is at {:?}, not at {site:?}\n{}", lab.site_of(VIP), logs.join("\n"));
    }
}

/// Which destination answers the client; `None`: nobody.
fn served_by(lab: &Lab) -> Option<String> {
    let answer = lab.client.enter(|| get(SERVICE.parse().expect("an address"), "/"))?;
    (answer.status == 200).then(|| answer.body.trim().to_owned())
}

fn wait_served(lab: &Lab, sites: &[&Site<'_>], prefix: &str) {
    if !poll(LIMIT, || served_by(lab).is_some_and(|name| name.starts_with(prefix))) {
        let logs: Vec<String> = sites.iter().map(|site| site.logs()).collect();
        panic!("the client is not served by {prefix}\n{}", logs.join("\n"));
    }
}

#[test]
fn clients_reach_the_site_whose_destinations_live() {
    if must_skip("clients_reach_the_site_whose_destinations_live") {
        return;
    }
    let lab = Lab::start();
    let mut one = Site::start(&lab.sites[0], lab.folder.path(), "one", &rhi("withdraw"));
    let mut two = Site::start(&lab.sites[1], lab.folder.path(), "two", &rhi("withdraw"));
    wait_site(&lab, &[&one, &two], Some(1));
    wait_served(&lab, &[&one, &two], "one-");

    one.kill_destinations();
    wait_site(&lab, &[&one, &two], Some(2));
    wait_served(&lab, &[&one, &two], "two-");
    one.recover();
    wait_site(&lab, &[&one, &two], Some(1));
    wait_served(&lab, &[&one, &two], "one-");

    one.kill_destinations();
    two.kill_destinations();
    wait_site(&lab, &[&one, &two], None);
    assert_eq!(served_by(&lab), None);
    two.recover();
    wait_site(&lab, &[&one, &two], Some(2));
    one.recover();
    wait_site(&lab, &[&one, &two], Some(1));

    for (site, namespace) in [&mut one, &mut two].into_iter().zip(&lab.sites) {
        site.daemon.process.signal(nix::sys::signal::Signal::SIGTERM);
        assert!(site.daemon.process.wait(Duration::from_secs(5)).success(), "{}", site.logs());
        assert_eq!(namespace.addresses("rhi0"), Vec::<String>::new(), "left behind");
    }
    wait_site(&lab, &[&one, &two], None);
}

#[test]
fn a_killed_lazaret_withdraws_or_freezes_its_site() {
    if must_skip("a_killed_lazaret_withdraws_or_freezes_its_site") {
        return;
    }
    let lab = Lab::start();
    let mut one = Site::start(&lab.sites[0], lab.folder.path(), "one", &rhi("withdraw"));
    let mut two = Site::start(&lab.sites[1], lab.folder.path(), "two", &rhi("announce"));
    wait_site(&lab, &[&one, &two], Some(1));
    two.daemon.wait("site 2 announces", || lab.sites[1].addresses("rhi0") == ["10.0.0.100/32"]);

    one.lazaret.kill();
    wait_site(&lab, &[&one, &two], Some(2));
    assert_eq!(one.daemon.reason(VIP), "api_unreachable");
    // Under `announce` the dead proxy's site goes on as it was.
    two.lazaret.kill();
    two.daemon.wait("the limit is reached", || two.daemon.reason(VIP) == "api_unreachable");
    assert_eq!(lab.site_of(VIP), Some(2), "{}", two.logs());

    // A new process is warming first: nothing is announced before its destinations are judged.
    one.restart_lazaret();
    wait_site(&lab, &[&one, &two], Some(1));
    wait_served(&lab, &[&one, &two], "one-");
}

#[test]
fn a_vip_that_stood_there_before_the_start_goes_when_nothing_is_healthy() {
    if must_skip("a_vip_that_stood_there_before_the_start_goes_when_nothing_is_healthy") {
        return;
    }
    let lab = Lab::start();
    lab.sites[0].ip(&format!("addr add {VIP}/32 dev rhi0"));
    wait_site(&lab, &[], Some(1));
    let mut one = Site::start(&lab.sites[0], lab.folder.path(), "one", &rhi("withdraw"));
    wait_served(&lab, &[&one], "one-");
    assert_eq!(lab.site_of(VIP), Some(1), "{}", one.logs());
    one.kill_destinations();
    wait_site(&lab, &[&one], None);
    assert_eq!(lab.sites[0].addresses("rhi0"), Vec::<String>::new());
}

/// From the event "the last healthy destination is unhealthy" to the change of the route at the router.
#[test]
fn the_time_from_the_last_verdict_to_the_route_is_a_poll_interval() {
    if must_skip("the_time_from_the_last_verdict_to_the_route_is_a_poll_interval") {
        return;
    }
    let lab = Lab::start();
    let mut one = Site::start(&lab.sites[0], lab.folder.path(), "one", &rhi("withdraw"));
    let two = Site::start(&lab.sites[1], lab.folder.path(), "two", &rhi("withdraw"));
    wait_site(&lab, &[&one, &two], Some(1));
    two.daemon.wait("site 2 announces", || lab.sites[1].addresses("rhi0") == ["10.0.0.100/32"]);
    let events = EventWatch::start(&lab.sites[0]);
    let vip = VIP.parse().expect("an address");
    let (mut from_verdict, mut from_death) = (Vec::new(), Vec::new());
    for run in 0..20 {
        // Deaths fall on other places of the poll interval each time.
        std::thread::sleep(Duration::from_millis(run * 53 % 1000));
        let died = Instant::now();
        one.kill_destinations();
        let change = lab.routes.wait(vip, Some(hop(VIP, 2)), died, LIMIT);
        let verdict = events.both_unhealthy(died);
        let verdict = verdict.unwrap_or_else(|| panic!("the route moved without a verdict\n{}", one.logs()));
        from_verdict.push(change.at.duration_since(verdict).as_secs_f64() * 1e3);
        from_death.push(change.at.duration_since(died).as_secs_f64() * 1e3);
        let back = Instant::now();
        one.recover();
        lab.routes.wait(vip, Some(hop(VIP, 1)), back, LIMIT);
    }
    for (what, times) in [("last verdict", &mut from_verdict), ("kill -9", &mut from_death)] {
        times.sort_by(f64::total_cmp);
        println!(
            "{what} to route, 20 runs, 1 s polling: min {:.0} ms, median {:.0} ms, max {:.0} ms",
            times[0],
            (times[9] + times[10]) / 2.0,
            times[19]
        );
    }
    assert!(from_verdict[19] < 2000.0, "{from_verdict:?}");
}
