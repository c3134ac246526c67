//! Routes, written down.

use model::entry::LimitKey;
use model::retry::{NonIdempotent, RouteRetry, TryPace};
use model::route::{
    Buffering, CaseRule, HostKind, Route, RouteAction, RouteMatch, RoutePolicy, Split, Sticky, ValueMode, ValueRule,
};

use super::{Writer, bytes, cluster, list, optional, quoted, span};
use super::{pages, transforms};

/// Writes one route.
pub fn write(w: &mut Writer<'_>, route: &Route) {
    w.block("match", |w| matcher(w, &route.matcher));
    w.value("order", route.order.to_string());
    match &route.action {
        RouteAction::Cluster(Some(id)) => w.value("cluster", quoted(id.as_str())),
        RouteAction::Cluster(None) => w.value("cluster", "null".to_owned()),
        RouteAction::Clusters(split) => write_split(w, split),
        RouteAction::Respond { status, body } => w.block("respond", |w| {
            w.value("status", status.to_string());
            w.value("body", quoted(body));
        }),
        RouteAction::Redirect { to, status } => w.block("redirect", |w| {
            w.value("to", quoted(to));
            w.value("status", status.to_string());
        }),
        RouteAction::Deny(status) => w.value("deny", status.to_string()),
    }
    w.value("timeout", span(route.timeout));
    w.value(
        "max_request_body",
        match route.max_request_body {
            None => "null".to_owned(),
            Some(None) => "none".to_owned(),
            Some(Some(limit)) => bytes(limit),
        },
    );
    entry(w, &route.policy);
    match route.policy.buffering {
        Buffering::Off => {}
        Buffering::On { request, response } => w.block("buffering", |w| {
            w.value("request", bytes(request));
            w.value("response", bytes(response));
        }),
    }
    if let Some(own) = &route.policy.retry {
        w.block("retry", |w| retry(w, own));
    }
    transforms::write(w, &route.policy.transforms);
    pages::error_pages(w, &route.policy.error_pages);
    if let Some(maintenance) = &route.policy.maintenance {
        pages::maintenance(w, maintenance);
    }
}

fn write_split(w: &mut Writer<'_>, split: &Split) {
    w.block("clusters", |w| {
        for side in &split.sides {
            w.value(side.cluster.as_str(), side.weight.to_string());
        }
    });
    match &split.sticky {
        Sticky::Off => w.value("sticky", "off".to_owned()),
        Sticky::ClientAddress => w.value("sticky", "client_address".to_owned()),
        Sticky::Cookie(name) => w.block("sticky", |w| w.value("cookie", quoted(name))),
    }
    if split.force_header.is_some() || split.force_cookie.is_some() {
        w.block("force", |w| {
            w.value("header", optional(split.force_header.as_deref()));
            w.value("cookie", optional(split.force_cookie.as_deref()));
        });
    }
}

/// What a route asks of its clients; nothing is written of what it does not ask.
fn entry(w: &mut Writer<'_>, policy: &RoutePolicy) {
    for (name, networks) in [("allow", &policy.access.allow), ("deny", &policy.access.deny)] {
        if !networks.is_empty() {
            let networks: Vec<_> = networks.iter().map(ToString::to_string).collect();
            w.value(name, list(networks.iter().map(String::as_str)));
        }
    }
    if let Some(limit) = &policy.limit_requests {
        w.block("limit_requests", |w| {
            w.value("rate", limit.rate.to_string());
            w.value("burst", limit.burst.to_string());
            match &limit.key {
                LimitKey::ClientAddress => w.value("key", "client_address".to_owned()),
                LimitKey::Header(name) => w.block("key", |w| w.value("header", quoted(name))),
            }
        });
    }
    if let Some(limit) = policy.limit_connections {
        w.block("limit_connections", |w| w.value("per_client", limit.per_client.to_string()));
    }
}

fn matcher(w: &mut Writer<'_>, matcher: &RouteMatch) {
    let hosts: Vec<_> = matcher
        .hosts
        .iter()
        .map(|host| {
            let wildcard = match host.kind {
                HostKind::Exact => "",
                HostKind::Wildcard => "*.",
            };
            let name = if host.name.contains(':') { format!("[{}]", host.name) } else { host.name.clone() };
            let port = host.port.map(|port| format!(":{port}")).unwrap_or_default();
            format!("{wildcard}{name}{port}")
        })
        .collect();
    w.value("hosts", list(hosts.iter().map(String::as_str)));
    w.value("path", optional(matcher.path.as_ref().map(ToString::to_string).as_deref()));
    w.value("methods", list(matcher.methods.iter().map(String::as_str)));
    w.value("headers", rules(&matcher.headers));
    w.value("query", rules(&matcher.query));
}

fn rules(rules: &[ValueRule]) -> String {
    let written: Vec<_> = rules
        .iter()
        .map(|rule| {
            let mode = match rule.mode {
                ValueMode::Exact => "exact",
                ValueMode::Prefix => "prefix",
                ValueMode::Contains => "contains",
                ValueMode::NotContains => "not_contains",
                ValueMode::Exists => "exists",
                ValueMode::NotExists => "not_exists",
            };
            let case = match rule.case {
                CaseRule::Ignore => "ignore",
                CaseRule::Sensitive => "sensitive",
            };
            let values = list(rule.values.iter().map(String::as_str));
            format!("{{name: {}, values: {values}, mode: {mode}, case: {case}}}", quoted(&rule.name))
        })
        .collect();
    format!("[{}]", written.join(", "))
}

fn retry(w: &mut Writer<'_>, retry: &RouteRetry) {
    if let Some(conditions) = &retry.conditions {
        w.value("conditions", cluster::conditions(conditions));
    }
    if let Some(attempts) = retry.attempts {
        w.value("attempts", attempts.to_string());
    }
    match (retry.pace, retry.per_try_timeout) {
        (TryPace::Adaptive, _) => w.value("per_try_timeout", "adaptive".to_owned()),
        (TryPace::Given, Some(own)) => w.value("per_try_timeout", span(own)),
        (TryPace::Given, None) => {}
    }
    if let Some(opt_in) = retry.non_idempotent {
        w.value("non_idempotent", (opt_in == NonIdempotent::Always).to_string());
        let key = if opt_in == NonIdempotent::WithKey { "trusted" } else { "ignored" };
        w.value("idempotency_key", key.to_owned());
    }
}
