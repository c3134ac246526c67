//! What one attempt came to: facts first ([`AttemptEnd`]), then the class that policies see ([`Outcome`]).
//!
//! Sources: RFC 9110 9.2.2 (idempotence), the end states S0 to S4 of the retry design in docs/retry.md.

use serde::{Deserialize, Serialize};

/// The class of an outcome: the only thing that most passive policies look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeClass {
    /// A response that holds nothing against the destination.
    Ok,
    /// The application failed: 500, 502, 503, 504, or an answer that breaks the protocol or the connection.
    AppFail,
    /// The destination asks for less: 429, 503 with Retry-After, 529, a refused stream of HTTP/2. Never ejects; lowers weight where the policy `Overload` runs.
    Overload,
    /// No connection: refused, unreachable, name not found, TLS refused, connect time used up.
    ConnFail,
    /// No response head in time.
    Timeout,
    /// The response broke off after its head.
    Cut,
    /// Answered, but far slower than its peers. Lowers weight only.
    Slow,
    /// Says nothing about the destination: the client went away, our own limit, a stale pooled connection.
    Neutral,
}

impl OutcomeClass {
    /// All classes, in order of their codes.
    pub const ALL: [Self; 8] =
        [Self::Ok, Self::AppFail, Self::Overload, Self::ConnFail, Self::Timeout, Self::Cut, Self::Slow, Self::Neutral];

    /// Snake-case word, as in the access log and the metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::AppFail => "app_fail",
            Self::Overload => "overload",
            Self::ConnFail => "conn_fail",
            Self::Timeout => "timeout",
            Self::Cut => "cut",
            Self::Slow => "slow",
            Self::Neutral => "neutral",
        }
    }

    /// A small number for the board's records: the index in [`Self::ALL`].
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The class of a code; `None` for a number that stands for none.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// How an attempt or a probe failed, told apart as finely as the operator needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The name has no address.
    Dns,
    /// Connection refused.
    Refused,
    /// No route to host, network down.
    Unreachable,
    /// TCP and TLS together took longer than the connect timeout.
    ConnectTimeout,
    /// The TLS handshake failed, the certificate does not hold.
    Tls,
    /// The connection broke before any byte of a response.
    Reset,
    /// The connection was closed in order before any byte of a response.
    Closed,
    /// No byte for the idle time before a complete response head.
    HeadTimeout,
    /// What came is not HTTP, or breaks its framing.
    Protocol,
    /// The response head is larger than allowed. Neutral: a limit of ours.
    HeadTooLarge,
    /// Sending the request's body to the destination failed.
    RequestBody,
    /// The response's body broke off.
    BodyCut,
    /// The response's body stood still for longer than the idle timeout.
    BodyTimeout,
    /// A status outside of what was expected (probes), or one that counts as failure (traffic).
    Status,
    /// The body does not match what the probe expects.
    Body,
    /// No descriptor, no local port, no memory: ours, never the destination's.
    Local,
    /// The client went away.
    ClientGone,
    /// The client broke the protocol while sending its body, or stalled.
    ClientBody,
    /// The exchange's total deadline cut the attempt.
    Deadline,
    /// A probe was called off before it came to anything.
    Cancelled,
    /// HTTP/2: the destination said that it did not process the request and takes no more on this connection (a GOAWAY that
    /// leaves the stream out, a stream refused beside a GOAWAY; RFC 9113 6.8). Neutral: it is on its way out, not broken.
    Unprocessed,
    /// The client's own deadline (`grpc-timeout`), shorter than every limit of ours, was over. Neutral: how long is too
    /// long was not ours to say.
    ClientDeadline,
    /// No response head within the attempt's own time (`per_try_timeout`).
    TryTimeout,
    /// HTTP/2: the destination refused the stream of a connection that goes on (REFUSED_STREAM, RFC 9113 8.7): it did not
    /// process the request, and asks for less.
    RefusedStream,
    /// The exchange's total deadline cut an attempt that had got less than nine tenths of what a first attempt may have at
    /// most: earlier attempts or waiting took the rest. Neutral: it was not given the time in which the others answer.
    ShortDeadline,
}

impl FailureKind {
    /// All kinds, in order of their codes.
    pub const ALL: [Self; 25] = [
        Self::Dns,
        Self::Refused,
        Self::Unreachable,
        Self::ConnectTimeout,
        Self::Tls,
        Self::Reset,
        Self::Closed,
        Self::HeadTimeout,
        Self::Protocol,
        Self::HeadTooLarge,
        Self::RequestBody,
        Self::BodyCut,
        Self::BodyTimeout,
        Self::Status,
        Self::Body,
        Self::Local,
        Self::ClientGone,
        Self::ClientBody,
        Self::Deadline,
        Self::Cancelled,
        Self::Unprocessed,
        Self::ClientDeadline,
        Self::TryTimeout,
        Self::RefusedStream,
        Self::ShortDeadline,
    ];

