//! What is compared: the default set, single policies, other products' rules, and the two oracles.
//!
//! Each is a `health_check` block of the native format (and the `compat` it stands under), read by the same code as any
//! configuration; models and oracles say who is out from outside.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use balance::Policies;
use config::report::suggest;
use config::{FileKind, PolicyNames};
use health::passive::{Needs, PassivePolicy, PassiveState, Verdict};
use health::{OutcomeEvent, Registry};
use model::cluster::{Cluster, HealthCheck};
use model::config::Config;
use model::id::PolicyName;
use model::time::Timestamp;

use crate::models::Model;
use crate::models::envoy::Envoy;
use crate::models::haproxy::{Haproxy, OnError};
use crate::models::two_draws::TwoDraws;
use crate::scenario::{self, Scenario};

/// One contestant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Its name on the command line and in reports.
    pub name: String,
    /// One line: what it is.
    pub about: String,
    /// Who decides.
    pub mind: Mind,
    compat: &'static str,
    passive: Passive,
    available: &'static str,
    has_checks: bool,
}

/// Who decides who is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mind {
    /// The policies of the health core.
    Core,
    /// Nobody: nothing is ever out.
    Keep,
    /// The truth, at once.
    Eject,
    /// A model of Envoy, with this cap in percent.
    Envoy(u32),
    /// A model of HAProxy.
    Haproxy(OnError),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Passive {
    Off,
    /// The default set.
    Default,
    /// What stands in the `health_check` block beside the active check, in the native format.
    Block(String),
    /// Said from outside.
    Outside,
}

/// Why there is no such contestant, or no configuration for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError(pub String);

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PolicyError {}

impl Mind {
    /// The model behind it, for one proxy; `phase` (0 to 1) says where in the interval its checks begin.
    pub fn model(self, scenario: &Scenario, phase: f64) -> Option<Box<dyn Model>> {
        let n = scenario.destinations.len();
        let first = scenario.checks.map_or(Duration::ZERO, |checks| checks.interval.mul_f64(phase));
        let first = Timestamp::ZERO + first;
        match self {
            Self::Core | Self::Keep | Self::Eject => None,
            Self::Envoy(percent) => Some(Box::new(Envoy::new(n, percent, scenario.checks, first))),
            Self::Haproxy(on_error) => Some(Box::new(Haproxy::new(n, on_error, scenario.checks, first))),
        }
    }
}

impl Policy {
    /// The contestant of a name: one of [`Policy::known`]; `passive:` and a passive policy in the native format, such as
    /// `passive:MaxFails` or `passive:{name: MaxFails, max_fails: 5}`; `native:` and a `health_check` block without its active check, such as
    /// `native:{passive: {policies: [{name: Burst}]}, guards: true}`; `nginx:` and max_fails and fail_timeout, such as `nginx:3/10s`. `WORD=` in front of it
    /// renames it.
    pub fn find(name: &str) -> Result<Self, PolicyError> {
        if let Some((word, rest)) = name.split_once('=')
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        {
            return Ok(Self { name: word.to_owned(), ..Self::find(rest)? });
        }
        if let Some(block) = name.strip_prefix("native:") {
            return Ok(Self::native(name, "as written, with active checks where the scenario has them", block));
        }
        if let Some(numbers) = name.strip_prefix("nginx:") {
            let pair = numbers.split_once('/').and_then(|(fails, time)| Some((fails.parse().ok()?, time)));
            let (max_fails, fail_timeout) = pair.ok_or_else(|| PolicyError(format!("{name}: as in nginx:3/10s")))?;
            return Ok(Self::nginx(name, max_fails, fail_timeout));
        }
        if let Some(entry) = name.strip_prefix("passive:") {
            let block = if entry.starts_with('{') { entry.to_owned() } else { format!("{{name: {entry}}}") };
            return Ok(Self::core(name, "a single policy, with active checks where the scenario has them", &block));
        }
        let mut known = Self::known();
        if let Some(place) = known.iter().position(|policy| policy.name == name) {
            return Ok(known.swap_remove(place));
        }
        let names: Vec<&str> = known.iter().map(|policy| policy.name.as_str()).collect();
        let meant = suggest::did_you_mean(name, names.iter().copied()).map(|meant| format!("; {meant}"));
        Err(PolicyError(format!(
            "there is no policy {name}{}\nthere are {}; passive:NAME with a passive policy of the configuration, \
             native:BLOCK and nginx:FAILS/TIME",
            meant.unwrap_or_default(),
            names.join(", ")
        )))
    }

