//! nginx's passive checks as they are for real, beside the lab's contestant, by the same scenario: what this project says of
//! nginx stands on these.
//!
//! With times shorter than those of the original experiments; nginx measures in whole seconds and waits for more than
//! `fail_timeout`.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use end_to_end::twin::{Twin, hold, log, nginx, twins};
use lab::policy::{Policy, Standing};
use twins::seen::Figures;

/// What a test runs.
struct AtNginx<'a> {
    name: &'a str,
    max_fails: u32,
    fail_timeout: u32,
    text: &'a str,
    logs: &'a dyn Fn(&str) -> String,
}

impl AtNginx<'_> {
    /// Runs the scenario at nginx, where there is one.
    fn holds(&self, judge: impl Fn(&Twin) -> anyhow::Result<()>) {
        if let Some(what) = end_to_end::nginx::lacking() {
            testkit::skip(self.name, what);
            return;
        }
        let run = || twins(self.text, self.logs, &[nginx(self.max_fails, self.fail_timeout)], 5);
        hold(self.name, run, |both| both.iter().try_for_each(&judge));
    }
}

fn no_log(name: &str) -> String {
    panic!("there is no log {name}")
}

/// Two destinations, of which `b` answers 503 to a share of what it gets from 1 s on.
fn pair(duration: u32, rate: u32, share: f64) -> String {
    format!(
        "version: 1\ntitle: pair\nduration: {duration}s\n\
         destinations: [{{ids: [a, b], service: {{constant: 2ms}}, on_full: {{status: 503}}}}]\n\
         traffic: [{{arrivals: poisson, rate: {rate}/s}}]\n\
         faults: [{{kind: errors, on: [b], at: 1s, share: {share}, status: 503}}]\n"
    )
}

fn met(figures: &Figures) -> f64 {
    figures.absences.first().expect("there is a fault").met
}

fn both(twin: &Twin) -> String {
    format!("{:?} {:?}", twin.predicted, twin.measured)
}

#[test]
fn nginx_ejects_a_failing_server_at_its_fifth_failure() {
    let name = "nginx_ejects_a_failing_server_at_its_fifth_failure";
    let text = pair(9, 40, 1.0);
    AtNginx { name, max_fails: 5, fail_timeout: 10, text: &text, logs: &no_log }.holds(|twin| {
        ensure!((met(&twin.predicted), met(&twin.measured)) == (5.0, 5.0), "{}", both(twin));
        ensure!(twin.measured.failures == 0.0, "the other server has each answer: {}", both(twin));
        Ok(())
    });
}

#[test]
fn nginx_tries_a_server_that_is_out_with_one_request_one_second_after_fail_timeout() {
    let name = "nginx_tries_a_server_that_is_out_with_one_request_one_second_after_fail_timeout";
    let text = pair(13, 40, 1.0);
    AtNginx { name, max_fails: 1, fail_timeout: 2, text: &text, logs: &no_log }.holds(|twin| {
        let at_b = twin.seen.arrivals[1].iter().map(|at| at.as_secs_f64());
        let tries: Vec<f64> = at_b.filter(|at| *at >= 1.0).collect();
        let gaps: Vec<f64> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
        ensure!(gaps.len() >= 3 && gaps.iter().skip(1).all(|gap| (2.8..3.3).contains(gap)), "{tries:?}");
        ensure!((met(&twin.predicted) - met(&twin.measured)).abs() <= 1.0, "{:?} {tries:?}", twin.predicted);
        Ok(())
    });
}

#[test]
fn the_fail_timeout_of_nginx_is_a_gap_between_failures_and_no_window() {
    // Each three seconds both refuse for a moment: never more than two failures in four seconds, and three are too many.
    let text = "version: 1\ntitle: gap\nduration: 15s\n\
                destinations: [{ids: [a, b], service: {constant: 2ms}, on_full: {status: 503}}]\n\
                traffic: [{arrivals: log, file: requests}]\n\
                faults: [{kind: refuse, on: [a, b], at: 910ms, lasts: 180ms, every: 3s, until: 9s}]\n";
    let requests = |_: &str| log((0..75).map(|n| (n * 200, "GET")));
    let name = "the_fail_timeout_of_nginx_is_a_gap_between_failures_and_no_window";
    AtNginx { name, max_fails: 3, fail_timeout: 4, text, logs: &requests }.holds(|twin| {
        // One request at each moment, and all of the 4 to 5 s after the third.
        for figures in [&twin.predicted, &twin.measured] {
            ensure!((20.0..=29.0).contains(&figures.failures), "{}", both(twin));
        }
        Ok(())
    });
}

