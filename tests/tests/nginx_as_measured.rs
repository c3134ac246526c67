//! nginx's passive checks as they are for real, beside the lab's contestant, by the same scenario: what this project says of
//! nginx stands on these.
//!
//! With times shorter than those of the original experiments; nginx measures in whole seconds and waits for more than
//! `fail_timeout`. Between its servers it draws, and so does the lab: where a figure hangs on those draws, the real run is one
//! more of what the lab's runs are, and is held against all of them; what a rule says does not hang on them and has to be so in
//! each run of both.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use end_to_end::twin::{Twin, hold, log, nginx, twins};
use lab::policy::{Policy, Standing};
use model::time::Timestamp;
use twins::seen::Figures;

/// What a test runs.
struct AtNginx<'a> {
    name: &'a str,
    max_fails: u32,
    fail_timeout: u32,
    text: &'a str,
    logs: &'a dyn Fn(&str) -> String,
    /// Of the lab.
    runs: u64,
}

impl AtNginx<'_> {
    /// Runs the scenario at nginx, where there is one.
    fn holds(&self, judge: impl Fn(&Twin) -> anyhow::Result<()>) {
        if let Some(what) = end_to_end::nginx::lacking() {
            testkit::skip(self.name, what);
            return;
        }
        let run = || twins(self.text, self.logs, &[nginx(self.max_fails, self.fail_timeout)], self.runs);
        hold(self.name, run, |both| both.iter().try_for_each(&judge));
    }
}

fn no_log(name: &str) -> String {
    panic!("there is no log {name}")
}

/// Two destinations, of which `b` answers 503 to a share of what it gets from 1 s on.
fn pair(duration: u32, arrivals: &str, share: f64) -> String {
    format!(
        "version: 1\ntitle: pair\nduration: {duration}s\n\
         destinations: [{{ids: [a, b], service: {{constant: 2ms}}, on_full: {{status: 503}}}}]\n\
         traffic: [{{arrivals: {arrivals}}}]\n\
         faults: [{{kind: errors, on: [b], at: 1s, share: {share}, status: 503}}]\n"
    )
}

fn met(figures: &Figures) -> f64 {
    figures.absences.first().expect("there is a fault").met
}

fn both(twin: &Twin) -> String {
    format!("{:?} {:?}", twin.predicted, twin.measured)
}

/// The last one that came before there was none for three seconds.
fn last_before_silence(arrivals: &[Timestamp]) -> Option<Timestamp> {
    let gap = arrivals.windows(2).find(|pair| pair[1].since(pair[0]) > Duration::from_secs(3)).map(|pair| pair[0]);
    gap.or_else(|| arrivals.last().copied().filter(|last| *last < Timestamp::from_secs(11)))
}

/// Requests at even distances of 25 ms, longer than any of them takes: none is on its way while another one fails.
fn one_by_one(seconds: u64) -> impl Fn(&str) -> String {
    move |_| log((0..seconds * 40).map(|n| (n * 25, "GET")))
}

#[test]
fn nginx_ejects_a_failing_server_at_its_fifth_failure() {
    let name = "nginx_ejects_a_failing_server_at_its_fifth_failure";
    let (text, logs) = (pair(9, LOG, 1.0), one_by_one(9));
    AtNginx { name, max_fails: 5, fail_timeout: 10, text: &text, logs: &logs, runs: 20 }.holds(|twin| {
        twin.in_both(|_, figures| {
            ensure!(met(figures) == 5.0, "{figures:?}");
            Ok(())
        })?;
        ensure!(twin.measured.failures == 0.0, "the other server has each answer: {}", both(twin));
        Ok(())
    });
}

