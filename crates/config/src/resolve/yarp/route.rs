//! `Routes`: which requests go to which cluster.

use std::time::Duration;

use model::id::{ClusterId, RouteId};
use model::route::{CaseRule, Route, RouteAction, RouteMatch, RoutePolicy, ValueMode, ValueRule};

use super::Flag;
use super::ignored::{self, alarm, warning};
use crate::raw::section::{Field, Reading, Section};
use crate::report::{Diagnostic, suggest};
use crate::resolve::matching::{self, Clusters};
use crate::resolve::transforms;

/// Resolves one route. `clusters` are the ids that exist.
pub fn resolve(r: &mut Reading<'_>, field: &Field<'_>, clusters: &Clusters) -> Option<Route> {
    let mut s = field.section(r)?;
    let action = RouteAction::Cluster(cluster(r, &mut s, field, clusters));
    let order = s.take_filled(r, "Order", "order");
    let order = order.and_then(|f| f.whole(r, i64::from(i32::MIN)..=i64::from(i32::MAX)));
    let matcher = match s.take_as(r, "Match", "match").and_then(|f| f.section(r)) {
        Some(section) => matcher(r, section),
        None => RouteMatch::default(),
    };
    if matcher.path.is_none() && matcher.hosts.is_empty() && !r.has_errors() {
        let what = format!("route `{}` matches by neither path nor host", field.name);
        r.error(field.key_span, what, "expected `Match` with `Path` or `Hosts`");
    }
    let max_request_body = s.take_filled(r, "MaxRequestBodySize", "max_request_body");
    let max_request_body = max_request_body.and_then(|f| f.whole(r, -1..=i64::MAX)).map(|n| u64::try_from(n).ok());
    let timeout = timeout(r, &mut s);
    let transforms = s.take_as(r, "Transforms", "transforms").map(|field| transforms::resolve(r, &field));
    s.take(r, "Metadata");
    s.take(r, "RouteId");
    ignored::name(
        r,
        &mut s,
        &[
            alarm("AuthorizationPolicy", "everybody gets in", &["Anonymous"]),
            alarm("CorsPolicy", "other origins are not held off here", &["Disable"]),
            alarm("RateLimiterPolicy", "nobody is held back here", &["Disable"]),
            warning("OutputCachePolicy", "nothing is cached", &[]),
        ],
    );
    s.finish(r);
    let order = order.and_then(|n| i32::try_from(n).ok()).unwrap_or(0);
    let id = RouteId::from(field.name.as_str());
    let policy = RoutePolicy { transforms: transforms.unwrap_or_default(), ..RoutePolicy::default() };
    Some(Route { id, order, matcher, action, timeout, max_request_body, policy })
}

fn cluster(r: &mut Reading<'_>, s: &mut Section<'_>, route: &Field<'_>, clusters: &Clusters) -> Option<ClusterId> {
    let Some(field) = s.take_filled(r, "ClusterId", "cluster") else {
        let diagnostic = Diagnostic::warning(format!("route `{}` has no cluster", route.name));
        r.note(route.key_span, diagnostic.label("its requests are answered with 503"));
        return None;
    };
    let text = field.text(r)?;
    let found = clusters.without_case(text);
    if found.is_none() {
        let diagnostic = Diagnostic::warning(format!("there is no cluster `{text}`"))
            .label("its requests are answered with 503")
            .maybe_help(clusters.did_you_mean(text));
        r.note(field.node.span, diagnostic);
    }
    found.cloned()
}

fn timeout(r: &mut Reading<'_>, s: &mut Section<'_>) -> Option<Duration> {
    let policy = s.take_filled(r, "TimeoutPolicy", "timeout");
    let field = s.take_filled(r, "Timeout", "timeout");
    if let Some(policy) = &policy {
        if field.is_some() {
            r.error(policy.key_span, "`Timeout` and `TimeoutPolicy` exclude each other", "expected one of them");
        } else if policy.text(r).is_some_and(|name| !name.eq_ignore_ascii_case("Disable")) {
            let diagnostic =
                Diagnostic::warning("`TimeoutPolicy` is not honoured").label("the route has no time limit");
            r.note(policy.key_span, diagnostic.help("write the time itself as `Timeout`"));
        }
    }
    field.and_then(|field| field.duration(r))
}

