//! Route injection against a scripted control API: `lazaret-rhi` and BIRD at two sites, seen from the router.
//!
//! Promise: the route follows the health of a VIP's upstreams as the configuration says, whoever meddles with the
//! interface, and nothing is left behind.

use std::time::{Duration, Instant};

use end_to_end::netns::control_api::{ControlApi, Manner};
use end_to_end::netns::daemon::Daemon;
use end_to_end::netns::lab::{Lab, hop};
use end_to_end::netns::{Namespace, must_skip};
use end_to_end::process::poll;

const VIP: &str = "10.0.0.100";
const VIP6: &str = "fd00:0:0:64::100";
const LIMIT: Duration = Duration::from_secs(15);

/// An rhi.yaml with 1 s polling and two VIPs, v4 and v6, over `api`.
fn body(policy: &str, limit: u32) -> String {
    format!(
        "apisix_poll_interval: 1s\napisix_timeout: 1s\nfailure_policy: {{control_api_unreachable: {policy}, \
         max_failed_polls: {limit}}}\nvips:\n  - {{address: {VIP}, upstreams: [/apisix/upstreams/api]}}\n  - \
         {{address: \"{VIP6}\", upstreams: [/apisix/upstreams/api]}}\n"
    )
}

fn wait_site(lab: &Lab, daemons: &[&Daemon], vip: &str, site: Option<usize>) {
    if !poll(LIMIT, || lab.site_of(vip) == site) {
        let logs: Vec<String> = daemons.iter().map(|daemon| daemon.process.output()).collect();
        panic!("the route to {vip} is at {:?}, not at {site:?}\n{}", lab.site_of(vip), logs.join("\n----\n"));
    }
}

#[test]
fn the_route_moves_with_the_health_of_the_sites() {
    if must_skip("the_route_moves_with_the_health_of_the_sites") {
        return;
    }
    let lab = Lab::start();
    let apis = [ControlApi::start(&lab.sites[0]), ControlApi::start(&lab.sites[1])];
    for api in &apis {
        api.set("api", &["healthy", "healthy"]);
    }
    let mut one = Daemon::start(&lab.sites[0], lab.folder.path(), "one", &body("withdraw", 3));
    let mut two = Daemon::start(&lab.sites[1], lab.folder.path(), "two", &body("withdraw", 3));
    // CAP_NET_ADMIN is bit 12, and there is no other.
    assert_eq!(one.privileges(), ("65534".to_owned(), "0000000000001000".to_owned()));
    for vip in [VIP, VIP6] {
        wait_site(&lab, &[&one, &two], vip, Some(1));
    }

    apis[0].set("api", &["unhealthy", "healthy"]);
    let polls = apis[0].polls();
    assert!(poll(LIMIT, || apis[0].polls() >= polls + 2), "polling stopped");
    assert_eq!(lab.site_of(VIP), Some(1), "one healthy node is enough");

    apis[0].set("api", &["unhealthy", "mostly_unhealthy"]);
    for vip in [VIP, VIP6] {
        wait_site(&lab, &[&one, &two], vip, Some(2));
    }
    let (code, text) = one.ask(&["explain", VIP]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("withdrawn") && text.contains("all_unhealthy"), "{text}");

    apis[1].set("api", &["unhealthy", "unhealthy"]);
    for vip in [VIP, VIP6] {
        wait_site(&lab, &[&one, &two], vip, None);
    }
    apis[0].set("api", &["healthy", "unhealthy"]);
    wait_site(&lab, &[&one, &two], VIP, Some(1));
    apis[1].set("api", &["mostly_healthy"]);
    two.wait("site 2 announces again", || lab.sites[1].addresses("rhi0").len() == 2);

    for (daemon, site) in [(&mut one, 0), (&mut two, 1)] {
        daemon.process.signal(nix::sys::signal::Signal::SIGTERM);
        assert!(daemon.process.wait(Duration::from_secs(5)).success(), "{}", daemon.process.output());
        assert_eq!(lab.sites[site].addresses("rhi0"), Vec::<String>::new(), "left behind at site {}", site + 1);
    }
    wait_site(&lab, &[], VIP, None);
}

