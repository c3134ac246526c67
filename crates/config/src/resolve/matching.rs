//! Which requests a route takes: the parts that every format has, checked alike.

use std::collections::BTreeMap;

use model::cluster::Cluster;
use model::id::ClusterId;
use model::pattern::PathPattern;
use model::route::{CaseRule, HostKind, HostPattern, ValueMode, ValueRule};

use crate::raw::section::{Field, Reading};
use crate::report::{Diagnostic, suggest};
use crate::source::Span;

/// The ids of the clusters that exist, for routes to name. Found without case.
pub struct Clusters(BTreeMap<String, Vec<ClusterId>>);

impl Clusters {
    /// Of these.
    pub fn of(clusters: &[Cluster]) -> Self {
        let mut ids: BTreeMap<String, Vec<ClusterId>> = BTreeMap::new();
        for cluster in clusters {
            ids.entry(cluster.id.as_str().to_ascii_lowercase()).or_default().push(cluster.id.clone());
        }
        Self(ids)
    }

    /// The one of exactly this name.
    pub fn exactly(&self, name: &str) -> Option<&ClusterId> {
        self.0.get(&name.to_ascii_lowercase())?.iter().find(|id| id.as_str() == name)
    }

    /// The one of this name, case aside.
    pub fn without_case(&self, name: &str) -> Option<&ClusterId> {
        self.0.get(&name.to_ascii_lowercase())?.first()
    }

    /// The one of exactly this name; an error at `span` when there is none.
    pub fn named(&self, r: &mut Reading<'_>, name: &str, span: Span) -> Option<ClusterId> {
        let found = self.exactly(name).cloned();
        if found.is_none() {
            let diagnostic = Diagnostic::error(format!("there is no cluster `{name}`"))
                .label("expected the id of a cluster of this file")
                .maybe_help(self.did_you_mean(name));
            r.note(span, diagnostic);
        }
        found
    }

    /// ``did you mean `x`?``
    pub fn did_you_mean(&self, name: &str) -> Option<String> {
        suggest::did_you_mean(name, self.0.values().flatten().map(ClusterId::as_str))
    }
}

/// A host name, `*.` in front and `:port` behind allowed.
pub fn host(r: &mut Reading<'_>, field: &Field<'_>) -> Option<HostPattern> {
    let text = field.text(r)?;
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !name.ends_with(':') && (!name.contains(':') || name.ends_with(']')) => {
            (name, Some(port))
        }
        Some(_) | None => (text, None),
    };
    let port = match port.map(str::parse::<u16>) {
        None => None,
        Some(Ok(port)) if port != 0 => Some(port),
        Some(_) => {
            field.refuse(r, format!("`{text}` is no host"), "expected a port from 1 to 65535 behind the colon");
            return None;
        }
    };
    let (kind, name) = match name.strip_prefix("*.") {
        Some(below) => (HostKind::Wildcard, below),
        None => (HostKind::Exact, name),
    };
    if !name.is_ascii() {
        let diagnostic = Diagnostic::error(format!("`{text}` is not ASCII"))
            .label("expected the name as it is sent, in its xn-- form");
        r.note(field.node.span, diagnostic);
        return None;
    }
    let literal = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
    if !is_name && literal.is_none_or(|ip| ip.parse::<std::net::Ipv6Addr>().is_err()) {
        field.refuse(r, format!("`{text}` is no host"), "expected a name such as example.com or *.example.com");
        return None;
    }
    let name = literal.unwrap_or(name).to_ascii_lowercase();
    Some(HostPattern { name, kind, port })
}

/// A path pattern.
pub fn path(r: &mut Reading<'_>, field: &Field<'_>, text: &str) -> Option<PathPattern> {
    match PathPattern::parse(text) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let mut diagnostic = Diagnostic::error(format!("`{text}` is no path pattern")).label(error.message);
            if let Some(meant) = meant(text) {
                diagnostic = diagnostic.help(format!("did you mean `{meant}`?"));
            }
            r.note(field.node.span, diagnostic);
            None
        }
    }
}

/// The pattern that `text` probably stands for: one without its slash, with other products' stars, or with a constraint.
fn meant(text: &str) -> Option<PathPattern> {
    let text = text.strip_prefix('/').unwrap_or(text);
    // A regular expression or a glob for all that is below.
    let (head, rest) = match [".*", "/**", "**", "*"].iter().find_map(|star| text.strip_suffix(star)) {
        Some(head) => (head.trim_end_matches('/'), "/{**rest}"),
        None => (text, ""),
    };
    let parts = head.split('/').filter(|part| !part.is_empty()).enumerate().map(|(at, part)| {
        let constrained = part.strip_prefix('{').and_then(|inner| inner.split_once(':'));
        match (part, constrained) {
            ("*", _) => format!("/{{part{}}}", at + 1),
            (_, Some((name, _))) => format!("/{{{name}}}"),
            (_, None) => format!("/{part}"),
        }
    });
    PathPattern::parse(&format!("{}{rest}", parts.collect::<String>())).ok()
}

/// Methods, upper case, each once.
pub fn methods(r: &mut Reading<'_>, items: &[Field<'_>]) -> Vec<String> {
    let mut methods: Vec<String> = Vec::new();
    for item in items {
        let Some(text) = item.text(r) else { continue };
        let is_token = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
        let method = text.to_ascii_uppercase();
        if !is_token {
            item.refuse(r, format!("`{text}` is no method"), "expected a name such as GET");
        } else if methods.contains(&method) {
            item.refuse(r, format!("`{method}` stands here twice"), "expected each method once");
        } else {
            methods.push(method);
        }
    }
    methods
}

/// Whether a name may stand for a header field.
pub fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Whether a value may stand behind a header field.
pub fn is_header_value(value: &str) -> bool {
    value.bytes().all(|b| b == b'\t' || (b >= b' ' && b != 0x7f))
}

/// Puts a rule together; values and mode must agree.
pub fn value_rule(
    r: &mut Reading<'_>,
    span: Span,
    name: String,
    values: Vec<String>,
    mode: ValueMode,
    case: CaseRule,
) -> Option<ValueRule> {
    let needs_values = match mode {
        ValueMode::Exists | ValueMode::NotExists => false,
        ValueMode::Exact | ValueMode::Prefix | ValueMode::Contains | ValueMode::NotContains => true,
    };
    if needs_values && values.is_empty() {
        r.error(span, format!("the rule on `{name}` has no values"), "expected `values`, or the mode Exists");
        return None;
    }
    if !needs_values && !values.is_empty() {
        r.error(span, format!("the rule on `{name}` has values"), "expected none with Exists and NotExists");
        return None;
    }
    Some(ValueRule { name, values, mode, case })
}
