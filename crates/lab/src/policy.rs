//! What is compared: the default set, single policies, other products' rules, and the two oracles.
//!
//! Each is a `health_check` block of the native format (and the `compat` it stands under), read by the same code as any
//! configuration; models and oracles say who is out from outside. Read on: `names` (who there is), `standing` (who is a
//! model).

mod names;

mod standing;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use balance::Policies;
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

pub use self::names::split;
pub use self::standing::Standing;

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

/// Where a destination is, each as `host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// For requests.
    pub traffic: String,
    /// For probes; `None`: the same.
    pub probes: Option<String>,
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
    /// Whether it knows what no proxy can know.
    pub fn is_oracle(&self) -> bool {
        matches!(self.mind, Mind::Eject | Mind::Keep)
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
        let addresses =
            |place: usize| Addresses { traffic: format!("10.0.{}.{}:80", place / 250, place % 250 + 1), probes: None };
        format!(
            "version: 1\n\
             listeners: {{lab: {{address: \"127.0.0.1:1\"}}}}\n\
             routes: {{lab: {{match: {{path: \"/{{**rest}}\"}}, cluster: {CLUSTER}{total}}}}}\n\
             clusters:\n{}",
            self.cluster(scenario, &addresses)
        )
    }

    /// Its cluster in the native format, with the destinations of a scenario at these addresses (by place).
    pub fn cluster(&self, scenario: &Scenario, addresses: &dyn Fn(usize) -> Addresses) -> String {
        let mut text = format!(
            "  {CLUSTER}:\n    compat: {}\n    load_balancing: {}\n    health_check: {}\n    \
             retry: {{attempts: {}}}\n    timeouts: {{connect: {}, idle: {}}}\n    destinations:\n",
            self.compat,
            match self.mind {
                Mind::Core | Mind::Keep | Mind::Eject => "PowerOfTwoChoices",
                Mind::Envoy(_) | Mind::Haproxy(_) => TWO_DRAWS,
            },
            self.health_check(scenario),
            scenario.attempts,
            span(scenario.connect),
            span(scenario.response),
        );
        for (place, server) in scenario.destinations.iter().enumerate() {
            let Addresses { traffic, probes } = addresses(place);
            let health = probes.map_or_else(String::new, |probes| format!("health: \"http://{probes}/\", "));
            text += &format!(
                "      {}: {{address: \"http://{traffic}/\", {health}weight: {}}}\n",
                server.id, server.weight
            );
        }
        text
    }

    /// The compatibility that its cluster stands under, by the configuration's word.
    pub fn compat(&self) -> &'static str {
        self.compat
    }

    /// Its `health_check` block in the native format.
    pub fn health_check(&self, scenario: &Scenario) -> String {
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
        format!("{{{active}{passive}available_destinations_policy: {}}}", self.available)
    }
}

fn span(span: Duration) -> String {
    config::timespan::format(span)
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
