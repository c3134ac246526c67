//! `health_check.passive`: which policies judge the traffic.

use model::cluster::Compat;
use model::passive::{MaxFails, PassiveCheck, PassivePolicy, TransportFailureRate};

use super::{Context, passive_options};
use crate::policy_names::Named;
use crate::raw::Value;
use crate::raw::section::{Field, Reading, Section};
use crate::report::Diagnostic;
use crate::resolve::policy::{self, PassiveName};

/// Where a check's policies come from: what is not written beside them follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Named in the file, or another product's.
    Named,
    /// The default set, which comes with a way of readmission and guards.
    DefaultSet,
}

/// Resolves the block; `None` when it is switched off. An empty block is on, with the default set.
pub fn resolve(
    r: &mut Reading<'_>,
    context: &Context<'_>,
    field: &Field<'_>,
    compat: Compat,
) -> Option<(PassiveCheck, Origin)> {
    let mut s = match field.node.value {
        Value::Null => Section::empty(field.path.clone(), field.key_span),
        Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => {
            field.section_like(r, "{} for the default set, or a block such as {policies: [MaxFails]}")?
        }
    };
    let enabled = s.take(r, "enabled").and_then(|f| f.flag(r)).unwrap_or(true);
    let (policies, origin) = match s.take(r, "policies") {
        Some(field) => {
            let policies = list_of(r, context, &field);
            if field.list(r).is_empty() {
                field.refuse(r, "no policy is listed", "expected one at least; `enabled: false` turns the check off");
            }
            (policies, Origin::Named)
        }
        None => match compat {
            Compat::None => (PassiveCheck::native().policies, Origin::DefaultSet),
            Compat::Nginx => (vec![PassivePolicy::MaxFails(MaxFails::default())], Origin::Named),
            Compat::Yarp => (vec![PassivePolicy::TransportFailureRate(context.transport_failure_rate)], Origin::Named),
        },
    };
    let shadow = s.take(r, "shadow").map(|field| list_of(r, context, &field)).unwrap_or_default();
    let reactivation_period = s.take(r, "reactivation_period").and_then(|f| f.duration(r));
    let readmission = match (s.take(r, "readmission"), origin) {
        (Some(field), _) => {
            let rule = passive_options::readmission(r, &field);
            if rule.is_some() && compat != Compat::None {
                let expected = "expected no way of readmission where another product's rules hold";
                field.refuse(r, "`readmission` and `compat` exclude each other", expected);
            }
            rule
        }
        (None, Origin::DefaultSet) => PassiveCheck::native().readmission,
        (None, Origin::Named) => None,
    };
    max_fails_beside_policies(r, &mut s);
    s.finish(r);
    enabled.then_some((PassiveCheck { policies, shadow, reactivation_period, readmission }, origin))
}

/// MaxFails' options where no policy stands that they could be of, as they stand at a server of nginx.
fn max_fails_beside_policies(r: &mut Reading<'_>, s: &mut Section<'_>) {
    let fields: Vec<_> = ["max_fails", "fail_timeout"].iter().filter_map(|key| s.take_misplaced(r, key)).collect();
    let Some(first) = fields.first() else { return };
    let options = fields.iter().filter_map(|field| Some(format!(", {}: {}", field.name, field.node.scalar()?)));
    let diagnostic = Diagnostic::error(format!("unknown key `{}`", first.name))
        .label("an option of the policy MaxFails")
        .help(format!("write `policies: [{{name: MaxFails{}}}]`", options.collect::<String>()));
    r.note(first.key_span, diagnostic);
}

fn list_of(r: &mut Reading<'_>, context: &Context<'_>, field: &Field<'_>) -> Vec<PassivePolicy> {
    field.list(r).iter().filter_map(|item| policy_of(r, context, item)).collect()
}

fn policy_of(r: &mut Reading<'_>, context: &Context<'_>, item: &Field<'_>) -> Option<PassivePolicy> {
    let (named, mut s) = match item.node.value {
        Value::Map(_) => {
            let mut s = item.section(r)?;
            let Some(name) = s.take(r, "name") else {
                r.error(s.span, "a policy has no name", "expected `name`");
                return None;
            };
            let Some(named) = policy::passive(r, &name, context.names) else {
                s.ignore_rest();
                return None;
            };
            (named, s)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::List(_) => {
            (policy::passive(r, item, context.names)?, Section::empty(item.path.clone(), item.key_span))
        }
    };
    let policy = match named {
        Named::BuiltIn(PassiveName::TransportFailureRate) => {
            PassivePolicy::TransportFailureRate(transport_failure_rate(r, &mut s, context.transport_failure_rate))
        }
        Named::BuiltIn(PassiveName::MaxFails) => {
            PassivePolicy::MaxFails(max_fails(r, &mut s).with(MaxFails::default()))
        }
        Named::BuiltIn(name) => passive_options::weighing(r, &mut s, name)?,
        Named::Custom(name) => PassivePolicy::Custom(name),
    };
    s.finish(r);
    Some(policy)
}

/// Options of TransportFailureRate, with `default` for what is absent.
pub fn transport_failure_rate(
    r: &mut Reading<'_>,
    s: &mut Section<'_>,
    default: TransportFailureRate,
) -> TransportFailureRate {
    TransportFailureRate {
        rate_limit: s.take(r, "rate_limit").and_then(|f| f.rate(r)).unwrap_or(default.rate_limit),
        window: s.take(r, "window").and_then(|f| f.duration(r)).unwrap_or(default.window),
        minimum: s.take(r, "minimum").and_then(|f| f.whole_u32(r, 1)).unwrap_or(default.minimum),
    }
}

/// max_fails and fail_timeout as far as they were written.
pub struct WrittenMaxFails {
    max_fails: Option<u32>,
    fail_timeout: Option<std::time::Duration>,
}

impl WrittenMaxFails {
    /// Completed.
    pub fn with(&self, default: MaxFails) -> MaxFails {
        MaxFails {
            max_fails: self.max_fails.unwrap_or(default.max_fails),
            fail_timeout: self.fail_timeout.unwrap_or(default.fail_timeout),
        }
    }

    /// Whether one of both was written.
    pub fn is_written(&self) -> bool {
        self.max_fails.is_some() || self.fail_timeout.is_some()
    }
}

/// Reads max_fails and fail_timeout.
pub fn max_fails(r: &mut Reading<'_>, s: &mut Section<'_>) -> WrittenMaxFails {
    WrittenMaxFails {
        max_fails: s.take(r, "max_fails").and_then(|f| f.whole_u32(r, 0)),
        fail_timeout: s.take(r, "fail_timeout").and_then(|f| f.duration(r)),
    }
}