#[test]
fn an_unreachable_control_api_withdraws_or_freezes() {
    if must_skip("an_unreachable_control_api_withdraws_or_freezes") {
        return;
    }
    let lab = Lab::start();
    let apis = [ControlApi::start(&lab.sites[0]), ControlApi::start(&lab.sites[1])];
    apis[0].set("api", &["healthy"]);
    apis[1].set("api", &["healthy"]);
    let one = Daemon::start(&lab.sites[0], lab.folder.path(), "one", &body("withdraw", 3));
    let two = Daemon::start(&lab.sites[1], lab.folder.path(), "two", &body("announce", 2));
    wait_site(&lab, &[&one, &two], VIP, Some(1));

    // withdraw: held for two failed polls, gone with the third.
    let polls = apis[0].polls();
    apis[0].behave(Manner::HangsUp);
    wait_site(&lab, &[&one, &two], VIP, Some(2));
    assert!(apis[0].polls() >= polls + 3, "withdrawn after {} polls", apis[0].polls() - polls);
    assert_eq!(one.reason(VIP), "api_unreachable");
    apis[0].behave(Manner::Answers);
    wait_site(&lab, &[&one, &two], VIP, Some(1));

    // announce: what was up stays up and is put back, what was down stays down.
    apis[1].behave(Manner::Silent);
    two.wait("the limit is reached", || two.reason(VIP) == "api_unreachable");
    assert_eq!(lab.sites[1].addresses("rhi0").len(), 2);
    lab.sites[1].ip(&format!("addr del {VIP}/32 dev rhi0"));
    two.wait("the VIP is put back", || lab.sites[1].addresses("rhi0").len() == 2);
    apis[1].behave(Manner::Answers);
    apis[1].set("api", &["unhealthy"]);
    two.wait("the VIPs are withdrawn", || lab.sites[1].addresses("rhi0").is_empty());
    apis[1].behave(Manner::HangsUp);
    apis[1].set("api", &["healthy"]);
    two.wait("the limit is reached again", || two.reason(VIP) == "api_unreachable");
    assert_eq!(lab.sites[1].addresses("rhi0"), Vec::<String>::new(), "down stays down");
}

#[test]
fn conditions_all_and_any_join_upstreams() {
    if must_skip("conditions_all_and_any_join_upstreams") {
        return;
    }
    let lab = Lab::start();
    let api = ControlApi::start(&lab.sites[0]);
    api.set("auth", &["healthy"]);
    api.set("admin", &["healthy"]);
    let body = "apisix_poll_interval: 1s\nvips:\n  - {address: 10.0.0.101, upstreams: [/apisix/upstreams/auth, \
                /apisix/upstreams/admin], condition: all}\n  - {address: 10.0.0.102, upstreams: \
                [/apisix/upstreams/auth, /apisix/upstreams/admin], condition: any}\n";
    let daemon = Daemon::start(&lab.sites[0], lab.folder.path(), "one", body);
    for (auth, admin, all, any) in [
        ("healthy", "healthy", Some(1), Some(1)),
        ("unhealthy", "healthy", None, Some(1)),
        ("unhealthy", "unhealthy", None, None),
        ("healthy", "unhealthy", None, Some(1)),
        ("healthy", "healthy", Some(1), Some(1)),
    ] {
        api.set("auth", &[auth]);
        api.set("admin", &[admin]);
        wait_site(&lab, &[&daemon], "10.0.0.101", all);
        wait_site(&lab, &[&daemon], "10.0.0.102", any);
    }
}

