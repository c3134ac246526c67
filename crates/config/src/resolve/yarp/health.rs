//! `HealthCheck`: probes and judged traffic. Nothing inside a block that is switched off is looked at.

use model::active::{ActiveCheck, ActivePolicy, ProbeKind, ProbeRequest, ProbeRound, StatusRange};
use model::available::AvailablePolicy;
use model::cluster::HealthCheck;
use model::guards::Guards;
use model::passive::{MaxFails, PassiveCheck, PassivePolicy, TransportFailureRate};

use super::metadata::{self, Metadata};
use super::{Context, Flag, record_metadata};
use crate::policy_names::Named;
use crate::raw::section::{Field, Reading, Section};
use crate::report::Diagnostic;
use crate::resolve::policy::{self, ActiveName, PassiveName};

/// Resolves the block of a cluster.
pub fn resolve(
    r: &mut Reading<'_>,
    context: &Context<'_>,
    section: Option<Section<'_>>,
    metadata: &Metadata<'_>,
) -> HealthCheck {
    let mut check = HealthCheck {
        available_destinations_policy: AvailablePolicy::HealthyOrPanic,
        active: None,
        passive: None,
        guards: Guards::default(),
    };
    let Some(mut s) = section else {
        return check;
    };
    let named = s.take_filled(r, "AvailableDestinationsPolicy", "available_destinations_policy");
    if let Some(policy) = named.and_then(|field| policy::available(r, &field, context.names)) {
        check.available_destinations_policy = policy;
    }
    if let Some(section) = s.take_as(r, "Active", "active").and_then(|field| field.section(r)) {
        check.active = active(r, context, section, metadata);
    }
    if let Some(section) = s.take_as(r, "Passive", "passive").and_then(|field| field.section(r)) {
        check.passive = passive(r, context, section, metadata);
    }
    s.finish(r);
    check
}

fn active(
    r: &mut Reading<'_>,
    context: &Context<'_>,
    mut s: Section<'_>,
    metadata: &Metadata<'_>,
) -> Option<ActiveCheck> {
    if s.take_flag(r, "Enabled", "enabled", Flag::Off) == Flag::Off {
        s.ignore_rest();
        return None;
    }
    let defaults = &context.defaults;
    let interval = s.take_filled(r, "Interval", "interval").and_then(|f| f.duration(r));
    let interval = interval.unwrap_or(defaults.probe_interval);
    let timeout = s.take_filled(r, "Timeout", "timeout").and_then(|f| f.duration(r)).unwrap_or(defaults.probe_timeout);
    let named = s.take_filled(r, "Policy", "policy").and_then(|f| policy::active(r, &f, context.names));
    let path = s.take_filled(r, "Path", "path").and_then(|f| begins_with(r, &f, '/'));
    let query = s.take_filled(r, "Query", "query").and_then(|f| begins_with(r, &f, '?'));
    let threshold_path = s.path.join("threshold");
    s.finish(r);
    let policy = match named {
        Some(Named::Custom(name)) => ActivePolicy::Custom(name),
        Some(Named::BuiltIn(ActiveName::ConsecutiveFailures)) | None => {
            let mut threshold = defaults.probe_threshold;
            if let Some((number, entry)) = metadata.threshold(r, defaults.probe_threshold) {
                threshold = number;
                record_metadata(r, threshold_path, entry);
            }
            ActivePolicy::ConsecutiveFailures { threshold }
        }
    };
    Some(ActiveCheck {
        kind: ProbeKind::Http,
        interval,
        unhealthy_interval: interval,
        timeout,
        policy,
        confirm_interval: defaults.confirm_interval,
        start: defaults.probe_start,
        round: ProbeRound::Destination,
        request: ProbeRequest {
            method: "GET".to_owned(),
            path,
            query,
            host: None,
            headers: Vec::new(),
            expect_statuses: vec![StatusRange::SUCCESS],
            expect_body: None,
            http: None,
            service: None,
            healthy_threshold: 1,
        },
    })
}

