//! What a route does to the messages that pass: transforms, in the words of YARP's.
//!
//! A list as it was written, so that it can be shown again; [`Plan`] is the same list sorted by who applies it.

use serde::{Deserialize, Serialize};

use crate::cluster::UpstreamHost;
use crate::pattern::PathPattern;

/// One transform. They apply in the order of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transform {
    /// Where the request goes, and by which method.
    Target(TargetTransform),
    /// Which header fields the destination gets.
    Request(RequestTransform),
    /// Which Host the destination gets, in place of what its cluster says.
    OriginalHost(UpstreamHost),
    /// `X-Forwarded-*`.
    XForwarded(XForwarded),
    /// `Forwarded`, in place of `X-Forwarded-*` (RFC 7239).
    Forwarded(Forwarded),
    /// Which header fields the client gets.
    Response(ResponseTransform),
}

/// Whether a value takes the place of what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It does.
    Set,
    /// It comes behind it.
    Append,
}

/// A change of method, path or query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetTransform {
    /// This path.
    PathSet(PathText),
    /// This in front of the path.
    PathPrefix(PathText),
    /// These segments taken from the front of the path, where they stand there.
    PathRemovePrefix(PathText),
    /// This path, its parameters filled from the route's pattern.
    PathPattern(PathPattern),
    /// A query parameter of this value.
    QueryValue {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
        /// In place of others of the name or behind them.
        mode: Mode,
    },
    /// A query parameter that takes its value from the route's pattern.
    QueryRouteValue {
        /// Its name.
        name: String,
        /// The pattern's parameter.
        parameter: String,
        /// In place of others of the name or behind them.
        mode: Mode,
    },
    /// No query parameter of this name.
    QueryRemove(String),
    /// Another method.
    Method {
        /// Requests of this one.
        from: String,
        /// Become this one.
        to: String,
    },
}

/// A change of the request's header fields. Names are lower case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestTransform {
    /// Whether the client's fields go on at all.
    Copy(Copying),
    /// Of the client's fields, these alone go on.
    Allowed(Vec<String>),
    /// A field of this value. `host` can be set, not appended to.
    Value {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
        /// In place of others of the name or behind them.
        mode: Mode,
    },
    /// A field that takes its value from the route's pattern.
    RouteValue {
        /// Its name.
        name: String,
        /// The pattern's parameter.
        parameter: String,
        /// In place of others of the name or behind them.
        mode: Mode,
    },
    /// No field of this name.
    Remove(String),
}

/// Whether the fields of the other side go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Copying {
    /// They do.
    #[default]
    All,
    /// None does.
    Nothing,
}

/// A change of the response's header fields. Names are lower case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseTransform {
    /// Whether the destination's fields go on at all.
    Copy(Copying),
    /// Of the destination's fields, these alone go on.
    Allowed(Vec<String>),
    /// A field of this value.
    Value {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
        /// In place of others of the name or behind them.
        mode: Mode,
        /// For which responses.
        when: When,
    },
    /// No field of this name.
    Remove {
        /// Its name.
        name: String,
        /// For which responses.
        when: When,
    },
}

/// For which responses a change holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Statuses below 400.
    #[default]
    Success,
    /// 400 and above.
    Failure,
    /// All.
    Always,
}

impl When {
    /// Whether it holds for a status.
    pub fn holds(self, status: u16) -> bool {
        match self {
            Self::Success => status < 400,
            Self::Failure => status >= 400,
            Self::Always => true,
        }
    }
}

/// What becomes of one of the fields that name the client. Nothing that came from a peer that is no trusted proxy ever
/// goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForwardAction {
    /// Overwritten.
    Set,
    /// Ours behind what a trusted proxy sent.
    Append,
    /// Removed.
    Remove,
    /// Nothing of ours; what a trusted proxy sent goes on.
    Off,
}

/// What becomes of `X-Forwarded-*`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct XForwarded {
    /// The client's address.
    pub address: ForwardAction,
    /// `http` or `https`.
    pub proto: ForwardAction,
    /// The Host that the client asked for.
    pub host: ForwardAction,
    /// The part of the path that is the proxy's own: there is none, so `Set` removes the field.
    pub prefix: ForwardAction,
    /// What the four names begin with; `X-Forwarded-` unless set.
    pub header_prefix: String,
}

/// A `Forwarded` field of ours (RFC 7239).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forwarded {
    /// What stands in it, in this order.
    pub parts: Vec<ForwardedPart>,
    /// How it goes with what came.
    pub action: ForwardAction,
}

/// A parameter of `Forwarded`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForwardedPart {
    /// Who asked us.
    For(NodeFormat),
    /// Our own address that was asked.
    By(NodeFormat),
    /// `http` or `https`.
    Proto,
    /// The Host that the client asked for.
    Host,
}

/// How a node is named (RFC 7239 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFormat {
    /// The node.
    pub name: NodeName,
    /// Its port.
    pub port: NodePort,
}