#[test]
fn a_vip_put_there_by_hand_is_managed_and_other_addresses_are_not() {
    if must_skip("a_vip_put_there_by_hand_is_managed_and_other_addresses_are_not") {
        return;
    }
    let lab = Lab::start();
    let site = &lab.sites[0];
    let api = ControlApi::start(site);
    site.ip(&format!("addr add {VIP}/24 dev rhi0"));
    site.ip("addr add 10.0.0.7/32 dev rhi0");
    // Not judged yet: what was found stands, what was not found stays off.
    api.set("api", &["unknown"]);
    let mut daemon = Daemon::start(site, lab.folder.path(), "one", &body("withdraw", 3));
    wait_site(&lab, &[&daemon], VIP, Some(1));
    assert_eq!(daemon.reason(VIP), "warming");
    assert_eq!(lab.via(VIP6), None, "a VIP that was not up stays off");
    api.set("api", &["unhealthy"]);
    daemon.wait("the VIP leaves with every prefix", || site.addresses("rhi0") == ["10.0.0.7/32"]);
    api.set("api", &["healthy"]);
    wait_site(&lab, &[&daemon], VIP, Some(1));

    // A daemon that dies hard leaves its addresses; the next one knows them, also those it no longer has in its file.
    daemon.process.kill();
    assert_eq!(lab.site_of(VIP), Some(1));
    let only_v6 =
        body("withdraw", 3).replace(&format!("  - {{address: {VIP}, upstreams: [/apisix/upstreams/api]}}\n"), "");
    let mut daemon = Daemon::start(site, lab.folder.path(), "two", &only_v6);
    wait_site(&lab, &[&daemon], VIP, None);
    wait_site(&lab, &[&daemon], VIP6, Some(1));

    // A reload brings it back, and a bad file changes nothing.
    daemon.write(&body("withdraw", 3));
    assert_eq!(daemon.ask(&["reload"]).0, 0);
    wait_site(&lab, &[&daemon], VIP, Some(1));
    daemon.write("vips: []\n");
    assert_eq!(daemon.ask(&["reload"]).0, 3);
    assert_eq!(daemon.status().unwrap_or_default()["config_stale"], true);
    assert_eq!(lab.site_of(VIP), Some(1));

    daemon.process.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(daemon.process.wait(Duration::from_secs(5)).success());
    assert_eq!(site.addresses("rhi0"), ["10.0.0.7/32"]);
}

/// Stated time for a foreign change: well below a second, and a poll interval where the notification is lost.
const HEALED_WITHIN: Duration = Duration::from_secs(1);

fn healed(daemon: &Daemon, namespace: &Namespace, what: &str, wanted: &[&str]) {
    let start = Instant::now();
    assert!(
        poll(HEALED_WITHIN, || namespace.addresses("rhi0") == wanted),
        "{what}: {:?} instead of {wanted:?} after {HEALED_WITHIN:?}\n{}",
        namespace.addresses("rhi0"),
        daemon.process.output()
    );
    println!("{what}: {} ms", start.elapsed().as_millis());
}

