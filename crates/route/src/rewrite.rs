//! The target that goes on to a destination, where a route changes it: values of the pattern's parameters, and method,
//! path and query after the route's transforms.
//!
//! Values are taken as they came, escapes untouched, and never decoded into a path; what comes out must pass
//! [`path::check`] like any other path, so that no transform makes a path that a client may not send.

use model::pattern::{PathPattern, Segment};
use model::request::RequestFacts;
use model::transform::{Mode, TargetTransform, push_escaped};

use crate::path::{self, PathError, hex, normal, segments};

/// A changed target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The query, without `?`.
    pub query: Option<String>,
}

/// The value of each parameter of the pattern in a path that matches it, as it came. A catch-all's begins without a
/// slash; an optional one that is absent is empty.
pub fn values(pattern: &PathPattern, path: &str) -> Vec<(String, String)> {
    let mut values = Vec::new();
    let mut rest = path.strip_prefix('/').unwrap_or_default();
    for segment in &pattern.segments {
        let (here, after) = rest.split_once('/').unwrap_or((rest, ""));
        match segment {
            Segment::Literal(_) => {}
            Segment::Parameter(name) | Segment::Optional(name) => values.push((name.clone(), here.to_owned())),
            Segment::CatchAll(name) => values.push((name.clone(), rest.to_owned())),
        }
        rest = after;
    }
    values
}

/// Applies the transforms in their order. `*` has no path and keeps its query.
pub fn rewrite(
    transforms: &[TargetTransform],
    values: &[(String, String)],
    facts: &RequestFacts<'_>,
) -> Result<Target, PathError> {
    let value = |name: &str| {
        let found = values.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    };
    let mut target = Target {
        method: facts.method_name.to_owned(),
        path: facts.path.to_owned(),
        query: facts.query.map(str::to_owned),
    };
    for transform in transforms {
        match transform {
            TargetTransform::Method { from, to } => {
                if target.method.eq_ignore_ascii_case(from) {
                    target.method.clone_from(to);
                }
            }
            TargetTransform::QueryValue { name, value, mode } => set(&mut target.query, name, &encoded(value), *mode),
            TargetTransform::QueryRouteValue { name, parameter, mode } => {
                if let Some(value) = value(parameter).filter(|value| !value.is_empty()) {
                    set(&mut target.query, name, &of_path(value), *mode);
                }
            }
            TargetTransform::QueryRemove(name) => remove(&mut target.query, name),
            TargetTransform::PathSet(_)
            | TargetTransform::PathPrefix(_)
            | TargetTransform::PathRemovePrefix(_)
            | TargetTransform::PathPattern(_)
                if target.path == "*" => {}
            TargetTransform::PathSet(path) => path.as_str().clone_into(&mut target.path),
            TargetTransform::PathPrefix(prefix) => {
                let prefix = prefix.as_str().strip_suffix('/').unwrap_or(prefix.as_str());
                target.path.insert_str(0, prefix);
            }
            TargetTransform::PathRemovePrefix(prefix) => {
                if let Some(rest) = without_prefix(&target.path, prefix.as_str()) {
                    target.path = rest;
                }
            }
            TargetTransform::PathPattern(pattern) => target.path = filled(pattern, value),
        }
    }
    path::check(&target.path)?;
    Ok(target)
}

/// The path without these segments in front, compared as routes compare them; `None` where they do not stand there.
fn without_prefix(path: &str, prefix: &str) -> Option<String> {
    let mut rest = path.strip_prefix('/')?;
    let mut is_at_end = false;
    for wanted in segments(prefix) {
        if is_at_end {
            return None;
        }
        let (here, after) = match rest.split_once('/') {
            Some((here, after)) => (here, after),
            None => {
                is_at_end = true;
                (rest, "")
            }
        };
        if !normal(here).eq(normal(wanted)) {
            return None;
        }
        rest = after;
    }
    Some(format!("/{rest}"))
}

fn filled<'v>(pattern: &PathPattern, value: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut path = String::new();
    for segment in &pattern.segments {
        let text = match segment {
            Segment::Literal(text) => text,
            Segment::Parameter(name) | Segment::Optional(name) | Segment::CatchAll(name) => match value(name) {
                Some(value) if !value.is_empty() => value,
                // What is absent leaves no segment behind.
                Some(_) | None => continue,
            },
        };
        path.push('/');
        path.push_str(text);
    }
    if path.is_empty() { "/".to_owned() } else { path }
}

fn set(query: &mut Option<String>, name: &str, value: &str, mode: Mode) {
    match mode {
        Mode::Set => remove(query, name),
        Mode::Append => {}
    }
    let query = query.get_or_insert_default();
    if !query.is_empty() {
        query.push('&');
    }
    query.push_str(&encoded(name));
    query.push('=');
    query.push_str(value);
}

/// Takes the parameters of a name (case aside, escapes undone) out; the others stay byte by byte.
fn remove(query: &mut Option<String>, name: &str) {
    let Some(text) = query.as_deref() else { return };
    let is_other = |pair: &&str| !is_named(pair, name);
    let kept: Vec<&str> = text.split('&').filter(is_other).collect();
    *query = (!kept.is_empty()).then(|| kept.join("&"));
}

fn is_named(pair: &str, name: &str) -> bool {
    let key = pair.split_once('=').map_or(pair, |(key, _)| key);
    crate::predicate::decoded(key)
        .map(|byte| byte.to_ascii_lowercase())
        .eq(name.bytes().map(|b| b.to_ascii_lowercase()))
}

/// A text as it stands in a query.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => push_escaped(&mut out, byte),
        }
    }
    out
}

/// A part of a path as it stands in a query: what means something there and nothing in a path is escaped.
fn of_path(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '&' | '=' | '+' | ';' => push_escaped(&mut out, c as u8),
            _ => out.push(c),
        }
    }
    out
}

/// A part of a path as it stands in a header field: its escapes undone where that leaves visible ASCII and blanks
/// inside, else as it came.
pub fn of_header(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut bytes = value.as_bytes();
    loop {
        let (byte, rest) = match bytes {
            [] => break,
            [b'%', high, low, rest @ ..] => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, rest),
                (None, _) | (_, None) => return value.to_owned(),
            },
            [byte, rest @ ..] => (*byte, rest),
        };
        if !(b' '..0x7f).contains(&byte) {
            return value.to_owned();
        }
        out.push(char::from(byte));
        bytes = rest;
    }
    if out.trim() == out { out } else { value.to_owned() }
}

#[cfg(test)]
mod tests;
