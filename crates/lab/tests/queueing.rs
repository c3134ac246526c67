//! Twins of what queueing theory knows: the simulated destinations wait as long as formulas say.

use lab::compare::Estimate;

use crate::support::{read, run};

fn single(service: &str, rate: &str, concurrency: u32, backlog: u32) -> String {
    format!(
        "version: 1\ntitle: one queue\nduration: 300s\nwarm_up: 10s\nproxies: {{round_trip: 0s}}\nretry: {{attempts: 1}}\n\
         timeouts: {{response: 100s}}\n\
         destinations: [{{ids: [a], service: {{{service}}}, concurrency: {concurrency}, backlog: {backlog}}}]\n\
         traffic: [{{arrivals: poisson, rate: {rate}, patience: 100s}}]\n"
    )
}

/// Over seeds: the mean time, and the share that was not served.
fn measured(text: &str) -> (Estimate, Estimate) {
    let scenario = read(text);
    let figures: Vec<_> = (1..=12).map(|seed| run(&scenario, "keep", seed)).collect();
    let times: Vec<f64> = figures.iter().map(|one| one.mean).collect();
    let lost: Vec<f64> = figures.iter().map(|one| one.failures as f64 / one.requests as f64).collect();
    (Estimate::of(&times).unwrap(), Estimate::of(&lost).unwrap())
}

fn holds(estimate: Estimate, expected: f64) {
    // Twice the interval: one of many tests of 95 % would fail by chance.
    assert!((estimate.mean - expected).abs() <= 2.0 * estimate.half, "{estimate:?}, by the formula {expected}");
    assert!(estimate.half < 0.15 * expected, "{estimate:?} says too little");
}

#[test]
fn one_server_with_exponential_service_takes_as_long_as_m_m_1() {
    // 1 / (mu - lambda) = 1 / (100 - 60) s.
    holds(measured(&single("exponential: 10ms", "60/s", 1, 100_000)).0, 25.0);
}

#[test]
fn one_server_with_constant_service_takes_as_long_as_m_d_1() {
    // Service and rho / (2 mu (1 - rho)): 10 ms and 0.6 * 10 / 0.8 ms.
    holds(measured(&single("constant: 10ms", "60/s", 1, 100_000)).0, 17.5);
}

#[test]
fn servers_without_a_queue_lose_as_many_as_erlang_b() {
    // Four erlang on five servers.
    let mut b = 1.0;
    for n in 1..=5 {
        b = 4.0 * b / (f64::from(n) + 4.0 * b);
    }
    holds(measured(&single("exponential: 40ms", "100/s", 5, 0)).1, b);
}
