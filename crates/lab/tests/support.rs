//! Small scenarios for tests.

use std::fmt::Write;

use lab::meter::Figures;
use lab::policy::Policy;
use lab::scenario::{self, Scenario};

/// The scenario of a text that names no file.
pub fn read(text: &str) -> Scenario {
    scenario::read(text, &|name| Err(format!("no {name}"))).unwrap()
}

/// One run of a policy by its name.
pub fn run(scenario: &Scenario, policy: &str, seed: u64) -> Figures {
    lab::run(scenario, &Policy::find(policy).unwrap(), seed).unwrap().0
}

/// Three destinations at a third of what they bear, with these faults.
pub fn three(faults: &str) -> String {
    format!(
        "version: 1\ntitle: three\nduration: 60s\nwarm_up: 5s\nchecks: {{interval: 5s, timeout: 2s}}\n\
         timeouts: {{connect: 1s, response: 2s}}\nretry: {{attempts: 1}}\n\
         destinations: [{{ids: [a, b, c], service: {{exponential: 10ms}}, concurrency: 4, backlog: 20}}]\n\
         traffic: [{{arrivals: poisson, rate: 120/s, patience: 5s}}]\nfaults: {faults}\n"
    )
}

/// An access log of requests at these milliseconds with this method.
pub fn log(requests: &[(u64, &str)]) -> String {
    let mut text = String::new();
    for (millis, method) in requests {
        let (seconds, rest) = (millis / 1000, millis % 1000);
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        writeln!(text, "{{\"at\":\"2026-01-01T00:{minutes:02}:{seconds:02}.{rest:03}Z\",\"method\":\"{method}\"}}")
            .unwrap();
    }
    text
}
