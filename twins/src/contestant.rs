//! Who is twinned: a policy of the lab and the program that has it for real.

use anyhow::{Context, Result};
use lab::policy::Policy;

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

impl Contestant {
    /// All of them, ours first.
    pub fn all() -> Result<Vec<Self>> {
        let nginx = Program::Nginx { max_fails: 1, fail_timeout: 10 };
        [
            ("lazaret", "lazaret", Program::Lazaret),
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

/// The policies that no other product has, together, with readmission by trial requests and a ramp. Next to no jitter, and with a
/// short ramp: one run has to tell when it sends again.
const OWN: &str = "native:{passive: {policies: [{name: Burst}, {name: Outlier}, {name: ConnectFailures}], \
                   readmission: {jitter: 0.01, ramp: 2s}}, guards: true}";