/// A path or query of a probe. One that does not begin as it must is kept as it is: every probe fails, as in YARP.
fn begins_with(r: &mut Reading<'_>, field: &Field<'_>, first: char) -> Option<String> {
    let text = field.text(r)?;
    if !text.starts_with(first) {
        let diagnostic = Diagnostic::warning(format!("`{}` does not begin with {first}", field.name))
            .label("every probe fails")
            .help(format!("did you mean `{first}{text}`?"));
        r.note(field.node.span, diagnostic);
    }
    Some(text.to_owned())
}

fn passive(
    r: &mut Reading<'_>,
    context: &Context<'_>,
    mut s: Section<'_>,
    metadata: &Metadata<'_>,
) -> Option<PassiveCheck> {
    if s.take_flag(r, "Enabled", "enabled", Flag::Off) == Flag::Off {
        s.ignore_rest();
        return None;
    }
    let named = s.take_filled(r, "Policy", "policies").and_then(|f| policy::passive(r, &f, context.names));
    let reactivation_period = s.take_filled(r, "ReactivationPeriod", "reactivation_period").and_then(|f| f.duration(r));
    let limit_path = s.path.join("policies").join("rate_limit");
    s.finish(r);
    let policy = match named {
        Some(Named::Custom(name)) => PassivePolicy::Custom(name),
        Some(Named::BuiltIn(PassiveName::MaxFails)) => PassivePolicy::MaxFails(MaxFails::default()),
        Some(Named::BuiltIn(PassiveName::ConsecutiveErrors)) => PassivePolicy::ConsecutiveErrors(Default::default()),
        Some(Named::BuiltIn(PassiveName::FailureRate)) => PassivePolicy::FailureRate(Default::default()),
        Some(Named::BuiltIn(PassiveName::Outlier)) => PassivePolicy::Outlier(Default::default()),
        Some(Named::BuiltIn(PassiveName::Burst)) => PassivePolicy::Burst(Default::default()),
        Some(Named::BuiltIn(PassiveName::ConnectFailures)) => PassivePolicy::ConnectFailures(Default::default()),
        Some(Named::BuiltIn(PassiveName::Stall)) => PassivePolicy::Stall(Default::default()),
        Some(Named::BuiltIn(PassiveName::Latency)) => PassivePolicy::Latency(Default::default()),
        Some(Named::BuiltIn(PassiveName::Overload)) => PassivePolicy::Overload(Default::default()),
        Some(Named::BuiltIn(PassiveName::TransportFailureRate)) | None => {
            let mut options = context.transport_failure_rate;
            if let Some((rate_limit, entry)) = metadata.rate_limit(r, options.rate_limit) {
                options = TransportFailureRate { rate_limit, ..options };
                record_metadata(r, limit_path, entry);
            }
            PassivePolicy::TransportFailureRate(options)
        }
    };
    Some(PassiveCheck { reactivation_period, ..PassiveCheck::of(vec![policy]) })
}

/// `HealthDefaults`: the options that YARP takes in code only, under the names they have there.
pub fn defaults(r: &mut Reading<'_>, mut s: Section<'_>, context: &mut Context<'_>) {
    let field = s.take_as(r, "TransportFailureRate", "transport_failure_rate");
    if let Some(mut section) = field.and_then(|field| field.section(r)) {
        let options = &mut context.transport_failure_rate;
        if let Some(window) = section.take_filled(r, "DetectionWindowSize", "window").and_then(|f| f.duration(r)) {
            options.window = window;
        }
        let minimum = section.take_filled(r, "MinimalTotalCountThreshold", "minimum");
        if let Some(minimum) = minimum.and_then(|f| f.whole_u32(r, 1)) {
            options.minimum = minimum;
        }
        if let Some(field) = section.take_filled(r, "DefaultFailureRateLimit", "rate_limit")
            && let Some(text) = field.text(r)
        {
            options.rate_limit = metadata::rate(r, &field, text, options.rate_limit);
        }
        section.finish(r);
    }
    s.finish(r);
}