/// How a node's address is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeName {
    /// By an identifier made for this request alone.
    #[default]
    Random,
    /// Not.
    Unknown,
    /// As it is.
    Ip,
}

/// How a node's port is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodePort {
    /// Not.
    #[default]
    None,
    /// As it is.
    Port,
    /// By an identifier made for this request alone.
    Random,
}

/// A path, or segments of one, as it is sent: begins with `/`, has no dot segment, everything else is escaped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathText(String);

impl PathText {
    /// Parses a path. What may not stand in one is escaped; a query, `#`, a backslash, controls and dot segments are
    /// refused, with the reason.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if !text.starts_with('/') {
            return Err("a path starts with /");
        }
        let mut out = String::with_capacity(text.len());
        let bytes = text.as_bytes();
        for (at, &byte) in bytes.iter().enumerate() {
            let is_escape = || {
                let digits = bytes.get(at + 1..at + 3);
                digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            };
            match byte {
                b'?' | b'#' => return Err("a path has neither query nor fragment"),
                b'\\' | 0..b' ' | 0x7f => return Err("a path has no backslash and no control characters"),
                b'%' if !is_escape() => return Err("a % in a path is followed by two hex digits"),
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'%' => out.push(char::from(byte)),
                _ if b"/-._~!$&'()*+,;=:@".contains(&byte) => out.push(char::from(byte)),
                _ => push_escaped(&mut out, byte),
            }
        }
        let folded = out.to_ascii_lowercase().replace("%2e", ".");
        if ["%5c", "%00", "%2f.", ".%2f"].iter().any(|bad| folded.contains(bad)) {
            return Err("a path has no escaped backslash, NUL or slash before a dot");
        }
        let is_dots = |segment: &str| matches!(segment.split(';').next(), Some("." | ".."));
        if folded.split('/').any(is_dots) {
            return Err("a path has no dot segments");
        }
        Ok(Self(out))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Appends a byte as `%XX`.
pub fn push_escaped(out: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    for digit in [byte >> 4, byte & 15] {
        // Four bits are below the number of digits.
        out.push(char::from(DIGITS.get(usize::from(digit)).copied().unwrap_or(b'0')));
    }
}

/// Header fields that no transform may touch: they belong to one connection, to the framing, or are said otherwise.
pub fn is_reserved(name: &str) -> bool {
    const NAMES: [&str; 18] = [
        "connection",
        "content-length",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "keep-alive",
        "expect",
        "proxy",
        "proxy-connection",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-authentication-info",
        "http2-settings",
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-proto",
        "x-forwarded-host",
    ];
    let name = name.to_ascii_lowercase().replace('_', "-");
    NAMES.contains(&name.as_str()) || name.starts_with(':')
}

/// A route's transforms, sorted by who applies them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// When the route is found.
    pub target: Vec<TargetTransform>,
    /// When the request's head is written.
    pub request: Vec<RequestTransform>,
    /// The same; the last one that was listed counts.
    pub host: Option<UpstreamHost>,
    /// The same.
    pub x_forwarded: Option<XForwarded>,
    /// The same.
    pub forwarded: Option<Forwarded>,
    /// When the response's head is written.
    pub response: Vec<ResponseTransform>,
}

impl Plan {
    /// Sorts a list.
    pub fn of(transforms: &[Transform]) -> Self {
        let mut plan = Self::default();
        for transform in transforms {
            match transform {
                Transform::Target(one) => plan.target.push(one.clone()),
                Transform::Request(one) => plan.request.push(one.clone()),
                Transform::OriginalHost(host) => plan.host = Some(*host),
                Transform::XForwarded(one) => plan.x_forwarded = Some(one.clone()),
                Transform::Forwarded(one) => plan.forwarded = Some(one.clone()),
                Transform::Response(one) => plan.response.push(one.clone()),
            }
        }
        plan
    }

    /// Whether the request's head is changed by more than its target.
    pub fn changes_request(&self) -> bool {
        !self.request.is_empty() || self.x_forwarded.is_some() || self.forwarded.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped_or_refused() {
        for (text, expected) in [
            ("/a/b", Ok("/a/b")),
            ("/a b/ä%20", Ok("/a%20b/%C3%A4%20")),
            ("/a//", Ok("/a//")),
            ("a", Err(())),
            ("/a?b", Err(())),
            ("/a#b", Err(())),
            ("/a\\b", Err(())),
            ("/a/../b", Err(())),
            ("/%2e%2E/b", Err(())),
            ("/..;x", Err(())),
            ("/a%2f..", Err(())),
            ("/%5c", Err(())),
            ("/%zz", Err(())),
        ] {
            assert_eq!(PathText::parse(text).map(|path| path.0).map_err(|_| ()), expected.map(str::to_owned), "{text}");
        }
    }

    #[test]
    fn framing_and_hop_by_hop_fields_are_reserved() {
        assert!(is_reserved("Content-Length") && is_reserved("TRANSFER_ENCODING") && is_reserved(":path"));
        assert!(!is_reserved("host") && !is_reserved("x-a"));
    }
}