    /// All that have a name of their own, the oracles last.
    pub fn known() -> Vec<Self> {
        let named = |name: &str, about: &str, mind, compat, passive, available, has_checks| Self {
            name: name.to_owned(),
            about: about.to_owned(),
            mind,
            compat,
            passive,
            available,
            has_checks,
        };
        let outside = |name: &str, about: &str, mind, compat, available| {
            named(name, about, mind, compat, Passive::Outside, available, false)
        };
        // Envoy and HAProxy repeat what their configuration lists, without a budget: as nginx does.
        let freely = "nginx";
        vec![
            named("lazaret", "the native default set", Mind::Core, "none", Passive::Default, "HealthyOrPanic", true),
            named("active", "active checks alone", Mind::Core, "none", Passive::Off, "HealthyOrPanic", true),
            Self::core("transport_failure_rate", "TransportFailureRate alone", "{name: TransportFailureRate}"),
            Self::core("max_fails", "MaxFails alone, 1 in 10 s", "{name: MaxFails}"),
            Self::nginx("nginx", 1, "10s"),
            Self::nginx("nginx_3", 3, "10s"),
            named(
                "yarp",
                "YARP's TransportFailureRate to the letter",
                Mind::Core,
                "yarp",
                Passive::Block("passive: {policies: [{name: TransportFailureRate}]}".into()),
                "HealthyOrPanic",
                true,
            ),
            outside(
                "envoy",
                "model of Envoy's defaults (max_ejection_percent 10)",
                Mind::Envoy(10),
                freely,
                "{name: PanicThreshold, percent: 50}",
            ),
            outside(
                "envoy_consecutive_5",
                "model of Envoy with max_ejection_percent 100",
                Mind::Envoy(100),
                freely,
                "{name: PanicThreshold, percent: 50}",
            ),
            outside(
                "haproxy",
                "model of HAProxy's observe layer7, on-error fail-check",
                Mind::Haproxy(OnError::FailCheck),
                freely,
                "HealthyAndUnknown",
            ),
            outside(
                "haproxy_mark_down",
                "model of HAProxy's observe layer7, on-error mark-down",
                Mind::Haproxy(OnError::MarkDown),
                freely,
                "HealthyAndUnknown",
            ),
            outside("eject", "oracle: takes out what is sick, at once", Mind::Eject, "none", "HealthyOrPanic"),
            named("keep", "oracle: takes nobody out", Mind::Keep, "none", Passive::Off, "HealthyOrPanic", false),
        ]
    }

    /// Whether it knows what no proxy can know.
    pub fn is_oracle(&self) -> bool {
        matches!(self.mind, Mind::Eject | Mind::Keep)
    }

    /// One that is written out: a `health_check` block without its active check, in braces or not.
    pub fn native(name: &str, about: &str, block: &str) -> Self {
        let block = block.trim();
        let block = block.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(block);
        Self {
            name: name.to_owned(),
            about: about.to_owned(),
            mind: Mind::Core,
            compat: "none",
            passive: Passive::Block(block.to_owned()),
            available: "HealthyOrPanic",
            has_checks: true,
        }
    }

    /// A single passive policy.
    fn core(name: &str, about: &str, entry: &str) -> Self {
        Self::native(name, about, &format!("passive: {{policies: [{entry}]}}"))
    }