fn matcher(r: &mut Reading<'_>, mut s: Section<'_>) -> RouteMatch {
    let mut matcher = RouteMatch::default();
    if let Some(field) = s.take_filled(r, "Path", "path")
        && let Some(text) = field.text(r)
    {
        // A template may leave out its first slash.
        let text = if text.starts_with('/') { text.to_owned() } else { format!("/{text}") };
        matcher.path = matching::path(r, &field, &text);
    }
    if let Some(field) = s.take_as(r, "Hosts", "hosts") {
        for item in field.list(r) {
            matcher.hosts.extend(matching::host(r, &item));
        }
    }
    if let Some(field) = s.take_as(r, "Methods", "methods") {
        let items = field.list(r);
        matcher.methods = matching::methods(r, &items);
        for (method, item) in matcher.methods.iter().zip(&items) {
            if !METHODS.contains(&method.as_str()) {
                let diagnostic = Diagnostic::error(format!("unknown method `{method}`"))
                    .label(format!("expected one of {}", METHODS.join(", ")))
                    .maybe_help(suggest::did_you_mean(method, METHODS));
                r.note(item.node.span, diagnostic);
            }
        }
    }
    if let Some(field) = s.take_as(r, "Headers", "headers") {
        matcher.headers = rules(r, &field, &HEADER_MODES, Of::Header);
    }
    if let Some(field) = s.take_as(r, "QueryParameters", "query") {
        matcher.query = rules(r, &field, &QUERY_MODES, Of::Query);
    }
    s.finish(r);
    matcher
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Header,
    Query,
}

fn rules(r: &mut Reading<'_>, field: &Field<'_>, modes: &[(&str, ValueMode)], of: Of) -> Vec<ValueRule> {
    let mut rules = Vec::new();
    for item in field.list(r) {
        let Some(mut s) = item.section(r) else { continue };
        let name = s.take_filled(r, "Name", "name").and_then(|f| f.text(r)).map(str::to_owned);
        let mut values = Vec::new();
        if let Some(list) = s.take_as(r, "Values", "values") {
            for value in list.list(r) {
                values.extend(value.text(r).map(str::to_owned));
            }
        }
        let mode = s.take_filled(r, "Mode", "mode").and_then(|f| f.word(r, modes)).unwrap_or(ValueMode::Exact);
        let case = match s.take_flag(r, "IsCaseSensitive", "case", Flag::Off) {
            Flag::On => CaseRule::Sensitive,
            Flag::Off => CaseRule::Ignore,
        };
        let span = s.span;
        s.finish(r);
        match name {
            Some(name) => {
                let name = if of == Of::Header { name.to_ascii_lowercase() } else { name };
                rules.extend(matching::value_rule(r, span, name, values, mode, case));
            }
            None => r.error(span, "a rule has no name", "expected `Name`"),
        }
    }
    rules
}

const METHODS: [&str; 8] = ["GET", "HEAD", "OPTIONS", "PUT", "POST", "PATCH", "DELETE", "TRACE"];
const HEADER_MODES: [(&str, ValueMode); 6] = [
    ("ExactHeader", ValueMode::Exact),
    ("HeaderPrefix", ValueMode::Prefix),
    ("Contains", ValueMode::Contains),
    ("NotContains", ValueMode::NotContains),
    ("Exists", ValueMode::Exists),
    ("NotExists", ValueMode::NotExists),
];
const QUERY_MODES: [(&str, ValueMode); 5] = [
    ("Exact", ValueMode::Exact),
    ("Prefix", ValueMode::Prefix),
    ("Contains", ValueMode::Contains),
    ("NotContains", ValueMode::NotContains),
    ("Exists", ValueMode::Exists),
];
