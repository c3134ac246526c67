//! What was measured of other products comes out of the lab, too: nginx 1.22 by experiment, YARP 2.3 by its arithmetic.

use lab::chance::Chance;
use lab::policy::Policy;
use model::time::Timestamp;

use crate::support::{log, read, run};

/// `b` answers 503 to everything from `at` on, `a` is well; so each request that came to `b` is one more attempt.
fn pair(duration: &str, rate: &str, at: &str) -> String {
    format!(
        "version: 1\ntitle: pair\nduration: {duration}\n\
         destinations: [{{ids: [a, b], service: {{constant: 1ms}}}}]\n\
         traffic: [{{arrivals: poisson, rate: {rate}}}]\n\
         faults: [{{kind: errors, on: [b], at: {at}, share: 1, status: 503}}]\n"
    )
}

fn hits(text: &str, policy: &str) -> f64 {
    let figures = run(&read(text), policy, 1);
    (figures.extra_load * figures.requests as f64).round()
}

#[test]
fn nginx_ejects_at_max_fails_at_once_and_tries_one_request_a_second_after_fail_timeout() {
    assert_eq!(hits(&pair("9s", "20/s", "0s"), "nginx:5/10s"), 5.0);
    // One each seven seconds after the first.
    let tried = hits(&pair("62s", "20/s", "0s"), "nginx:1/6s");
    assert!((8.0..=10.0).contains(&tried), "{tried}");
}

#[test]
fn the_fail_timeout_of_nginx_is_a_gap_and_no_window() {
    // Once in three seconds both refuse for a moment: never more than two failures in four seconds.
    let text = "version: 1\ntitle: gap\nduration: 11s\n\
                destinations: [{ids: [a, b], service: {constant: 1ms}}]\n\
                traffic: [{arrivals: log, file: requests}]\n\
                faults: [{kind: refuse, on: [a, b], at: 95ms, lasts: 10ms, every: 3s}]\n";
    let requests: Vec<(u64, &str)> = (0..110).map(|n| (n * 100, "GET")).collect();
    let scenario = lab::scenario::read(text, &|_| Ok(log(&requests))).unwrap();
    // At the third one both are out, and all requests fail until five seconds later.
    let nginx = run(&scenario, "nginx:3/4s", 1);
    assert!((45..=52).contains(&nginx.failures), "{nginx:?}");
    assert_eq!(run(&scenario, "passive:{name: MaxFails, max_fails: 3, fail_timeout: 4s}", 1).failures, 4);
}

#[test]
fn one_per_cent_of_errors_keeps_a_busy_server_out_for_most_of_the_time() {
    let text = pair("120s", "400/s", "0s").replace("share: 1,", "share: 0.01, truth: healthy,");
    let figures = run(&read(&text), "nginx_3", 1);
    // Half of the time of both: `a` is well.
    assert!((0.38..0.5).contains(&figures.lost_share), "{figures:?}");
}

#[test]
fn a_pause_of_300_ms_costs_nginx_a_server_for_ten_seconds() {
    let text = "version: 1\ntitle: pause\nduration: 40s\ntimeouts: {response: 100ms}\n\
                destinations: [{ids: [a, b], service: {constant: 1ms}}]\n\
                traffic: [{arrivals: poisson, rate: 400/s}]\n\
                faults: [{kind: pause, on: [b], at: 20s, lasts: 300ms}]\n";
    let figures = run(&read(text), "nginx:5/10s", 1);
    assert_eq!(figures.ejections, 1.0);
    assert!((9.9..11.6).contains(&figures.lost), "{figures:?}");
}

#[test]
fn a_post_that_is_not_repeated_revives_a_dead_server_of_nginx() {
    // Ejected by GETs, then POSTs alone: each 503 passes, so half of them meet it.
    let gets = (0..40).map(|n| (n * 50, "GET"));
    let posts = (0..200).map(|n| (14_000 + n * 50, "POST"));
    let requests: Vec<(u64, &str)> = gets.chain(posts).collect();
    let text = pair("30s", "1/s", "0s").replace("arrivals: poisson, rate: 1/s", "arrivals: log, file: requests");
    let scenario = lab::scenario::read(&text, &|_| Ok(log(&requests))).unwrap();
    let nginx = run(&scenario, "nginx:2/10s", 1);
    assert!((70..=130).contains(&nginx.failures), "{nginx:?}");
    // What counts each attempt keeps it out.
    let sliding = run(&scenario, "passive:{name: MaxFails, max_fails: 2, fail_timeout: 10s}", 1);
    assert!(sliding.failures < 10, "{sliding:?}");
}

#[test]
fn a_client_that_gives_up_revives_a_hanging_server_of_nginx() {
    let requests: Vec<(u64, &str)> = (0..100).map(|n| (n * 100, "GET")).collect();
    let late: Vec<(u64, &str)> = (0..100).map(|n| (n * 100, "GET")).collect();
    let text = "version: 1\ntitle: hang\nduration: 60s\ntimeouts: {response: 2s}\n\
                destinations: [{ids: [a, b], service: {constant: 1ms}}]\n\
                traffic: [{arrivals: log, file: early, patience: 10s}, {arrivals: log, file: late, patience: 300ms}]\n\
                faults: [{kind: hang, on: [b], at: 0s}]\n";
    let late: Vec<(u64, &str)> =
        std::iter::once((0, "GET")).chain(late.iter().map(|(at, m)| (at + 30_000, *m))).collect();
    let scenario = lab::scenario::read(text, &|name| Ok(log(if name == "early" { &requests } else { &late }))).unwrap();
    let nginx = run(&scenario, "nginx:1/10s", 1);
    // A good part of the second hundred gives up: the server that hangs is in again, and those that wait there make it look
    // busier than the other one.
    assert!((15..=70).contains(&nginx.failures), "{nginx:?}");
    let sliding = run(&scenario, "passive:{name: MaxFails, max_fails: 1, fail_timeout: 60s}", 1);
    assert!(sliding.failures < 10, "{sliding:?}");
}

