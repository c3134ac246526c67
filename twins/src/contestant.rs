//! Who is twinned: a policy of the lab and the program that has it for real.

use std::time::Duration;

use anyhow::{Context, Result};
use lab::policy::Policy;
use lab::scenario::Scenario;

/// A contestant in both worlds.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// Its name in reports.
    pub name: &'static str,
    /// In the lab.
    pub policy: Policy,
    /// For real.
    pub program: Program,
}

/// Whose program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Ours, with the cluster that the lab's policy writes.
    Lazaret,
    /// `max_fails` and `fail_timeout` as in the policy's name.
    Nginx {
        /// Failures.
        max_fails: u32,
        /// Seconds.
        fail_timeout: u32,
    },
    /// `observe layer7` with this `on-error`.
    Haproxy(&'static str),
    /// Outlier detection with its defaults, all hosts may be ejected.
    Envoy,
}

impl Program {
    /// What its configuration says of it for a scenario: to nginx of each server, to HAProxy of all, to Envoy of the cluster, a
    /// line each. Lazaret's is the policy's.
    pub fn rules(self, scenario: &Scenario) -> Vec<String> {
        match (self, scenario.checks) {
            (Self::Lazaret, _) => Vec::new(),
            (Self::Nginx { max_fails, fail_timeout }, _) => {
                vec![format!("max_fails={max_fails} fail_timeout={fail_timeout}s")]
            }
            // Without checks it has no `observe`.
            (Self::Haproxy(_), None) => Vec::new(),
            (Self::Haproxy(on_error), Some(checks)) => {
                let inter = checks.interval.as_millis();
                vec![format!("check inter {inter}ms fall 3 rise 2 observe layer7 error-limit 10 on-error {on_error}")]
            }
            (Self::Envoy, checks) => {
                let seconds = |span: Duration| format!("{:.3}s", span.as_secs_f64());
                let checks = checks.map(|checks| {
                    let (interval, timeout) = (seconds(checks.interval), seconds(checks.timeout));
                    format!(
                        "health_checks: [{{timeout: {timeout}, interval: {interval}, no_traffic_interval: {interval}, \
                         unhealthy_threshold: 2, healthy_threshold: 1, http_health_check: {{path: /health}}}}]"
                    )
                });
                std::iter::once("outlier_detection: {max_ejection_percent: 100}".to_owned()).chain(checks).collect()
            }
        }
    }
}

impl Contestant {
    /// All of them, ours first.
    pub fn all() -> Result<Vec<Self>> {
        let nginx = Program::Nginx { max_fails: 1, fail_timeout: 10 };
        [
            ("lazaret", DEFAULT, Program::Lazaret),
            ("lazaret_own", OWN, Program::Lazaret),
            ("yarp", "yarp", Program::Lazaret),
            ("nginx", "nginx", nginx),
            ("haproxy", "haproxy", Program::Haproxy("fail-check")),
            ("haproxy_mark_down", "haproxy_mark_down", Program::Haproxy("mark-down")),
            ("envoy", "envoy_consecutive_5", Program::Envoy),
        ]
        .into_iter()
        .map(|(name, policy, program)| {
            let policy = Policy::find(policy).with_context(|| format!("the lab's contestant for {name}"))?;
            Ok(Self { name, policy, program })
        })
        .collect()
    }

    /// What decides who is out in a scenario, in the words of the program's own configuration.
    pub fn settings(&self, scenario: &Scenario) -> String {
        match self.program {
            Program::Lazaret => {
                format!("compat: {}, health_check: {}", self.policy.compat(), self.policy.health_check(scenario))
            }
            Program::Nginx { .. } | Program::Haproxy(_) | Program::Envoy => self.program.rules(scenario).join(", "),
        }
    }

    /// Who is twinned in a script: those of these names; for an empty list all whom one run of it can tell.
    pub fn of(script: &str, names: &[String]) -> Result<Vec<Self>> {
        let mut all = Self::named(names)?;
        all.retain(|one| !names.is_empty() || !LEFT_TO_CHANCE.contains(&(script, one.name)));
        Ok(all)
    }

    /// Those of these names; all of them for an empty list.
    pub fn named(names: &[String]) -> Result<Vec<Self>> {
        let all = Self::all()?;
        for name in names {
            let known = || all.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
            anyhow::ensure!(
                all.iter().any(|one| one.name == name),
                "there is no twin of {name}; there are {}",
                known()
            );
        }
        Ok(all.into_iter().filter(|one| names.is_empty() || names.iter().any(|name| name == one.name)).collect())
    }
}

/// Script and contestant: whether a destination that breaks off a fifth of its bodies passes three trials in a row is a matter of
/// chance.
const LEFT_TO_CHANCE: [(&str, &str); 1] = [("cuts", "lazaret_own")];

/// The default set. By default an ejection lasts up to a quarter longer or shorter, by which the lab's own runs of a return differ
/// by ten seconds: one run has to tell.
const DEFAULT: &str = "lazaret=native:{passive: {enabled: true, readmission: {jitter: 0.01, ramp: 2s}}}";

/// The policies that no other product has, together, with readmission by trial requests and a ramp. Next to no jitter, and with a
/// short ramp: one run has to tell when it sends again.
const OWN: &str = "native:{passive: {policies: [{name: Burst}, {name: Outlier}, {name: ConnectFailures}], \
                   readmission: {jitter: 0.01, ramp: 2s}}, guards: true}";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use lab::policy::Standing;

    use super::*;

    #[test]
    fn whoever_runs_as_the_product_itself_is_called_by_its_name_and_nobody_else_is() {
        let all = Contestant::all().unwrap();
        for one in &all {
            let is_itself = one.program != Program::Lazaret;
            assert_eq!(one.policy.standing() == Standing::Twinned, is_itself, "{}", one.name);
        }
        for policy in Policy::known().iter().filter(|policy| policy.standing() == Standing::Twinned) {
            let has_run = all.iter().any(|one| one.program != Program::Lazaret && one.policy.plays_as(policy));
            // Beside nginx in tests/tests/nginx_as_measured.rs, which says so itself.
            assert!(has_run || policy.name == "nginx_3", "{}", policy.name);
        }
    }
}
