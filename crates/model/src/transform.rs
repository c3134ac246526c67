//! What a route does to the messages that pass: transforms, in the words of YARP's.
//!
//! A list as it was written, so that it can be shown again; [`Plan`] is the same list sorted by who applies it.

mod forwarded;
mod path_text;

use serde::{Deserialize, Serialize};

use crate::cluster::UpstreamHost;
use crate::pattern::PathPattern;

pub use forwarded::{ForwardAction, Forwarded, ForwardedPart, NodeFormat, NodeName, NodePort, XForwarded};
pub use path_text::{PathText, push_escaped};

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
    fn framing_and_hop_by_hop_fields_are_reserved() {
        assert!(is_reserved("Content-Length") && is_reserved("TRANSFER_ENCODING") && is_reserved(":path"));
        assert!(!is_reserved("host") && !is_reserved("x-a"));
    }
}