#[test]
fn yarp_ejects_a_healed_server_once_more_by_what_it_remembers() {
    // All fail from 1 s to 21 s: out at the tenth failure, back after sixty seconds, and out again with the first
    // request, since the last second's failures were stamped with its end; back for good after two minutes.
    let text = "version: 1\ntitle: yarp\nduration: 200s\nretry: {attempts: 1}\n\
                destinations: [{ids: [a, b], service: {constant: 1ms}}]\n\
                traffic: [{arrivals: poisson, rate: 40/s}]\n\
                faults: [{kind: refuse, on: [b], at: 1s, lasts: 20s}]\n";
    let figures = run(&read(text), "yarp", 1);
    assert_eq!(figures.ejections, 2.0, "{figures:?}");
    // From 21 s, when it is well again, to 121.5 s.
    assert!((99.0..102.0).contains(&figures.lost), "{figures:?}");
}

/// Requests that came to `b`.
fn met(text: &str, policy: &str) -> usize {
    let trace = lab::trace(&read(text), &Policy::find(policy).unwrap(), Chance::new(1)).unwrap();
    trace.arrivals[1].len()
}

#[test]
fn the_two_choices_of_haproxy_may_be_the_same_so_a_busy_server_gets_a_ninth() {
    let text = "version: 1\ntitle: busy\nduration: 20s\n\
                destinations: [{ids: [a, b, c], service: {constant: 1ms}}]\n\
                traffic: [{arrivals: poisson, rate: 180/s}]\n\
                faults: [{kind: hang, on: [b], at: 0s}]\n";
    // Without checks it does nothing; so nobody is ever out.
    let (haproxy, distinct) = (met(text, "haproxy"), met(text, "keep"));
    assert!((340..=460).contains(&haproxy), "{haproxy} of 3600");
    assert!(distinct < 10, "{distinct}");
}

#[test]
fn a_trace_tells_attempts_at_a_dead_process_from_requests_that_came_and_no_probes() {
    let trace = |rate: &str, policy: &str| {
        let text = format!(
            "version: 1\ntitle: dead\nduration: 20s\nchecks: {{interval: 100ms, timeout: 1s}}\n\
             destinations: [{{ids: [a, b], service: {{constant: 1ms}}}}]\n\
             traffic: [{{arrivals: poisson, rate: {rate}}}]\n\
             faults: [{{kind: crash, on: [b], at: 5s, lasts: 10s}}]\n"
        );
        lab::trace(&read(&text), &Policy::find(policy).unwrap(), Chance::new(1)).unwrap()
    };
    let is_dead = |at: &&Timestamp| (5.0..15.0).contains(&at.as_secs_f64());
    // Nobody takes it out: half of 600 requests are tried there first.
    let kept = trace("60/s", "keep");
    assert!((250..=420).contains(&kept.refusals[1].len()), "{}", kept.refusals[1].len());
    assert!(kept.refusals[1].iter().all(|at| is_dead(&at)) && kept.refusals[0].is_empty());
    assert_eq!(kept.arrivals[1].iter().filter(is_dead).count(), 0);
    // A hundred probes are refused, and next to no request.
    let probed = trace("1/s", "active");
    assert!(probed.refusals[1].len() <= 2, "{}", probed.refusals[1].len());
}

#[test]
fn haproxy_observes_no_response_that_it_repeats() {
    let checked = |text: String| text.replace("traffic:", "checks: {interval: 2s, timeout: 1s}\ntraffic:");
    let gets = checked(pair("20s", "60/s", "5s"));
    let posts = gets.replace("rate: 60/s", "rate: 60/s, methods: {POST: 1}");
    // 30 errors a second and never one that counts; none can be repeated, and all count.
    assert!(met(&gets, "haproxy_mark_down") > 550, "{}", met(&gets, "haproxy_mark_down"));
    assert!(met(&posts, "haproxy_mark_down") < 400, "{}", met(&posts, "haproxy_mark_down"));
}

#[test]
fn envoy_tries_a_host_again_when_all_others_are_out() {
    // `c` has been ejected, and both others fail half of the time: a third try halves what is left.
    let text = "version: 1\ntitle: again\nduration: 25s\nwarm_up: 5s\n\
                destinations: [{ids: [a, b, c], service: {constant: 1ms}}]\n\
                traffic: [{arrivals: poisson, rate: 100/s}]\n\
                faults:\n\
                - {kind: errors, on: [c], at: 0s, share: 1, status: 503}\n\
                - {kind: errors, on: [a, b], at: 5s, share: 0.2, status: 503}\n";
    let envoy = run(&read(text), "envoy_consecutive_5", 1);
    let share = envoy.failures as f64 / envoy.requests as f64;
    assert!((0.002..0.02).contains(&share), "0.8 % fail three times, 4 % twice: {envoy:?}");
}
