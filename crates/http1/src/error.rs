//! What can be wrong with a head, each fault with the status that answers it.

use std::fmt;

/// A fault in the field section or in line ends, the same in requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FieldError {
    /// A line that does not end in CRLF, or a lone CR within one (RFC 9112 2.2).
    LineEnd,
    /// A line that starts with a blank: obsolete folding (RFC 9112 5.2).
    Folded,
    /// A field name that is empty or no token.
    Name,
    /// A blank between name and colon (RFC 9112 5.1).
    BlankBeforeColon,
    /// A control character in a value (RFC 9110 5.5).
    Value,
    /// The field section is longer than allowed.
    TooLarge,
    /// There are more fields than allowed.
    TooMany,
}

/// Why a request's head is refused. The connection closes after the answer: where the next request would start is
/// not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestError {
    /// In the field section.
    Field(FieldError),
    /// The request line is not `method SP target SP version`.
    RequestLine,
    /// The request line is longer than allowed.
    RequestLineTooLong,
    /// Neither HTTP/1.0 nor HTTP/1.1.
    Version,
    /// The target has none of the four forms (RFC 9112 3.2), or one that the method does not allow.
    Target,
    /// An absolute target with `https:` where no TLS is spoken, or with `http:` where it is (RFC 9110 7.4).
    TargetScheme,
    /// HTTP/1.1 without Host, or more than one Host (RFC 9112 3.2).
    HostCount,
    /// The authority of Host or target is empty, has user information or is no `host[:port]`.
    Authority,
    /// CONNECT: this is no tunnel.
    Connect,
    /// `Content-Length` is no number, or several differ (RFC 9112 6.3).
    ContentLength,
    /// `Transfer-Encoding` in HTTP/1.0, together with `Content-Length`, or not ending in one `chunked`.
    TransferEncoding,
    /// A transfer coding other than `chunked`.
    UnknownCoding,
    /// More connection options than any client has reason to send.
    ConnectionOptions,
    /// `Expect` asks for something other than `100-continue`.
    Expectation,
}

/// Why a response's head cannot be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResponseError {
    /// In the field section.
    Field(FieldError),
    /// The status line is not `version SP 3DIGIT SP reason`.
    StatusLine,
    /// The status line is longer than allowed.
    StatusLineTooLong,
    /// Neither HTTP/1.0 nor HTTP/1.1.
    Version,
    /// `Content-Length` is no number, or several differ.
    ContentLength,
    /// `Transfer-Encoding` in HTTP/1.0, together with `Content-Length`, or anything but one `chunked`.
    TransferEncoding,
    /// More connection options than any server has reason to send.
    ConnectionOptions,
}

impl RequestError {
    /// The status of the answer.
    pub fn status(self) -> u16 {
        match self {
            Self::Field(FieldError::TooLarge | FieldError::TooMany) => 431,
            Self::RequestLineTooLong => 414,
            Self::Version => 505,
            Self::Connect | Self::UnknownCoding => 501,
            Self::Expectation => 417,
            Self::Field(
                FieldError::LineEnd
                | FieldError::Folded
                | FieldError::Name
                | FieldError::BlankBeforeColon
                | FieldError::Value,
            )
            | Self::RequestLine
            | Self::Target
            | Self::TargetScheme
            | Self::HostCount
            | Self::Authority
            | Self::ContentLength
            | Self::TransferEncoding
            | Self::ConnectionOptions => 400,
        }
    }

    /// Kebab-case word for the log and the answer.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Field(field) => field.as_str(),
            Self::RequestLine => "request-line",
            Self::RequestLineTooLong => "request-line-too-long",
            Self::Version => "version",
            Self::Target => "target",
            Self::TargetScheme => "target-scheme",
            Self::HostCount => "host-count",
            Self::Authority => "authority",
            Self::Connect => "connect",
            Self::ContentLength => "content-length",
            Self::TransferEncoding => "transfer-encoding",
            Self::UnknownCoding => "unknown-coding",
            Self::ConnectionOptions => "connection-options",
            Self::Expectation => "expectation",
        }
    }
}

impl ResponseError {
    /// Whether a limit of ours was passed rather than the protocol broken.
    pub fn is_size(self) -> bool {
        matches!(self, Self::Field(FieldError::TooLarge | FieldError::TooMany) | Self::StatusLineTooLong)
    }

    /// Kebab-case word for the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Field(field) => field.as_str(),
            Self::StatusLine => "status-line",
            Self::StatusLineTooLong => "status-line-too-long",
            Self::Version => "version",
            Self::ContentLength => "content-length",
            Self::TransferEncoding => "transfer-encoding",
            Self::ConnectionOptions => "connection-options",
        }
    }
}

impl FieldError {
    fn as_str(self) -> &'static str {
        match self {
            Self::LineEnd => "line-end",
            Self::Folded => "folded-line",
            Self::Name => "field-name",
            Self::BlankBeforeColon => "blank-before-colon",
            Self::Value => "field-value",
            Self::TooLarge => "header-too-large",
            Self::TooMany => "too-many-fields",
        }
    }
}

impl From<FieldError> for RequestError {
    fn from(error: FieldError) -> Self {
        Self::Field(error)
    }
}

impl From<FieldError> for ResponseError {
    fn from(error: FieldError) -> Self {
        Self::Field(error)
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for RequestError {}
impl std::error::Error for ResponseError {}
