//! Policy names into policies, for every format.

use std::collections::BTreeSet;

use model::available::AvailablePolicy;
use model::balancing::{HashKey, LoadBalancing};

use crate::policy_names::{Named, PolicyNames, find};
use crate::raw::Value;
use crate::raw::scalar::join_or;
use crate::raw::section::{Field, Reading};
use crate::report::{Diagnostic, suggest};
use crate::resolve::elsewhere;

/// Active policies that are built in.
#[derive(Clone, Copy)]
pub enum ActiveName {
    /// So many failures in a row.
    ConsecutiveFailures,
}

/// Passive policies that are built in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PassiveName {
    /// Share of failed transports.
    TransportFailureRate,
    /// nginx's rule.
    MaxFails,
    /// Failed attempts in a row.
    ConsecutiveErrors,
    /// Share of failed attempts.
    FailureRate,
    /// Against the rest of the cluster.
    Outlier,
    /// Failures that come in a burst and last.
    Burst,
    /// No connection, in a row.
    ConnectFailures,
    /// Requests wait and nothing comes.
    Stall,
    /// Slower than the rest.
    Latency,
    /// Asks for less more often than the rest.
    Overload,
}

/// Names the active policy at `field`.
pub fn active(r: &mut Reading<'_>, field: &Field<'_>, names: &PolicyNames) -> Option<Named<ActiveName>> {
    let built_in = [("ConsecutiveFailures", ActiveName::ConsecutiveFailures)];
    named(r, field, &built_in, elsewhere::ACTIVE, &names.active)
}

/// Names the passive policy at `field`.
pub fn passive(r: &mut Reading<'_>, field: &Field<'_>, names: &PolicyNames) -> Option<Named<PassiveName>> {
    let built_in = [
        ("TransportFailureRate", PassiveName::TransportFailureRate),
        ("MaxFails", PassiveName::MaxFails),
        ("Burst", PassiveName::Burst),
        ("ConnectFailures", PassiveName::ConnectFailures),
        ("Outlier", PassiveName::Outlier),
        ("Stall", PassiveName::Stall),
        ("Latency", PassiveName::Latency),
        ("Overload", PassiveName::Overload),
        ("FailureRate", PassiveName::FailureRate),
        ("ConsecutiveErrors", PassiveName::ConsecutiveErrors),
    ];
    named(r, field, &built_in, elsewhere::PASSIVE, &names.passive)
}

/// Names the availability policy at `field`.
pub fn available(r: &mut Reading<'_>, field: &Field<'_>, names: &PolicyNames) -> Option<AvailablePolicy> {
    #[derive(Clone, Copy)]
    enum Name {
        HealthyAndUnknown,
        HealthyOrPanic,
        PanicThreshold,
    }
    let built_in = [
        ("HealthyOrPanic", Name::HealthyOrPanic),
        ("HealthyAndUnknown", Name::HealthyAndUnknown),
        ("PanicThreshold", Name::PanicThreshold),
    ];
    match named(r, field, &built_in, elsewhere::AVAILABLE, &names.available)? {
        Named::BuiltIn(Name::HealthyAndUnknown) => Some(AvailablePolicy::HealthyAndUnknown),
        Named::BuiltIn(Name::HealthyOrPanic) => Some(AvailablePolicy::HealthyOrPanic),
        Named::BuiltIn(Name::PanicThreshold) => {
            let diagnostic = Diagnostic::error("`PanicThreshold` needs its percentage")
                .label("expected {name: PanicThreshold, percent: 50}");
            r.note(field.node.span, diagnostic);
            None
        }
        Named::Custom(name) => Some(AvailablePolicy::Custom(name)),
    }
}

/// Names the balancing policy at `field`.
pub fn balancing(r: &mut Reading<'_>, field: &Field<'_>, names: &PolicyNames) -> Option<LoadBalancing> {
    #[derive(Clone, Copy)]
    enum Name {
        PowerOfTwoChoices,
        RoundRobin,
        LeastRequests,
        Random,
        FirstAlphabetical,
        ConsistentHash,
        PeakEwma,
    }
    let built_in = [
        ("PowerOfTwoChoices", Name::PowerOfTwoChoices),
        ("RoundRobin", Name::RoundRobin),
        ("LeastRequests", Name::LeastRequests),
        ("Random", Name::Random),
        ("FirstAlphabetical", Name::FirstAlphabetical),
        ("ConsistentHash", Name::ConsistentHash),
        ("PeakEwma", Name::PeakEwma),
    ];
    match named(r, field, &built_in, elsewhere::BALANCING, &names.balancing)? {
        Named::BuiltIn(Name::PowerOfTwoChoices) => Some(LoadBalancing::PowerOfTwoChoices),
        Named::BuiltIn(Name::RoundRobin) => Some(LoadBalancing::RoundRobin),
        Named::BuiltIn(Name::LeastRequests) => Some(LoadBalancing::LeastRequests),
        Named::BuiltIn(Name::Random) => Some(LoadBalancing::Random),
        Named::BuiltIn(Name::FirstAlphabetical) => Some(LoadBalancing::FirstAlphabetical),
        Named::BuiltIn(Name::ConsistentHash) => Some(LoadBalancing::ConsistentHash(HashKey::default())),
        Named::BuiltIn(Name::PeakEwma) => Some(LoadBalancing::PeakEwma),
        Named::Custom(name) => Some(LoadBalancing::Custom(name)),
    }
}

fn named<T: Copy>(
    r: &mut Reading<'_>,
    field: &Field<'_>,
    built_in: &[(&'static str, T)],
    theirs: elsewhere::Table,
    custom: &BTreeSet<String>,
) -> Option<Named<T>> {
    if let Value::Map(_) | Value::List(_) = field.node.value {
        let first = built_in.first().map_or("", |(name, _)| *name);
        let what = format!("`{}` is {}", field.name, field.node.value.kind());
        field.refuse(r, what, format!("expected the name of one policy, such as {first}"));
        return None;
    }
    let text = field.text(r)?;
    match find(text, built_in, custom) {
        Ok(found) => Some(found),
        Err(known) => {
            let known: Vec<_> = known.iter().map(String::as_str).collect();
            let diagnostic = Diagnostic::error(format!("unknown policy `{text}`"))
                .label(format!("expected {}", join_or(&known)))
                .maybe_help(suggest::did_you_mean(text, known.iter().copied()))
                .maybe_help(elsewhere::ours(theirs, text).map(|ours| format!("the nearest policy here is `{ours}`")));
            r.note(field.node.span, diagnostic);
            None
        }
    }
}
