//! Checks, written down, with the time a failure can go unseen.

use model::active::{ActiveCheck, ActivePolicy, ProbeKind, ProbeRequest, ProbeRound, ProbeStart};
use model::available::AvailablePolicy;
use model::cluster::{Compat, HealthCheck};
use model::guards::{AnsweringDestination, Guards, LastDestination};

use super::{Writer, list, optional, passive, quoted, span};
use crate::check::facts::ClusterFacts;
use crate::timespan;

/// Writes the checks of a cluster.
pub fn write(w: &mut Writer<'_>, check: &HealthCheck, facts: &ClusterFacts, compat: Compat) {
    w.value(
        "available_destinations_policy",
        match &check.available_destinations_policy {
            AvailablePolicy::HealthyAndUnknown => "HealthyAndUnknown".to_owned(),
            AvailablePolicy::HealthyOrPanic => "HealthyOrPanic".to_owned(),
            AvailablePolicy::PanicThreshold(share) => {
                format!("{{name: PanicThreshold, percent: {:.0}}}", share.get() * 100.0)
            }
            AvailablePolicy::Custom(name) => quoted(name.as_str()),
        },
    );
    match &check.active {
        None => w.block("active", |w| w.value("enabled", "false".to_owned())),
        Some(check) => w.block("active", |w| active(w, check, facts)),
    }
    match &check.passive {
        None => w.block("passive", |w| w.value("enabled", "false".to_owned())),
        Some(check) => w.block("passive", |w| passive::write(w, check, compat)),
    }
    if check.guards != Guards::default() {
        w.block("guards", |w| guards(w, &check.guards));
    }
}

fn guards(w: &mut Writer<'_>, guards: &Guards) {
    w.value("max_ejected", guards.max_ejected.map_or_else(|| "null".to_owned(), |share| share.get().to_string()));
    w.value("spacing", span(guards.spacing));
    let last = match guards.last {
        LastDestination::Leaves => "leaves",
        LastDestination::Stays => "stays",
    };
    w.value("last", last.to_owned());
    let answering = match guards.answering {
        AnsweringDestination::Leaves => "leaves",
        AnsweringDestination::Stays => "stays",
    };
    w.value("answering", answering.to_owned());
}

fn active(w: &mut Writer<'_>, check: &ActiveCheck, facts: &ClusterFacts) {
    if let Some(worst) = facts.worst_detection {
        let (hang, refused) = (timespan::format(worst.hang), timespan::format(worst.refused));
        w.comment(&format!("worst detection time: {hang} for a hang, {refused} for a refusal"));
    }
    let kind = match check.kind {
        ProbeKind::Http => "http",
        ProbeKind::Tcp => "tcp",
        ProbeKind::Grpc => "grpc",
    };
    w.value("kind", kind.to_owned());
    w.value("interval", timespan::format(check.interval));
    w.value("unhealthy_interval", timespan::format(check.unhealthy_interval));
    w.value("timeout", timespan::format(check.timeout));
    match &check.policy {
        ActivePolicy::ConsecutiveFailures { threshold } => {
            w.value("policy", "ConsecutiveFailures".to_owned());
            w.value("threshold", threshold.to_string());
        }
        ActivePolicy::Custom(name) => w.value("policy", quoted(name.as_str())),
    }
    w.value("confirm_interval", timespan::format(check.confirm_interval));
    let start = match check.start {
        ProbeStart::ProbeFirst => "probe_first",
        ProbeStart::Eligible => "eligible",
    };
    w.value("start", start.to_owned());
    let round = match check.round {
        ProbeRound::Destination => "destination",
        ProbeRound::Cluster => "cluster",
    };
    w.value("round", round.to_owned());
    let request = &check.request;
    match check.kind {
        ProbeKind::Grpc => {
            w.value("service", optional(request.service.as_deref()));
            addressed(w, request);
        }
        ProbeKind::Http | ProbeKind::Tcp => {
            w.value("http", request.http.map_or_else(|| "null".to_owned(), |http| quoted(super::http(http))));
            w.value("method", quoted(&request.method));
            w.value("path", optional(request.path.as_deref()));
            w.value("query", optional(request.query.as_deref()));
            addressed(w, request);
            expected(w, request);
        }
    }
    w.value("healthy_threshold", request.healthy_threshold.to_string());
}

fn addressed(w: &mut Writer<'_>, request: &ProbeRequest) {
    w.value("host", optional(request.host.as_deref()));
    let headers: Vec<_> =
        request.headers.iter().map(|(name, value)| format!("{}: {}", quoted(name), quoted(value))).collect();
    w.value("headers", format!("{{{}}}", headers.join(", ")));
}

fn expected(w: &mut Writer<'_>, request: &ProbeRequest) {
    w.block("expect", |w| {
        let ranges: Vec<_> =
            request.expect_statuses.iter().map(|range| format!("{}-{}", range.low, range.high)).collect();
        w.value("status", list(ranges.iter().map(String::as_str)));
        w.value("body", optional(request.expect_body.as_deref()));
    });
}
