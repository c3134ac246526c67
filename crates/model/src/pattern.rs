//! Parsed path patterns: literals, `{name}`, `{name?}` and a closing `{**rest}`.
//!
//! Grammar as in ASP.NET route templates, without constraints: segments between slashes, each a literal (compared
//! without case) or one parameter; an optional parameter or a catch-all only at the end. `/api/{**rest}` also matches
//! `/api`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A parsed pattern; `Display` gives its text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PathPattern {
    /// The segments after each slash.
    pub segments: Vec<Segment>,
}

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Segment {
    /// Matches itself, without case.
    Literal(String),
    /// `{name}`: any one segment that is not empty.
    Parameter(String),
    /// `{name?}`: one segment or none; last.
    Optional(String),
    /// `{**name}` or `{*name}`: the rest, also none; last.
    CatchAll(String),
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments.is_empty() {
            return f.write_str("/");
        }
        self.segments.iter().try_for_each(|segment| match segment {
            Segment::Literal(text) => write!(f, "/{text}"),
            Segment::Parameter(name) => write!(f, "/{{{name}}}"),
            Segment::Optional(name) => write!(f, "/{{{name}?}}"),
            Segment::CatchAll(name) => write!(f, "/{{**{name}}}"),
        })
    }
}

/// Why a text is no path pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// Byte offset in the text.
    pub at: usize,
    /// What is wrong there.
    pub message: &'static str,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message)
    }
}

impl std::error::Error for PatternError {}

impl PathPattern {
    /// Parses a pattern. It must start with `/`.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let error = |at, message| PatternError { at, message };
        let rest = text.strip_prefix('/').ok_or(error(0, "a path starts with /"))?;
        let mut segments = Vec::new();
        if rest.is_empty() {
            return Ok(Self { segments });
        }
        let mut at = 1;
        let mut parts = rest.split('/').peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none() || (parts.clone().count() == 1 && parts.clone().all(str::is_empty));
            let segment = parse_segment(part).map_err(|message| error(at, message))?;
            match &segment {
                Segment::Literal(text) if text.is_empty() => {
                    if !is_last || parts.peek().is_some() {
                        return Err(error(at, "there is an empty segment between two slashes"));
                    }
                    // A trailing slash says nothing: `/api/` matches what `/api` matches.
                    break;
                }
                Segment::Optional(_) | Segment::CatchAll(_) if !is_last => {
                    return Err(error(at, "an optional parameter or a catch-all stands at the end only"));
                }
                Segment::Literal(_) | Segment::Parameter(_) | Segment::Optional(_) | Segment::CatchAll(_) => {}
            }
            if let Some(name) = segment.name()
                && segments.iter().any(|s: &Segment| s.name() == Some(name))
            {
                return Err(error(at, "two parameters have the same name"));
            }
            segments.push(segment);
            at += part.len() + 1;
        }
        Ok(Self { segments })
    }
}

impl Segment {
    /// The parameter's name.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Literal(_) => None,
            Self::Parameter(name) | Self::Optional(name) | Self::CatchAll(name) => Some(name),
        }
    }
}

fn parse_segment(part: &str) -> Result<Segment, &'static str> {
    let Some(inner) = part.strip_prefix('{') else {
        return if part.contains('*') {
            Err("what a * stands for has a name: {name} for one segment, {**rest} for all that is left")
        } else if part.contains(['{', '}', '?', '#']) {
            Err("a parameter fills its whole segment: {name}")
        } else {
            Ok(Segment::Literal(part.to_owned()))
        };
    };
    let inner = inner.strip_suffix('}').ok_or("a parameter ends with }")?;
    let (kind, name): (fn(String) -> Segment, &str) = if let Some(name) = inner.strip_prefix("**") {
        (Segment::CatchAll, name)
    } else if let Some(name) = inner.strip_prefix('*') {
        (Segment::CatchAll, name)
    } else if let Some(name) = inner.strip_suffix('?') {
        (Segment::Optional, name)
    } else {
        (Segment::Parameter, inner)
    };
    if name.contains(':') {
        return Err("constraints on parameters ({id:int}) are not supported");
    }
    if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-' || c == '.') {
        return Err("a parameter's name consists of letters, digits, _, - and .");
    }
    Ok(kind(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_parse_and_print_back() {
        for (text, shown) in [
            ("/", "/"),
            ("/api/{**rest}", "/api/{**rest}"),
            ("/a/{id}/b", "/a/{id}/b"),
            ("/a/{id?}", "/a/{id?}"),
            ("/api/", "/api"),
            ("{", ""),
            ("/a//b", ""),
            ("/{**r}/x", ""),
            ("/a{b}", ""),
            ("/{id:int}", ""),
            ("/{a}/{a}", ""),
        ] {
            assert_eq!(PathPattern::parse(text).map(|p| p.to_string()).unwrap_or_default(), shown, "{text}");
        }
    }
}