#[test]
fn what_others_do_to_the_interface_heals() {
    if must_skip("what_others_do_to_the_interface_heals") {
        return;
    }
    let lab = Lab::start();
    let site = &lab.sites[0];
    let api = ControlApi::start(site);
    api.set("api", &["healthy"]);
    let mut daemon = Daemon::start(site, lab.folder.path(), "one", &body("withdraw", 3));
    let up = ["10.0.0.100/32", "fd00:0:0:64::100/128"];
    daemon.wait("both VIPs are up", || site.addresses("rhi0") == up);

    site.ip(&format!("addr del {VIP}/32 dev rhi0"));
    healed(&daemon, site, "deleted by hand", &up);
    site.ip(&format!("addr add {VIP}/24 dev rhi0"));
    healed(&daemon, site, "added with another prefix", &up);
    site.ip("link set rhi0 down");
    site.ip("link set rhi0 up");
    healed(&daemon, site, "link down and up", &up);
    wait_site(&lab, &[&daemon], VIP6, Some(1));
    site.ip("link del rhi0");
    daemon.wait("the route is gone with the interface", || lab.via(VIP).is_none());
    daemon.wait("the status tells that", || daemon.status().unwrap_or_default()["interface_present"] == false);
    site.ip("link add rhi0 type bridge");
    site.ip("link set rhi0 up");
    healed(&daemon, site, "interface deleted and made again", &up);
    wait_site(&lab, &[&daemon], VIP, Some(1));

    // The check fails while the interface is down, and is still failing when it comes up.
    site.ip("link set rhi0 down");
    api.set("api", &["unhealthy"]);
    daemon.wait("withdrawn while the link is down", || site.addresses("rhi0").is_empty());
    site.ip("link set rhi0 up");
    let polls = api.polls();
    assert!(poll(LIMIT, || api.polls() >= polls + 2), "polling stopped");
    assert_eq!((lab.via(VIP), lab.via(VIP6)), (None, None), "announced though it is sick");

    // The same while there is no interface at all.
    api.set("api", &["healthy"]);
    wait_site(&lab, &[&daemon], VIP, Some(1));
    site.ip("link del rhi0");
    api.set("api", &["unhealthy"]);
    daemon.wait("withdrawn by decision", || daemon.reason(VIP) == "all_unhealthy");
    site.ip("link add rhi0 type bridge");
    site.ip("link set rhi0 up");
    let polls = api.polls();
    assert!(poll(LIMIT, || api.polls() >= polls + 2), "polling stopped");
    assert_eq!(site.addresses("rhi0"), Vec::<String>::new());
    assert!(daemon.process.is_running());
}

#[test]
fn a_second_daemon_for_the_same_interface_refuses_to_start() {
    if must_skip("a_second_daemon_for_the_same_interface_refuses_to_start") {
        return;
    }
    let (namespace, other) = (Namespace::new("x"), Namespace::new("y"));
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    namespace.ip("link add rhi0 type bridge");
    let _first = Daemon::start(&namespace, folder.path(), "first", &body("withdraw", 3));
    let _elsewhere = Daemon::start(&other, folder.path(), "elsewhere", &body("withdraw", 3));
    let mut command = namespace.command(end_to_end::binaries::path("lazaret-rhi"));
    command.arg("run").arg("-c").arg(folder.path().join("first").join("rhi.yaml"));
    let output = command.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("already manages interface rhi0"), "{said}");
}

/// main_log takes every line, error_log warnings and errors once more; both survive rotation; one that cannot be opened
/// stops the start.
#[test]
fn logs_are_written_twice_and_reopened() {
    if must_skip("logs_are_written_twice_and_reopened") {
        return;
    }
    let namespace = Namespace::new("x");
    namespace.ip("link add rhi0 type bridge");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
    let home = folder.path().join("one");
    let (main, error) = (home.join("main.log"), home.join("error.log"));
    let body = format!("main_log: {}\nerror_log: {}\n{}", main.display(), error.display(), body("withdraw", 2));
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap_or_default();
    let mut daemon = Daemon::start(&namespace, folder.path(), "one", &body);
    daemon.wait("an error in both", || read(&error).contains("polls failed in a row"));
    assert!(read(&main).contains("polls failed in a row") && read(&main).contains("first cycle complete"));
    assert!(!read(&error).contains("first cycle complete"), "{}", read(&error));

    for (path, signal) in [(&main, nix::sys::signal::Signal::SIGUSR1), (&error, nix::sys::signal::Signal::SIGHUP)] {
        std::fs::rename(path, path.with_extension("old")).expect("the folder is ours");
        daemon.process.signal(signal);
        daemon.wait("the log is there again", || path.exists());
    }
    // Stopping writes a line, and it goes to the new file.
    daemon.process.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(daemon.process.wait(Duration::from_secs(5)).success());
    assert!(read(&main).contains("stopping"), "{}", read(&main));

    let config = home.join("rhi.yaml");
    std::fs::write(&config, std::fs::read_to_string(&config).expect("ours").replace("main.log", "nowhere/main.log"))
        .expect("the folder is ours");
    let mut command = namespace.command(end_to_end::binaries::path("lazaret-rhi"));
    let output = command.arg("run").arg("-c").arg(&config).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("nowhere/main.log") && said.contains("rhi.yaml:"), "{said}");
}

