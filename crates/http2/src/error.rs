//! What makes an HTTP/2 message malformed (RFC 9113 8.1.1) beside what its frames already show.

use std::fmt;

/// Why a message cannot be passed on. A request like that is answered with 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Malformed {
    /// A field of the connection: `Connection`, `Keep-Alive`, `Proxy-Connection`, `Transfer-Encoding`, `Upgrade`
    /// (RFC 9113 8.2.2).
    ConnectionField,
    /// `TE` with anything but `trailers` (RFC 9113 8.2.2).
    Te,
    /// A value that begins or ends with a blank (RFC 9113 8.2.1).
    Value,
    /// `:authority` and `Host` differ, or there are several Hosts (RFC 9113 8.3.1).
    Authority,
    /// `:path` is neither an absolute path nor, for OPTIONS, `*` (RFC 9113 8.3.1).
    Path,
    /// `Content-Length` is no number, comes twice, or contradicts a message that is over with its head
    /// (RFC 9113 8.1.1).
    ContentLength,
    /// CONNECT without `:protocol`, or with one that is not spoken here (RFC 8441 4).
    Connect,
    /// What was to be converted is no HTTP/1.1 head, or holds what HTTP/2 has no form for.
    Text,
}

impl Malformed {
    /// The status of the answer to a request.
    pub fn status(self) -> u16 {
        match self {
            Self::Connect => 501,
            Self::ConnectionField
            | Self::Te
            | Self::Value
            | Self::Authority
            | Self::Path
            | Self::ContentLength
            | Self::Text => 400,
        }
    }

    /// Kebab-case word for the log and the answer.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConnectionField => "connection-field",
            Self::Te => "te",
            Self::Value => "field-value",
            Self::Authority => "authority",
            Self::Path => "target",
            Self::ContentLength => "content-length",
            Self::Connect => "connect",
            Self::Text => "head",
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for Malformed {}