#[test]
fn nginx_tries_a_server_that_is_out_with_one_request_one_second_after_fail_timeout() {
    let name = "nginx_tries_a_server_that_is_out_with_one_request_one_second_after_fail_timeout";
    let (text, logs) = (pair(13, LOG, 1.0), one_by_one(13));
    AtNginx { name, max_fails: 1, fail_timeout: 2, text: &text, logs: &logs, runs: 20 }.holds(|twin| {
        let at_b = twin.seen.arrivals[1].iter().map(|at| at.as_secs_f64());
        let tries: Vec<f64> = at_b.filter(|at| *at >= 1.0).collect();
        let gaps: Vec<f64> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
        ensure!(gaps.len() >= 3 && gaps.iter().skip(1).all(|gap| (2.8..3.3).contains(gap)), "{tries:?}");
        twin.is_a_draw("what came to it", 1.0, |figures| Some(met(figures)))
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
    AtNginx { name, max_fails: 3, fail_timeout: 4, text, logs: &requests, runs: 5 }.holds(|twin| {
        // One request at each moment, and all of the 4 to 5 s after the third.
        for figures in [&twin.predicted, &twin.measured] {
            ensure!((20.0..=29.0).contains(&figures.failures), "{}", both(twin));
        }
        Ok(())
    });
}

#[test]
fn failures_further_apart_than_fail_timeout_are_forgiven_by_nginx() {
    // Each five seconds both refuse for a moment: two failures are too many, and never come within three seconds.
    let text = "version: 1\ntitle: forgiven\nduration: 15s\n\
                destinations: [{ids: [a, b], service: {constant: 2ms}, on_full: {status: 503}}]\n\
                traffic: [{arrivals: log, file: requests}]\n\
                faults: [{kind: refuse, on: [a, b], at: 910ms, lasts: 180ms, every: 5s, until: 12s}]\n";
    let requests = |_: &str| log((0..75).map(|n| (n * 200, "GET")));
    let name = "failures_further_apart_than_fail_timeout_are_forgiven_by_nginx";
    AtNginx { name, max_fails: 2, fail_timeout: 2, text, logs: &requests, runs: 5 }.holds(|twin| {
        twin.in_both(|_, figures| {
            ensure!(figures.failures == 3.0, "{figures:?}");
            Ok(())
        })
    });
}

#[test]
fn one_per_cent_of_errors_ejects_a_busy_server_of_nginx_within_seconds() {
    let name = "one_per_cent_of_errors_ejects_a_busy_server_of_nginx_within_seconds";
    let text = pair(14, "poisson, rate: 400/s", 0.01);
    let out = |figures: &Figures| figures.absences.first().and_then(|absence| absence.out);
    let (max_fails, fail_timeout) = NGINX_3;
    AtNginx { name, max_fails, fail_timeout, text: &text, logs: &no_log, runs: 60 }.holds(|twin| {
        twin.in_both(|seen, figures| {
            let gone = last_before_silence(&seen.arrivals[1]).context("it is not ejected")?;
            let last = seen.spoilt[1].get(max_fails as usize - 1).filter(|last| **last <= gone);
            let last = last.with_context(|| format!("it is ejected for less: {gone:?}, {:?}", seen.spoilt[1]))?;
            let later = seen.arrivals[1].iter().filter(|at| *at > last && **at <= gone).count();
            ensure!(later <= ON_THEIR_WAY, "it is not ejected for that: {gone:?}, {:?}", seen.spoilt[1]);
            ensure!(met(figures) > 100.0, "nearly all of what it got was answered well: {figures:?}");
            Ok(())
        })?;
        twin.is_a_draw("when it is ejected", 2.0, out)
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
    AtNginx { name, max_fails: 5, fail_timeout: 4, text, logs: &no_log, runs: 5 }.holds(|twin| {
        twin.in_both(|_, figures| {
            let back = figures.absences.first().and_then(|absence| absence.back);
            let back = back.with_context(|| format!("it is ejected and returns: {figures:?}"))?;
            ensure!((3.7..5.3).contains(&back), "{figures:?}");
            Ok(())
        })
    });
}

#[test]
fn posts_that_are_not_repeated_revive_a_failing_server_of_nginx() {
    let text = pair(14, LOG, 1.0);
    let requests = |_: &str| {
        let gets = (0..60).map(|n| (n * 50, "GET"));
        log(gets.chain((0..80).map(|n| (7_000 + n * 50, "POST"))))
    };
    let name = "posts_that_are_not_repeated_revive_a_failing_server_of_nginx";
    AtNginx { name, max_fails: 2, fail_timeout: 3, text: &text, logs: &requests, runs: 20 }.holds(|twin| {
        // Half of the 80 posts meet it, by a draw each: the first of them looked like a success. More than 20 from the middle are
        // one draw in a hundred thousand.
        twin.in_both(|_, figures| {
            ensure!((20.0..=60.0).contains(&figures.failures), "{figures:?}");
            Ok(())
        })
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
    AtNginx { name, max_fails: 1, fail_timeout: 4, text, logs: &requests, runs: 20 }.holds(|twin| {
        let late = |at: &&Timestamp| **at >= Timestamp::from_secs(11);
        let met = twin.seen.arrivals[1].iter().filter(late).count();
        ensure!(met >= 8, "{met} came to it, though it has answered nothing since half a second");
        ensure!(twin.measured.failures >= 8.0, "{}", both(twin));
        twin.is_a_draw("failures", 3.0, |figures| Some(figures.failures))
    });
}

/// Failures and seconds of the lab's `nginx_3`.
const NGINX_3: (u32, u32) = (3, 10);

/// Arrivals that come from a file.
const LOG: &str = "log, file: requests";

/// What may come to a server between the request that ejects it and that one's answer: at 200/s a tenth of a second.
const ON_THEIR_WAY: usize = 20;
