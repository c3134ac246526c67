//! `lazaret-rhi` stands still for longer than a poll may take, with a control API that answers meanwhile.
//!
//! Promise: what was answered is read before a poll counts as failed, so that a pause withdraws no VIP.

use std::time::Duration;

use end_to_end::netns::control_api::{ControlApi, Manner};
use end_to_end::netns::daemon::Daemon;
use end_to_end::netns::lab::Lab;
use end_to_end::netns::must_skip;
use end_to_end::process::poll;
use nix::sys::signal::Signal;

const VIP: &str = "10.0.0.100";
const LIMIT: Duration = Duration::from_secs(15);
const BODY: &str = "apisix_poll_interval: 1s\napisix_timeout: 1s\nfailure_policy: {control_api_unreachable: withdraw, \
                    max_failed_polls: 1}\nvips:\n  - {address: 10.0.0.100, upstreams: [/apisix/upstreams/api]}\n";

#[test]
fn a_daemon_that_stood_still_for_longer_than_a_poll_may_take_reads_what_was_answered() {
    if must_skip("a_daemon_that_stood_still_for_longer_than_a_poll_may_take_reads_what_was_answered") {
        return;
    }
    let lab = Lab::start();
    let api = ControlApi::start(&lab.sites[0]);
    api.set("api", &["healthy"]);
    // The first failed poll would withdraw the VIPs.
    let daemon = Daemon::start(&lab.sites[0], lab.folder.path(), "one", BODY);
    daemon.wait("announced", || lab.site_of(VIP) == Some(1));
    api.behave(Manner::Late(Duration::from_millis(500)));
    for _ in 0..3 {
        let polls = api.polls();
        assert!(poll(LIMIT, || api.polls() > polls), "polling stopped");
        daemon.process.signal(Signal::SIGSTOP);
        // Longer than `apisix_timeout`, with as much again for what is granted after it.
        std::thread::sleep(Duration::from_millis(2500));
        daemon.process.signal(Signal::SIGCONT);
    }
    let polls = api.polls();
    assert!(poll(LIMIT, || api.polls() >= polls + 2), "polling stopped");
    assert_eq!(daemon.reason(VIP), "healthy");
    let log = daemon.process.output();
    assert!(!log.contains("failed"), "a poll counts as failed:\n{log}");
}
