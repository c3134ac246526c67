//! `routes`: which requests, and what becomes of them.

use model::id::RouteId;
use model::route::{CaseRule, Route, RouteAction, RouteMatch, RoutePolicy, ValueMode, ValueRule};

use super::listener::body_limit;
use super::{buffering, entry, networks, pages, retry, split};
use crate::raw::section::{Field, Reading, Section};
use crate::report::Diagnostic;
use crate::resolve::matching::{self, Clusters};
use crate::resolve::transforms;

/// Resolves one route. `clusters` are the ids that exist.
pub fn resolve(r: &mut Reading<'_>, field: &Field<'_>, clusters: &Clusters) -> Option<Route> {
    let mut s = field.section(r)?;
    let example = "a block such as {path: \"/api/{**rest}\"}";
    let matcher = match s.take(r, "match").and_then(|field| field.section_like(r, example)) {
        Some(section) => matcher(r, section),
        None => RouteMatch::default(),
    };
    let order = s.take(r, "order").and_then(|f| f.whole(r, i64::from(i32::MIN)..=i64::from(i32::MAX)));
    let timeout = s.take(r, "timeout").and_then(|field| field.duration(r));
    let max_request_body = s.take(r, "max_request_body").map(|field| body_limit(r, &field));
    let mut policy = RoutePolicy::default();
    let action = action(r, &mut s, field, clusters, &mut policy);
    entry::resolve(r, &mut s, &mut policy);
    policy.transforms = s.take(r, "transforms").map(|field| transforms::resolve(r, &field)).unwrap_or_default();
    policy.error_pages = s.take(r, "error_pages").map(|field| pages::error_pages(r, &field)).unwrap_or_default();
    policy.maintenance = s.take(r, "maintenance").and_then(|field| pages::maintenance(r, &field));
    policy.buffering = s.take(r, "buffering").and_then(|field| buffering::resolve(r, &field)).unwrap_or_default();
    policy.retry = s.take(r, "retry").and_then(|field| retry::of_route(r, &field));
    s.finish(r);
    let order = order.and_then(|n| i32::try_from(n).ok()).unwrap_or(0);
    let id = RouteId::from(field.name.as_str());
    Some(Route { id, order, matcher, action: action?, timeout, max_request_body, policy })
}

fn matcher(r: &mut Reading<'_>, mut s: Section<'_>) -> RouteMatch {
    let mut matcher = RouteMatch::default();
    if let Some(field) = s.take(r, "hosts") {
        for item in field.list(r) {
            matcher.hosts.extend(matching::host(r, &item));
        }
    }
    if let Some(field) = s.take(r, "path")
        && let Some(text) = field.text(r)
    {
        matcher.path = matching::path(r, &field, text);
    }
    if let Some(field) = s.take(r, "methods") {
        let items = field.list(r);
        matcher.methods = matching::methods(r, &items);
    }
    if let Some(field) = s.take(r, "headers") {
        matcher.headers = rules(r, &field, Of::Header);
    }
    if let Some(field) = s.take(r, "query") {
        matcher.query = rules(r, &field, Of::Query);
    }
    s.finish(r);
    matcher
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Header,
    Query,
}

fn rules(r: &mut Reading<'_>, field: &Field<'_>, of: Of) -> Vec<ValueRule> {
    let mut rules = Vec::new();
    for item in field.list(r) {
        let Some(mut s) = item.section(r) else { continue };
        let name = s.take(r, "name").and_then(|f| f.text(r).map(|text| (f.node.span, text.to_owned())));
        let mut values = Vec::new();
        if let Some(list) = s.take(r, "values") {
            for value in list.list(r) {
                values.extend(value.text(r).map(str::to_owned));
            }
        }
        let modes = [
            ("exact", ValueMode::Exact),
            ("prefix", ValueMode::Prefix),
            ("contains", ValueMode::Contains),
            ("not_contains", ValueMode::NotContains),
            ("exists", ValueMode::Exists),
            ("not_exists", ValueMode::NotExists),
        ];
        let mode = s.take(r, "mode").and_then(|f| f.word(r, &modes)).unwrap_or(ValueMode::Exact);
        let cases = [("ignore", CaseRule::Ignore), ("sensitive", CaseRule::Sensitive)];
        let case = s.take(r, "case").and_then(|f| f.word(r, &cases)).unwrap_or_default();
        let span = s.span;
        s.finish(r);
        match name {
            Some((at, name)) if of == Of::Header && !matching::is_header_name(&name) => {
                r.error(at, format!("`{name}` is no header name"), "expected letters, digits and -");
            }
            Some((_, name)) => {
                let name = if of == Of::Header { name.to_ascii_lowercase() } else { name };
                rules.extend(matching::value_rule(r, span, name, values, mode, case));
            }
            None => r.error(span, "a rule has no name", "expected `name`"),
        }
    }
    rules
}

