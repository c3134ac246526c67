//! All routes, ready for look-ups.

use model::id::RouteIndex;
use model::request::RequestFacts;
use model::route::{HostPattern, Route};

use crate::host::Hosts;
use crate::path::segments;
use crate::predicate::{header_holds, query_holds};
use crate::rank;
use crate::trie::Node;

/// All routes. Built once per configuration; look-ups allocate nothing.
#[derive(Debug)]
pub struct Table {
    routes: Vec<Route>,
    /// A route together with one of its hosts (or none), the best first: a rank is an index into it.
    entries: Vec<Entry>,
    hosts: Hosts,
    /// One trie per host bucket.
    buckets: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    route: u32,
    port: Option<u16>,
}

/// What a look-up comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// This route, by its place in the configuration.
    Route(RouteIndex),
    /// Routes match but for the method: 405, with [`Table::allowed`].
    MethodNotAllowed,
    /// No route matches: 404.
    NotFound,
}

impl Table {
    /// Sorts and indexes the routes.
    pub fn new(routes: &[Route]) -> Self {
        let hosts = Hosts::new(routes.iter().flat_map(|route| &route.matcher.hosts));
        let mut pairs: Vec<(&Route, Option<&HostPattern>, usize)> = Vec::new();
        for (at, route) in routes.iter().enumerate() {
            if route.matcher.hosts.is_empty() {
                pairs.push((route, None, at));
            }
            pairs.extend(route.matcher.hosts.iter().map(|host| (route, Some(host), at)));
        }
        pairs.sort_by(|a, b| rank::compare(*a, *b));
        let mut buckets: Vec<Node> = (0..hosts.count()).map(|_| Node::default()).collect();
        let mut entries = Vec::with_capacity(pairs.len());
        for (rank, &(route, host, at)) in (0u32..).zip(&pairs) {
            for (bucket, node) in buckets.iter_mut().enumerate() {
                if host.is_none_or(|host| hosts.admits(bucket, host)) {
                    node.insert(route.matcher.path.as_ref(), rank);
                }
            }
            // More than 2^32 routes do not fit into memory.
            let route = u32::try_from(at).unwrap_or(u32::MAX);
            entries.push(Entry { route, port: host.and_then(|host| host.port) });
        }
        Self { routes: routes.to_vec(), entries, hosts, buckets }
    }

    /// The route of a request. The path must have passed [`crate::path::check`].
    pub fn find(&self, facts: &RequestFacts<'_>) -> Found {
        let mut is_method_wrong = false;
        let best = self.walk(facts, &mut |route| {
            if !holds(route, facts) {
                return false;
            }
            let is_allowed = allows(route, facts.method_name);
            is_method_wrong |= !is_allowed;
            is_allowed
        });
        match best {
            Some(route) => Found::Route(RouteIndex(route)),
            None if is_method_wrong => Found::MethodNotAllowed,
            None => Found::NotFound,
        }
    }

    /// The methods with which the request would match some route, for the Allow field of a 405 (RFC 9110 15.5.6);
    /// sorted.
    pub fn allowed(&self, facts: &RequestFacts<'_>) -> Vec<&str> {
        let mut methods: Vec<&str> = Vec::new();
        // Accepting none makes the walk see every match.
        self.walk(facts, &mut |route| {
            if holds(route, facts) {
                methods.extend(route.matcher.methods.iter().map(String::as_str));
            }
            false
        });
        methods.sort_unstable();
        methods.dedup();
        methods
    }

    /// The best route whose host and path match and that `accept` accepts.
    fn walk<'t>(&'t self, facts: &RequestFacts<'_>, accept: &mut dyn FnMut(&'t Route) -> bool) -> Option<u32> {
        let bucket = self.buckets.get(self.hosts.find(facts.host))?;
        let route =
            |rank: u32| self.entries.get(rank as usize).and_then(|e| Some((e, self.routes.get(e.route as usize)?)));
        let best = bucket.find(segments(facts.path), u32::MAX, &mut |rank| {
            route(rank).is_some_and(|(entry, route)| {
                entry.port.is_none_or(|port| port == facts.port)
                    // `*` names no path: only routes without one may match it.
                    && (facts.path != "*" || route.matcher.path.is_none())
                    && accept(route)
            })
        });
        self.entries.get(best as usize).map(|entry| entry.route)
    }
}

/// Whether everything but host, path and method matches.
fn holds(route: &Route, facts: &RequestFacts<'_>) -> bool {
    route.matcher.headers.iter().all(|rule| header_holds(rule, facts.fields))
        && route.matcher.query.iter().all(|rule| query_holds(rule, facts.query))
}

fn allows(route: &Route, method: &str) -> bool {
    route.matcher.methods.is_empty() || route.matcher.methods.iter().any(|m| m == method)
}