    /// nginx's rule to the letter. Its servers are never probed.
    fn nginx(name: &str, max_fails: u32, fail_timeout: &str) -> Self {
        let entry = format!("{{name: MaxFails, max_fails: {max_fails}, fail_timeout: {fail_timeout}}}");
        Self {
            about: format!(
                "nginx's rule to the letter, max_fails={max_fails} fail_timeout={fail_timeout}; no active checks"
            ),
            compat: "nginx",
            available: "HealthyAndUnknown",
            has_checks: false,
            ..Self::core(name, "", &entry)
        }
    }

    /// The configuration of a proxy under this policy.
    pub fn config(&self, scenario: &Scenario) -> Result<Config, PolicyError> {
        let text = self.text(scenario);
        let mut names = PolicyNames::default();
        names.passive.insert(OUTSIDE.to_owned());
        names.balancing.insert(TWO_DRAWS.to_owned());
        match config::load("lab", text.as_bytes(), FileKind::Native, &names, None) {
            Ok(loaded) => Ok(loaded.config),
            Err(report) => {
                let first = report.errors().next().map_or_else(String::new, |error| error.message.clone());
                Err(PolicyError(format!("{}: {first}", self.name)))
            }
        }
    }

    /// A cluster of a real configuration under this policy: what is said of its traffic, the guards and who is available
    /// are the policy's, and probes where it has them; the rest stays. Models and oracles cannot be asked this way.
    pub fn applied_to(&self, cluster: &Cluster) -> Result<Cluster, PolicyError> {
        if self.mind != Mind::Core {
            let name = &self.name;
            return Err(PolicyError(format!("{name}: a model or an oracle cannot be asked of a recording")));
        }
        let scenario = scenario::read(SMALLEST, &|_| Err(String::new()));
        let scenario = scenario.map_err(|error| PolicyError(error.to_string()))?;
        let made = self.config(&scenario)?.clusters.into_iter().next();
        let made = made.ok_or_else(|| PolicyError(format!("{}: it has no cluster", self.name)))?;
        let mut applied = Cluster { compat: made.compat, ..cluster.clone() };
        let own = applied.health_check.active.take().filter(|_| self.has_checks);
        applied.health_check = HealthCheck { active: own, ..made.health_check };
        applied.destinations.iter_mut().for_each(|destination| destination.max_fails = None);
        Ok(applied)
    }

    /// What the registry of a proxy has for it.
    pub fn registry(&self) -> Registry {
        let mut registry = Registry::default();
        registry.passive(OUTSIDE, |_| Outside);
        registry
    }

    /// Whether a connection that had carried requests and breaks before a response is taken for a stale one, and the request
    /// repeated at the same destination for nothing. To nginx, HAProxy and Envoy it is a failure like any other.
    pub fn tells_stale(&self) -> bool {
        self.compat != "nginx"
    }

    /// Whether a destination is tried once more when all others were tried or are out. Envoy's predicate of previous hosts is
    /// a wish.
    pub fn tries_again(&self) -> bool {
        matches!(self.mind, Mind::Envoy(_))
    }

    /// Balancing policies that it needs beside the built-in ones.
    pub fn balancing(&self) -> Policies {
        let two_draws: Arc<dyn balance::Policy> = Arc::new(TwoDraws);
        Policies::from([(PolicyName::from(TWO_DRAWS), two_draws)])
    }

    fn text(&self, scenario: &Scenario) -> String {
        let total = scenario.total.map_or_else(String::new, |total| format!(", timeout: {}", span(total)));
        // There are at most a thousand.
        let address = |place: usize| format!("10.0.{}.{}:80", place / 250, place % 250 + 1);
        format!(
            "version: 1\n\
             listeners: {{lab: {{address: \"127.0.0.1:1\"}}}}\n\
             routes: {{lab: {{match: {{path: \"/{{**rest}}\"}}, cluster: {CLUSTER}{total}}}}}\n\
             clusters:\n{}",
            self.cluster(scenario, &address)
        )
    }

