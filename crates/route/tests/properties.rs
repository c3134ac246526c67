//! Look-ups against a naive matcher that tries every route in turn.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::{IpAddr, Ipv4Addr};

use model::address::Scheme;
use model::id::{RouteId, RouteIndex};
use model::pattern::{PathPattern, Segment};
use model::request::{BodyFacts, Method, NoFields, RequestFacts};
use model::route::{CaseRule, HostKind, HostPattern, Route, RouteAction, RouteMatch, ValueMode, ValueRule};
use proptest::prelude::*;
use route::{Found, Table};

fn facts<'a>(method: &'a str, host: &'a str, port: u16, path: &'a str, query: Option<&'a str>) -> RequestFacts<'a> {
    RequestFacts {
        method: Method::from_bytes(method.as_bytes()),
        method_name: method,
        scheme: Scheme::Http,
        host,
        port,
        path,
        query,
        fields: &NoFields,
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        body: BodyFacts::None,
        is_upgrade: false,
        attempt: 1,
    }
}

fn host(text: &str) -> HostPattern {
    let (text, port) = match text.split_once(':') {
        Some((text, port)) => (text, Some(port.parse().unwrap())),
        None => (text, None),
    };
    match text.strip_prefix("*.") {
        Some(name) => HostPattern { name: name.to_owned(), kind: HostKind::Wildcard, port },
        None => HostPattern { name: text.to_owned(), kind: HostKind::Exact, port },
    }
}

fn route(id: usize, order: i32, hosts: &[&str], path: Option<&str>, methods: &[&str], query: Option<&str>) -> Route {
    Route {
        id: RouteId::from(format!("r{id}")),
        order,
        matcher: RouteMatch {
            hosts: hosts.iter().map(|text| host(text)).collect(),
            path: path.map(|text| PathPattern::parse(text).unwrap()),
            methods: methods.iter().map(|&m| m.to_owned()).collect(),
            headers: vec![],
            query: query
                .map(|value| ValueRule {
                    name: "q".to_owned(),
                    values: vec![value.to_owned()],
                    mode: ValueMode::Exact,
                    case: CaseRule::Ignore,
                })
                .into_iter()
                .collect(),
        },
        action: RouteAction::Deny(403),
        timeout: None,
        max_request_body: None,
        policy: Default::default(),
    }
}

/// The normal form once more, in the plainest way.
fn normal(segment: &str) -> String {
    segment.to_ascii_lowercase().replace("%61", "a")
}

fn path_matches(pattern: &PathPattern, path: &str) -> bool {
    if path == "*" {
        return false;
    }
    let trimmed = path[1..].strip_suffix('/').unwrap_or(&path[1..]);
    let parts: Vec<&str> = if path == "/" { vec![] } else { trimmed.split('/').collect() };
    let mut at = 0;
    for segment in &pattern.segments {
        match segment {
            Segment::Literal(text) => {
                if parts.get(at).is_none_or(|part| normal(part) != normal(text)) {
                    return false;
                }
            }
            Segment::Parameter(_) => {
                if parts.get(at).is_none_or(|part| part.is_empty()) {
                    return false;
                }
            }
            Segment::Optional(_) => match parts.get(at) {
                None => return true,
                Some(&"") => return false,
                Some(_) => {}
            },
            Segment::CatchAll(_) => return true,
        }
        at += 1;
    }
    at == parts.len()
}

fn host_matches(pattern: &HostPattern, host: &str, port: u16) -> bool {
    pattern.port.is_none_or(|p| p == port)
        && match pattern.kind {
            HostKind::Exact => host == pattern.name,
            HostKind::Wildcard => host.ends_with(&format!(".{}", pattern.name)) && host.len() > pattern.name.len() + 1,
        }
}

/// Sort key of a route for one of its hosts: less wins.
fn key(route: &Route, host: Option<&HostPattern>, at: usize) -> impl Ord {
    let path: Vec<u8> = match &route.matcher.path {
        None => vec![4],
        Some(path) => path
            .segments
            .iter()
            .map(|segment| match segment {
                Segment::Literal(_) => 0,
                Segment::Parameter(_) => 1,
                Segment::Optional(_) => 3,
                Segment::CatchAll(_) => 4,
            })
            .collect(),
    };
    let path: Vec<u8> = path.into_iter().chain(std::iter::repeat(2)).take(8).collect();
    let host = host.map_or((2, 0, true), |host| match host.kind {
        HostKind::Exact => (0, 0, host.port.is_none()),
        HostKind::Wildcard => (1, 1000 - host.name.len(), host.port.is_none()),
    });
    (route.order, path, route.matcher.methods.is_empty(), host, 10 - route.matcher.query.len(), at)
}

fn naive(routes: &[Route], facts: &RequestFacts<'_>) -> Found {
    let mut matching = Vec::new();
    for (at, route) in routes.iter().enumerate() {
        let m = &route.matcher;
        let hosts: Vec<Option<&HostPattern>> =
            if m.hosts.is_empty() { vec![None] } else { m.hosts.iter().map(Some).collect() };
        for host in hosts {
            if host.is_none_or(|host| host_matches(host, facts.host, facts.port))
                && m.path.as_ref().is_none_or(|path| path_matches(path, facts.path))
                && m.query.iter().all(|rule| facts.query == Some(&format!("q={}", rule.values[0])))
            {
                matching.push((key(route, host, at), at));
            }
        }
    }
    matching.sort();
    let allowed = |at: usize| {
        let methods = &routes[at].matcher.methods;
        methods.is_empty() || methods.iter().any(|m| m == facts.method_name)
    };
    match matching.iter().find(|(_, at)| allowed(*at)) {
        Some((_, at)) => Found::Route(RouteIndex(u32::try_from(*at).unwrap())),
        None if matching.is_empty() => Found::NotFound,
        None => Found::MethodNotAllowed,
    }
}