/// The one action of a route. A `deny` that lists networks is none: it goes into the policy.
fn action(
    r: &mut Reading<'_>,
    s: &mut Section<'_>,
    route: &Field<'_>,
    clusters: &Clusters,
    policy: &mut RoutePolicy,
) -> Option<RouteAction> {
    let mut found: Vec<Field<'_>> =
        ["cluster", "clusters", "respond", "redirect", "deny"].into_iter().filter_map(|key| s.take(r, key)).collect();
    if let Some(at) = found.iter().position(|field| field.name == "deny" && entry::is_list(field)) {
        policy.access.deny = networks(r, &found.remove(at));
    }
    let split = split::Options::take(r, s);
    match found.as_slice() {
        [] => {
            let diagnostic = Diagnostic::error(format!("route `{}` does nothing", route.name)).label(EXPECTED_ACTION);
            r.note(route.key_span, diagnostic);
            None
        }
        [one] if one.name == "clusters" => split::resolve(r, one, split, clusters),
        [one] => {
            split.refuse(r);
            single_action(r, one, clusters)
        }
        [first, second, ..] => {
            let what = format!("route `{}` has {} actions", route.name, found.len());
            let diagnostic =
                Diagnostic::error(what).label(EXPECTED_ACTION).related(r.source, first.key_span, "the first one");
            r.note(second.key_span, diagnostic);
            None
        }
    }
}

fn single_action(r: &mut Reading<'_>, field: &Field<'_>, clusters: &Clusters) -> Option<RouteAction> {
    match field.name.as_str() {
        "cluster" => {
            let text = field.text(r)?;
            clusters.named(r, text, field.node.span).map(|id| RouteAction::Cluster(Some(id)))
        }
        "respond" => {
            let mut s = field.section_like(r, "a block such as {status: 200, body: pong}")?;
            let status = s.take(r, "status").and_then(|f| f.whole(r, 200..=599)).unwrap_or(200);
            let body = s.take(r, "body").and_then(|f| f.any_text(r)).unwrap_or("").to_owned();
            s.finish(r);
            Some(RouteAction::Respond { status: u16::try_from(status).ok()?, body })
        }
        "redirect" => redirect(r, field),
        _ => field.whole(r, 400..=499).and_then(|n| u16::try_from(n).ok()).map(RouteAction::Deny),
    }
}

fn redirect(r: &mut Reading<'_>, field: &Field<'_>) -> Option<RouteAction> {
    let mut s = field.section_like(r, "a block such as {to: \"https://{host}{path}{query}\", status: 308}")?;
    let to = match s.take(r, "to") {
        Some(to) => match to.text(r) {
            Some(text) if !has_known_places(text) => {
                to.refuse(r, format!("`{text}` has an unknown place"), "expected {scheme}, {host}, {path} and {query}");
                None
            }
            Some(text) if path_may_name_a_host(text) => {
                let mend =
                    "expected a host before {path}, or one slash at most: https://{host}{path}, /new{path}, {path}";
                to.refuse(r, format!("in `{text}` the client's path would name the host"), mend);
                None
            }
            Some(text) if matching::is_header_value(text) => Some(text.to_owned()),
            Some(text) => {
                to.refuse(r, format!("`{text}` cannot stand in a header"), "expected a URL or a path");
                None
            }
            None => None,
        },
        None => {
            r.error(field.key_span, "the redirect leads nowhere", "expected `to`");
            None
        }
    };
    let status = match s.take(r, "status") {
        Some(status) => match status.whole(r, 301..=308) {
            Some(304..=306) => {
                status.refuse(r, "`status` redirects nobody", "expected 301, 302, 303, 307 or 308");
                None
            }
            other => other,
        },
        None => Some(302),
    };
    s.finish(r);
    Some(RouteAction::Redirect { to: to?, status: u16::try_from(status?).ok()? })
}

/// Whether all braces are around the places that a redirect fills.
fn has_known_places(text: &str) -> bool {
    let places = ["{scheme}", "{host}", "{path}", "{query}"];
    let rest = places.iter().fold(text.to_owned(), |rest, place| rest.replace(place, " "));
    !rest.contains(['{', '}'])
}

/// Whether what a client puts in the place of the path may be read as a host: nothing but a scheme and slashes stand
/// before it (browsers read `https:/a.test` and `https:///a.test` as `https://a.test`).
fn path_may_name_a_host(text: &str) -> bool {
    let Some((before, _)) = text.split_once("{path}") else { return false };
    // There need not be one.
    let before = before.replace("{query}", "");
    let rest = match before.split_once(':') {
        Some((scheme, rest)) if !scheme.contains(['/', '?', '#']) => rest,
        Some(_) | None => before.as_str(),
    };
    let is_slashes = rest.bytes().all(|byte| byte == b'/');
    is_slashes && !matches!(before.as_str(), "" | "/")
}

const EXPECTED_ACTION: &str = "expected one of cluster, clusters, respond, redirect or deny";