    /// Its cluster in the native format, with the destinations of a scenario at these addresses (`host:port`, by place).
    pub fn cluster(&self, scenario: &Scenario, address: &dyn Fn(usize) -> String) -> String {
        let active = match scenario.checks {
            Some(checks) if self.has_checks => {
                format!(
                    "active: {{interval: {}, timeout: {}, path: /health}}, ",
                    span(checks.interval),
                    span(checks.timeout)
                )
            }
            Some(_) | None => String::new(),
        };
        let passive = match &self.passive {
            Passive::Off => String::new(),
            Passive::Default => "passive: {enabled: true}, ".to_owned(),
            Passive::Block(block) => format!("{block}, "),
            Passive::Outside => format!("passive: {{policies: [{{name: {OUTSIDE}}}]}}, "),
        };
        let mut text = format!(
            "  {CLUSTER}:\n    compat: {}\n    load_balancing: {}\n    \
             health_check: {{{active}{passive}available_destinations_policy: {}}}\n    \
             retry: {{attempts: {}}}\n    timeouts: {{connect: {}, idle: {}}}\n    destinations:\n",
            self.compat,
            match self.mind {
                Mind::Core | Mind::Keep | Mind::Eject => "PowerOfTwoChoices",
                Mind::Envoy(_) | Mind::Haproxy(_) => TWO_DRAWS,
            },
            self.available,
            scenario.attempts,
            span(scenario.connect),
            span(scenario.response),
        );
        for (place, server) in scenario.destinations.iter().enumerate() {
            text += &format!(
                "      {}: {{address: \"http://{}/\", weight: {}}}\n",
                server.id,
                address(place),
                server.weight
            );
        }
        text
    }
}

fn span(span: Duration) -> String {
    config::timespan::format(span)
}

/// The names of a list with commas between, apart from those within brackets.
pub fn split(list: &str) -> Vec<&str> {
    let (mut names, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (at, letter) in list.char_indices() {
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                names.extend(list.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    names.extend(list.get(start..));
    names.into_iter().map(str::trim).filter(|name| !name.is_empty()).collect()
}

/// Enough for a configuration to be made of it.
const SMALLEST: &str = "version: 1\ntitle: none\nduration: 1s\n\
                        destinations: [{ids: [a, b], service: {exponential: 5ms}}]\n\
                        traffic: [{arrivals: poisson, rate: 1/s}]\n";

/// The one cluster.
pub const CLUSTER: &str = "lab";

/// The name of the policy that stands in for decisions from outside.
const OUTSIDE: &str = "Outside";

/// The name of the balancing policy of the models.
const TWO_DRAWS: &str = "TwoDraws";

/// Judges nothing: its destinations are judged from outside.
#[derive(Debug)]
struct Outside;

impl PassivePolicy for Outside {
    fn name(&self) -> &str {
        OUTSIDE
    }

    fn needs(&self) -> Needs {
        Needs::Failures
    }

    fn on_outcome(&mut self, _: Timestamp, _: &PassiveState, _: &OutcomeEvent) -> Option<Verdict> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_between_names_and_not_within_them() {
        let names = split(
            "lazaret, passive:{name: MaxFails, max_fails: 5},all=native:{passive: {policies: [{name: A}, {name: B}]}, guards: true},",
        );
        let written = [
            "lazaret",
            "passive:{name: MaxFails, max_fails: 5}",
            "all=native:{passive: {policies: [{name: A}, {name: B}]}, guards: true}",
        ];
        assert_eq!(names, written);
        let renamed = Policy::find("five=nginx:5/10s");
        assert!(renamed.is_ok_and(|policy| policy.name == "five" && policy.compat == "nginx"));
        assert!(Policy::find("five=nothing").is_err());
    }
}