fn any_host() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a.x", "b.x", "x", "*.x", "*.a.x", "c.a.x", "a.x:8080", "*.x:8080"])
}

fn any_path() -> impl Strategy<Value = Option<&'static str>> {
    prop::sample::select(vec![
        None,
        Some("/"),
        Some("/a"),
        Some("/A/b"),
        Some("/%61/b"),
        Some("/a/{x}"),
        Some("/{x}"),
        Some("/{x}/b"),
        Some("/{x}/{y}"),
        Some("/a/{x?}"),
        Some("/{**r}"),
        Some("/a/{**r}"),
        Some("/a/b/{**r}"),
        Some("/a/{x}/c/{**r}"),
        Some("/a/{x}/{y?}"),
        Some("/b"),
    ])
}

fn any_route()
-> impl Strategy<Value = (i32, Vec<&'static str>, Option<&'static str>, Vec<&'static str>, Option<&'static str>)> {
    (
        prop::sample::select(vec![0, 0, 0, 1, -1]),
        prop::collection::vec(any_host(), 0..3),
        any_path(),
        prop::sample::subsequence(vec!["GET", "POST"], 0..=2),
        prop::sample::select(vec![None, None, Some("1"), Some("2")]),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn look_ups_agree_with_trying_every_route(
        routes in prop::collection::vec(any_route(), 0..20),
        requests in prop::collection::vec((
            prop::sample::select(vec!["GET", "POST", "PUT"]),
            prop::sample::select(vec!["a.x", "b.x", "x", "c.a.x", "d.c.a.x", "y", ""]),
            prop::sample::select(vec![80u16, 8080]),
            prop::sample::select(vec![
                "/", "*", "/a", "/a/", "/a/b", "/a/B/", "/%61/b", "/a/b/c", "/a/b/c/d", "/b", "//", "//a", "/a//", "/a//b",
                "/a%2Fb", "/z", "/z/b", "/z/z",
            ]),
            prop::sample::select(vec![None, Some("q=1"), Some("q=2"), Some("r=1")]),
        ), 1..20),
    ) {
        let routes: Vec<Route> = routes
            .iter()
            .enumerate()
            .map(|(id, (order, hosts, path, methods, query))| route(id, *order, hosts, *path, methods, *query))
            .collect();
        let table = Table::new(&routes);
        for (method, host, port, path, query) in requests {
            let facts = facts(method, host, port, path, query);
            prop_assert_eq!(table.find(&facts), naive(&routes, &facts), "{} {} {} {:?}", method, host, path, query);
        }
    }

    #[test]
    fn no_text_makes_the_path_rules_or_a_look_up_panic(path in ".{0,40}", host in ".{0,20}", query in ".{0,40}") {
        let routes = [route(0, 0, &["*.x"], Some("/a/{b?}"), &[], Some("1")), route(1, 0, &[], Some("/{**r}"), &[], None)];
        let _ = route::path::check(&path);
        let _ = Table::new(&routes).find(&facts("GET", &host, 80, &path, Some(&query)));
    }
}

#[test]
fn a_deny_rule_is_not_passed_by_another_spelling_of_its_path() {
    let routes = [
        route(0, 0, &[], Some("/admin"), &[], None),
        route(1, 0, &[], Some("/api/{**rest}"), &[], None),
        route(2, 0, &[], Some("/{**rest}"), &[], None),
    ];
    let table = Table::new(&routes);
    let find = |path: &str| {
        route::path::check(path).ok()?;
        match table.find(&facts("GET", "h", 80, path, None)) {
            Found::Route(index) => Some(index.0),
            Found::MethodNotAllowed | Found::NotFound => panic!("{path} has no route"),
        }
    };
    for path in ["/admin", "/%61dmin", "/ADMIN", "/admin/", "/%41%64min"] {
        assert_eq!(find(path), Some(0), "{path}");
    }
    for path in ["/api/..%2fadmin", "/api/%2e%2e/admin", "/api//../admin", "/api/\\admin", "/api%00", "/%zz"] {
        assert_eq!(find(path), None, "{path}");
    }
    for (path, index) in [("/api/a%2Fb", 1), ("//admin", 2), ("/admin;x", 2), ("/a%20b", 2), ("/api", 1)] {
        assert_eq!(find(path), Some(index), "{path}");
    }
}

#[test]
fn a_wrong_method_is_told_from_no_route_and_names_the_right_ones() {
    let routes = [
        route(0, 0, &[], Some("/a"), &["POST", "PUT"], None),
        route(1, 0, &[], Some("/a"), &["GET"], None),
        route(2, 0, &[], Some("/b"), &["DELETE"], None),
    ];
    let table = Table::new(&routes);
    let patch = facts("PATCH", "h", 80, "/a", None);
    assert_eq!(table.find(&patch), Found::MethodNotAllowed);
    assert_eq!(table.allowed(&patch), ["GET", "POST", "PUT"]);
    assert_eq!(table.find(&facts("get", "h", 80, "/a", None)), Found::MethodNotAllowed);
    assert_eq!(table.find(&facts("GET", "h", 80, "/c", None)), Found::NotFound);
    assert_eq!(table.find(&facts("OPTIONS", "h", 80, "*", None)), Found::NotFound);
}

#[test]
fn among_equals_the_earlier_in_the_file_wins() {
    let routes = [route(0, 0, &[], Some("/{x}"), &[], None), route(1, 0, &[], Some("/{y}"), &[], None)];
    assert_eq!(Table::new(&routes).find(&facts("GET", "h", 80, "/a", None)), Found::Route(RouteIndex(0)));
}