    /// Snake-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::ConnectTimeout => "connect_timeout",
            Self::Tls => "tls",
            Self::Reset => "reset",
            Self::Closed => "closed",
            Self::HeadTimeout => "timeout",
            Self::Protocol => "protocol",
            Self::HeadTooLarge => "head_too_large",
            Self::RequestBody => "request_body",
            Self::BodyCut => "body_cut",
            Self::BodyTimeout => "body_timeout",
            Self::Status => "status",
            Self::Body => "body",
            Self::Local => "local",
            Self::ClientGone => "client_gone",
            Self::ClientBody => "client_body",
            Self::Deadline => "deadline",
            Self::Cancelled => "cancelled",
            Self::Unprocessed => "unprocessed",
            Self::ClientDeadline => "client_deadline",
            Self::TryTimeout => "per_try_timeout",
            Self::RefusedStream => "refused_stream",
            Self::ShortDeadline => "short_deadline",
        }
    }

    /// A small number for the board's records: the index in [`Self::ALL`].
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The kind of a code; `None` for a number that stands for none.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// How far an attempt got, from safest to least safe to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Progress {
    /// S0: no byte of the request was handed to the destination. Any method may go elsewhere.
    NotSent,
    /// S1: a reused connection ended without one byte of a response.
    StaleReuse,
    /// S2: sent (in part at least), no complete response head.
    Sent,
    /// S3: a response head came and nothing of it went to the client.
    HeadSeen,
    /// S4: the client has seen a part of the response.
    Forwarded,
}

/// The status that a gRPC call ended with: `grpc-status` in the trailers, or in a head that is the whole response
/// (gRPC over HTTP/2, "Responses"; the codes stand in gRPC's statuscodes.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallStatus(pub u8);

impl CallStatus {
    /// What a value that is no number means.
    pub const UNKNOWN: Self = Self(2);
    /// Too late.
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    /// The server asks for less, or the caller has used up its share.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    /// The server is broken.
    pub const INTERNAL: Self = Self(13);
    /// The server cannot serve now.
    pub const UNAVAILABLE: Self = Self(14);
    /// What the server keeps is lost.
    pub const DATA_LOSS: Self = Self(15);

    /// Reads the value of `grpc-status`.
    pub fn parse(value: &[u8]) -> Self {
        let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        number.map_or(Self::UNKNOWN, Self)
    }
}

/// The facts of one attempt's end, as the driver saw them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptEnd {
    /// How far it got.
    pub progress: Progress,
    /// How it failed; `None` for a response that came whole (whatever its status).
    pub failure: Option<FailureKind>,
    /// The response's status, when a head came.
    pub status: Option<u16>,
    /// What the call came to, when it was one of gRPC and its end was seen.
    pub call: Option<CallStatus>,
    /// A `Retry-After` stood in the response.
    pub retry_after: bool,
    /// At least one byte of a response came (also of an incomplete head).
    pub response_bytes_seen: bool,
    /// The client was gone when it ended.
    pub client_gone: bool,
    /// It ran over a pooled connection that had carried requests before.
    pub reused: bool,
}

/// Which of its request's tries an attempt was. Who gets a first try is chance, whatever the request is; a repeat is of a request
/// that has failed elsewhere, and may be one that fails wherever it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Try {
    /// The first of this proxy. One that is sent again for nothing over a fresh connection is still the first.
    First,
    /// A later one: another destination has failed it.
    Repeat,
}

impl Try {
    /// Both.
    pub const ALL: [Self; 2] = [Self::First, Self::Repeat];

    /// Of the attempt with this number; the first is 1.
    pub fn of_number(number: u8) -> Self {
        if number > 1 { Self::Repeat } else { Self::First }
    }
}

/// What a policy learns of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its class.
    pub class: OutcomeClass,
    /// The failure behind it, if any.
    pub failure: Option<FailureKind>,
    /// The response's status, when a head came.
    pub status: Option<u16>,
    /// The exchange could in fact have repeated the request when this attempt ended (nginx counts a listed status
    /// only then).
    pub retryable: bool,
    /// The client was gone when it ended.
    pub client_gone: bool,
}

/// How a destination's recent attempts went, all workers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trend {
    /// Well enough, or nothing is known.
    Steady,
    /// Most of them failed.
    Failing,
}