/// Many VIPs that fall and rise together: none is left behind, none is missing, each change is made once. Five rounds;
/// fifty with LAZARET_LONG=1.
#[test]
fn twelve_vips_fall_and_rise_together() {
    if must_skip("twelve_vips_fall_and_rise_together") {
        return;
    }
    let lab = Lab::start();
    let site = &lab.sites[0];
    let api = ControlApi::start(site);
    let vips: Vec<String> = (1..=6).flat_map(|n| [format!("10.0.0.{n}"), format!("fd00:0:0:64::{n}")]).collect();
    let mut body = "apisix_poll_interval: 1s\nvips:\n".to_owned();
    for (number, vip) in vips.iter().enumerate() {
        api.set(&format!("u{number}"), &["healthy"]);
        body.push_str(&format!("  - {{address: \"{vip}\", upstreams: [/apisix/upstreams/u{number}]}}\n"));
    }
    let daemon = Daemon::start(site, lab.folder.path(), "one", &body);
    let rounds = if std::env::var_os("LAZARET_LONG").is_some_and(|value| value == "1") { 50 } else { 5 };
    for round in 0..rounds {
        for (state, count) in [("healthy", 12), ("unhealthy", 0)] {
            for number in 0..vips.len() {
                api.set(&format!("u{number}"), &[state]);
            }
            daemon.wait(&format!("round {round}: {count} VIPs"), || site.addresses("rhi0").len() == count);
        }
    }
    for vip in &vips {
        wait_site(&lab, &[&daemon], vip, None);
    }
    let log = daemon.process.output();
    assert_eq!(log.matches("added ").count(), rounds * vips.len(), "{log}");
    assert_eq!(log.matches("removed ").count(), rounds * vips.len(), "{log}");
}

/// From the moment the control API shows the last node unhealthy to the change of the route at the router.
#[test]
fn the_time_from_verdict_to_route_is_a_poll_interval() {
    if must_skip("the_time_from_verdict_to_route_is_a_poll_interval") {
        return;
    }
    let lab = Lab::start();
    let apis = [ControlApi::start(&lab.sites[0]), ControlApi::start(&lab.sites[1])];
    for api in &apis {
        api.set("api", &["healthy"]);
    }
    let one = Daemon::start(&lab.sites[0], lab.folder.path(), "one", &body("withdraw", 3));
    let two = Daemon::start(&lab.sites[1], lab.folder.path(), "two", &body("withdraw", 3));
    wait_site(&lab, &[&one, &two], VIP, Some(1));
    two.wait("site 2 announces", || lab.sites[1].addresses("rhi0").len() == 2);
    let vip = VIP.parse().expect("an address");
    let mut times = Vec::new();
    for run in 0..20 {
        // Spread over the interval, as failures are.
        std::thread::sleep(Duration::from_millis(run * 53 % 1000));
        let at = apis[0].set("api", &["unhealthy"]);
        let change = lab.routes.wait(vip, Some(hop(VIP, 2)), at, LIMIT);
        times.push(change.at.duration_since(at).as_secs_f64() * 1e3);
        let at = apis[0].set("api", &["healthy"]);
        lab.routes.wait(vip, Some(hop(VIP, 1)), at, LIMIT);
    }
    times.sort_by(f64::total_cmp);
    println!(
        "verdict to route, 20 runs, 1 s polling: min {:.1} ms, median {:.1} ms, max {:.1} ms",
        times[0],
        (times[9] + times[10]) / 2.0,
        times[19]
    );
    assert!(times[19] < 2000.0, "{times:?}");
}