#[test]
fn one_per_cent_of_errors_ejects_a_busy_server_of_nginx_within_seconds() {
    let name = "one_per_cent_of_errors_ejects_a_busy_server_of_nginx_within_seconds";
    let text = pair(14, 400, 0.01);
    let out = |figures: &Figures| figures.absences.first().and_then(|absence| absence.out).context("it is not ejected");
    let (max_fails, fail_timeout) = NGINX_3;
    AtNginx { name, max_fails, fail_timeout, text: &text, logs: &no_log }.holds(|twin| {
        ensure!((out(&twin.predicted)? - out(&twin.measured)?).abs() < 1.0, "{}", both(twin));
        ensure!(met(&twin.measured) > 100.0, "nearly all of what it got was answered well: {}", both(twin));
        Ok(())
    });
}

/// The lab calls it by nginx's name, and no model, because of the test above.
#[test]
fn nginx_3_of_the_lab_is_what_runs_here() {
    let here = nginx(NGINX_3.0, NGINX_3.1).policy;
    assert!(Policy::find("nginx_3").is_ok_and(|policy| policy.plays_as(&here)));
    assert_eq!(here.standing(), Standing::Twinned);
}

#[test]
fn a_pause_of_300_ms_costs_nginx_a_server_for_its_fail_timeout() {
    let text = "version: 1\ntitle: pause\nduration: 12s\ntimeouts: {response: 100ms}\n\
                destinations: [{ids: [a, b], service: {constant: 2ms}, on_full: {status: 503}}]\n\
                traffic: [{arrivals: poisson, rate: 400/s}]\n\
                faults: [{kind: pause, on: [b], at: 3s, lasts: 300ms}]\n";
    let name = "a_pause_of_300_ms_costs_nginx_a_server_for_its_fail_timeout";
    AtNginx { name, max_fails: 5, fail_timeout: 4, text, logs: &no_log }.holds(|twin| {
        for figures in [&twin.predicted, &twin.measured] {
            let back = figures.absences.first().and_then(|absence| absence.back);
            let back = back.with_context(|| format!("it is ejected and returns: {}", both(twin)))?;
            ensure!((3.7..5.3).contains(&back), "{figures:?}");
        }
        Ok(())
    });
}

#[test]
fn posts_that_are_not_repeated_revive_a_failing_server_of_nginx() {
    let text = pair(14, 1, 1.0).replace("arrivals: poisson, rate: 1/s", "arrivals: log, file: requests");
    let requests = |_: &str| {
        let gets = (0..60).map(|n| (n * 50, "GET"));
        log(gets.chain((0..80).map(|n| (7_000 + n * 50, "POST"))))
    };
    let name = "posts_that_are_not_repeated_revive_a_failing_server_of_nginx";
    AtNginx { name, max_fails: 2, fail_timeout: 3, text: &text, logs: &requests }.holds(|twin| {
        // Half of the posts meet it: the first of them looked like a success.
        for figures in [&twin.predicted, &twin.measured] {
            ensure!((25.0..=55.0).contains(&figures.failures), "{}", both(twin));
        }
        Ok(())
    });
}

#[test]
fn clients_that_give_up_revive_a_hanging_server_of_nginx() {
    let text = "version: 1\ntitle: hang\nduration: 20s\ntimeouts: {response: 1s}\n\
                destinations: [{ids: [a, b], service: {constant: 2ms}, on_full: {status: 503}}]\n\
                traffic: [{arrivals: log, file: early, patience: 10s}, {arrivals: log, file: late, patience: 300ms}]\n\
                faults: [{kind: hang, on: [b], at: 500ms}]\n";
    let requests = |name: &str| match name {
        "early" => log((0..50).map(|n| (n * 100, "GET"))),
        _ => log(std::iter::once((0, "GET")).chain((0..60).map(|n| (11_000 + n * 100, "GET")))),
    };
    let name = "clients_that_give_up_revive_a_hanging_server_of_nginx";
    AtNginx { name, max_fails: 1, fail_timeout: 4, text, logs: &requests }.holds(|twin| {
        let late = |at: &&model::time::Timestamp| **at >= model::time::Timestamp::ZERO + Duration::from_secs(11);
        let met = twin.seen.arrivals[1].iter().filter(late).count();
        ensure!(met >= 8, "{met} came to it, though it has answered nothing since half a second");
        let close = (twin.predicted.failures - twin.measured.failures).abs() <= (twin.measured.failures * 0.2).max(5.0);
        ensure!(close && twin.measured.failures >= 8.0, "{}", both(twin));
        Ok(())
    });
}

/// Failures and seconds of the lab's `nginx_3`.
const NGINX_3: (u32, u32) = (3, 10);
