//! Where a redirect leads: a text in which `{scheme}`, `{host}`, `{path}` and `{query}` stand for the request's.
//!
//! What is filled in has been judged already: the host is a host, the path passed [`route::path::check`], neither holds
//! a blank or a control. A path begins with a slash of its own: where one stands before it, it is not said twice, and where
//! nothing but that stands before it, it is cut to one in all, for `//x` would name another host (RFC 3986 4.2).

use std::sync::Arc;

use model::request::RequestFacts;

/// A text and its places.
#[derive(Debug)]
pub struct RedirectView {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Text(Arc<str>),
    Scheme,
    Host,
    Path,
    Query,
}

impl RedirectView {
    /// Reads a text. What is no known place stays as it is: the configuration refuses it before.
    pub fn of(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let places =
                [("{scheme}", Part::Scheme), ("{host}", Part::Host), ("{path}", Part::Path), ("{query}", Part::Query)];
            if let Some((name, part)) = places.into_iter().find(|(name, _)| rest.starts_with(name)) {
                parts.push(part);
                rest = rest.get(name.len()..).unwrap_or_default();
            } else {
                let end = rest.char_indices().skip(1).find(|&(_, c)| c == '{').map_or(rest.len(), |(at, _)| at);
                let (literal, after) = rest.split_at(end);
                parts.push(Part::Text(literal.into()));
                rest = after;
            }
        }
        Self { parts }
    }

    /// The Location for a request; `None` when it needs a host and the request has none.
    pub(crate) fn fill(&self, facts: &RequestFacts<'_>) -> Option<Arc<str>> {
        if let [Part::Text(all)] = self.parts.as_slice() {
            return Some(Arc::clone(all));
        }
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Scheme => out.push_str(facts.scheme.as_str()),
                Part::Host if facts.host.is_empty() => return None,
                Part::Host => out.push_str(facts.host),
                Part::Path if facts.path == "*" => {}
                Part::Path if matches!(out.as_str(), "" | "/") => {
                    out.clear();
                    out.push('/');
                    out.push_str(facts.path.trim_start_matches('/'));
                }
                Part::Path if out.ends_with('/') => {
                    out.push_str(facts.path.strip_prefix('/').unwrap_or(facts.path));
                }
                Part::Path => out.push_str(facts.path),
                Part::Query => {
                    if let Some(query) = facts.query {
                        out.push('?');
                        out.push_str(query);
                    }
                }
            }
        }
        Some(out.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::address::Scheme;
    use model::request::{BodyFacts, Method, NoFields};

    #[test]
    fn places_are_filled_and_no_path_becomes_a_host() {
        let fill = |text: &str, host: &str, path: &str, query| {
            let facts = RequestFacts {
                method: Method::Get,
                method_name: "GET",
                scheme: Scheme::Https,
                host,
                port: 80,
                path,
                query,
                fields: &NoFields,
                client: [127, 0, 0, 1].into(),
                body: BodyFacts::None,
                is_upgrade: false,
                attempt: 1,
            };
            RedirectView::of(text).fill(&facts).map(|text| text.to_string())
        };
        let https = "https://{host}{path}{query}";
        assert_eq!(fill(https, "a.test", "/x%20y", Some("q=1")).as_deref(), Some("https://a.test/x%20y?q=1"));
        assert_eq!(fill(https, "[::1]", "//x", None).as_deref(), Some("https://[::1]//x"));
        assert_eq!(fill(https, "", "/", None), None);
        assert_eq!(fill("{scheme}://www.{host}{path}", "a.test", "/x", None).as_deref(), Some("https://www.a.test/x"));
        assert_eq!(fill("/new{path}", "", "/x", None).as_deref(), Some("/new/x"));
        assert_eq!(fill("{path}", "", "//evil.test/", Some("")).as_deref(), Some("/evil.test/"));
        for path in ["/evil.test/", "//evil.test/", "///evil.test/"] {
            assert_eq!(fill("/{path}", "", path, None).as_deref(), Some("/evil.test/"));
        }
        assert_eq!(fill("/new/{path}", "", "/x", None).as_deref(), Some("/new/x"));
        assert_eq!(fill("https://{host}/{path}", "a.test", "//x", None).as_deref(), Some("https://a.test//x"));
        assert_eq!(fill("/plain", "", "/x", None).as_deref(), Some("/plain"));
        assert_eq!(fill("/{other}{host}", "h", "/x", None).as_deref(), Some("/{other}h"));
    }
}
