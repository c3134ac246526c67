//! What the decision makers may know of a request, without owning a byte of it.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::address::Scheme;

/// Request methods that the rules tell apart; all others are [`Method::Other`] and treated as unsafe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Safe.
    Get,
    /// Safe, no body in the answer.
    Head,
    /// Safe.
    Options,
    /// Safe; never forwarded with credentials.
    Trace,
    /// Idempotent.
    Put,
    /// Idempotent.
    Delete,
    /// Neither safe nor idempotent.
    Post,
    /// Neither safe nor idempotent.
    Patch,
    /// Refused by this proxy.
    Connect,
    /// Anything else: neither safe nor idempotent.
    Other,
}

impl Method {
    /// The method of its name (case counts, RFC 9110 9.1).
    pub fn from_bytes(name: &[u8]) -> Self {
        match name {
            b"GET" => Self::Get,
            b"HEAD" => Self::Head,
            b"OPTIONS" => Self::Options,
            b"TRACE" => Self::Trace,
            b"PUT" => Self::Put,
            b"DELETE" => Self::Delete,
            b"POST" => Self::Post,
            b"PATCH" => Self::Patch,
            b"CONNECT" => Self::Connect,
            _ => Self::Other,
        }
    }

    /// RFC 9110 9.2.1.
    pub fn is_safe(self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options | Self::Trace)
    }

    /// RFC 9110 9.2.2.
    pub fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Self::Put | Self::Delete)
    }
}

/// Looks up header fields by name.
pub trait Fields {
    /// Calls `visit` with the value of each field named `name` (lower case), in order. Values are trimmed of
    /// surrounding blanks.
    fn each(&self, name: &str, visit: &mut dyn FnMut(&[u8]));

    /// The first value of the field, as text; `None` when absent or not UTF-8.
    fn first(&self, name: &str) -> Option<String> {
        let mut found = None;
        self.each(name, &mut |value| {
            if found.is_none() {
                found = std::str::from_utf8(value).ok().map(str::to_owned);
            }
        });
        found
    }

    /// Whether such a field is there.
    fn has(&self, name: &str) -> bool {
        let mut found = false;
        self.each(name, &mut |_| found = true);
        found
    }
}

/// Fields of a request that has none.
pub struct NoFields;

impl Fields for NoFields {
    fn each(&self, _: &str, _: &mut dyn FnMut(&[u8])) {}
}

/// What is known of the request's body when its head has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BodyFacts {
    /// There is none.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunked: unknown until its end.
    Unknown,
}

/// One request, as routing, balancing and retry see it.
pub struct RequestFacts<'a> {
    /// The method.
    pub method: Method,
    /// The method's bytes, for rules that name others.
    pub method_name: &'a str,
    /// What the client's connection speaks: `https` at a listener with TLS.
    pub scheme: Scheme,
    /// Host without port, lower case when ASCII; empty when HTTP/1.0 sent none.
    pub host: &'a str,
    /// The port the client asked for: the one beside `host`, else the scheme's own (80, 443).
    pub port: u16,
    /// The path as it will be forwarded, percent-encoding untouched; starts with `/` (or is `*`).
    pub path: &'a str,
    /// What stands after `?`, without it.
    pub query: Option<&'a str>,
    /// The header fields.
    pub fields: &'a dyn Fields,
    /// The client, after trusted proxies and the PROXY protocol were heard.
    pub client: IpAddr,
    /// The body.
    pub body: BodyFacts,
    /// The client asks for another protocol (`Upgrade`).
    pub is_upgrade: bool,
    /// Which attempt the client, a proxy, says that it is (`Lazaret-Attempt`); 1 where it says nothing.
    pub attempt: u8,
}
