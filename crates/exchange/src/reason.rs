//! Why an answer is our own: its status, its RFC 9209 error type and our own word.
//!
//! On the wire: `Proxy-Status: lazaret; error=<proxy_error>; details="<details>"`.

use model::outcome::{FailureKind, Progress};

/// Why an answer is our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// A route's `respond` or `redirect`: no error.
    Route,
    /// A route's `deny`: 403 unless it says otherwise.
    Denied,
    /// The route's access list does not admit the client: 403.
    AccessDenied,
    /// The route is under `maintenance`: 503 unless it says otherwise.
    Maintenance,
    /// A redirect needs the host that the request does not name: 400.
    NoHost,
    /// The client asks more often than the route's `limit_requests` lets it: 429.
    TooManyRequests,
    /// The client has as many requests in flight as the route's `limit_connections` lets it: 429.
    TooManyInFlight,
    /// The path has no safe form: 400.
    Path,
    /// No route matches: 404.
    NoRoute,
    /// Routes match but for the method: 405.
    MethodNotAllowed,
    /// The route's cluster does not exist: 503.
    NoCluster,
    /// No destination is available: 503.
    NoneAvailable,
    /// The same under `compat: nginx`: 502.
    NoLiveUpstreams,
    /// The pinned destination is not available and its policy says 503.
    AffinityLost,
    /// All destinations have as many requests as they may have, and as many wait as may: 503.
    QueueFull,
    /// The same, and none became free in time: 503.
    QueueTimeout,
    /// Name not found: 502.
    Dns,
    /// Refused: 502.
    ConnectionRefused,
    /// Unreachable: 502.
    Unreachable,
    /// Connect timeout: 504.
    ConnectTimeout,
    /// TLS failed: 502.
    Tls,
    /// Broken off before a response: 502.
    ConnectionReset,
    /// A reused connection broke and the request may not be repeated: 502.
    ReusedConnectionReset,
    /// HTTP/2: the destination did not process the request and it could not be sent again: 502.
    Unprocessed,
    /// No byte for the idle time before a head: 504.
    ResponseTimeout,
    /// No head within the attempt's own time: 504.
    PerTryTimeout,
    /// Not HTTP: 502.
    ProtocolError,
    /// The destination's head is too large: 502.
    HeadTooLarge,
    /// The total deadline: 504.
    Deadline,
    /// No descriptor, port or memory on our side: 503.
    Local,
    /// The client went away: nothing is sent, the log says 499.
    ClientGone,
    /// The client's body was at fault: 400 (a driver that knows of a stall says 408).
    ClientBody,
}

impl Reason {
    /// All of them, for the documentation and the tests.
    pub const ALL: [Self; 32] = [
        Self::Route,
        Self::Denied,
        Self::AccessDenied,
        Self::Maintenance,
        Self::NoHost,
        Self::TooManyRequests,
        Self::TooManyInFlight,
        Self::Path,
        Self::NoRoute,
        Self::MethodNotAllowed,
        Self::NoCluster,
        Self::NoneAvailable,
        Self::NoLiveUpstreams,
        Self::AffinityLost,
        Self::QueueFull,
        Self::QueueTimeout,
        Self::Dns,
        Self::ConnectionRefused,
        Self::Unreachable,
        Self::ConnectTimeout,
        Self::Tls,
        Self::ConnectionReset,
        Self::ReusedConnectionReset,
        Self::Unprocessed,
        Self::ResponseTimeout,
        Self::PerTryTimeout,
        Self::ProtocolError,
        Self::HeadTooLarge,
        Self::Deadline,
        Self::Local,
        Self::ClientGone,
        Self::ClientBody,
    ];

    /// What a failed attempt means for the client when there is no other answer.
    pub fn of_failure(failure: Option<FailureKind>, progress: Progress) -> Self {
        let Some(failure) = failure else {
            return Self::ProtocolError;
        };
        match failure {
            FailureKind::Dns => Self::Dns,
            FailureKind::Refused => Self::ConnectionRefused,
            FailureKind::Unreachable => Self::Unreachable,
            FailureKind::ConnectTimeout => Self::ConnectTimeout,
            FailureKind::Tls => Self::Tls,
            FailureKind::Reset | FailureKind::Closed if progress == Progress::StaleReuse => Self::ReusedConnectionReset,
            FailureKind::Reset
            | FailureKind::Closed
            | FailureKind::RequestBody
            | FailureKind::BodyCut
            | FailureKind::Cancelled => Self::ConnectionReset,
            FailureKind::HeadTimeout | FailureKind::BodyTimeout => Self::ResponseTimeout,
            FailureKind::TryTimeout => Self::PerTryTimeout,
            FailureKind::Protocol | FailureKind::Status | FailureKind::Body => Self::ProtocolError,
            FailureKind::HeadTooLarge => Self::HeadTooLarge,
            FailureKind::Local => Self::Local,
            FailureKind::ClientGone => Self::ClientGone,
            FailureKind::ClientBody => Self::ClientBody,
            FailureKind::Deadline | FailureKind::ClientDeadline | FailureKind::ShortDeadline => Self::Deadline,
            FailureKind::Unprocessed | FailureKind::RefusedStream => Self::Unprocessed,
        }
    }

    /// The status of the answer, unless a route gives its own.
    pub fn status(self) -> u16 {
        match self {
            Self::Route => 200,
            Self::Path | Self::NoHost | Self::ClientBody => 400,
            Self::Denied | Self::AccessDenied => 403,
            Self::NoRoute => 404,
            Self::MethodNotAllowed => 405,
            Self::TooManyRequests | Self::TooManyInFlight => 429,
            Self::ClientGone => 499,
            Self::Dns
            | Self::NoLiveUpstreams
            | Self::ConnectionRefused
            | Self::Unreachable
            | Self::Tls
            | Self::ConnectionReset
            | Self::ReusedConnectionReset
            | Self::Unprocessed
            | Self::ProtocolError
            | Self::HeadTooLarge => 502,
            Self::NoCluster
            | Self::NoneAvailable
            | Self::AffinityLost
            | Self::QueueFull
            | Self::QueueTimeout
            | Self::Maintenance
            | Self::Local => 503,
            Self::ConnectTimeout | Self::ResponseTimeout | Self::PerTryTimeout | Self::Deadline => 504,
        }
    }

    /// The error type of RFC 9209 2.3; `None` where there is no error to speak of, or nobody to tell.
    pub fn proxy_error(self) -> Option<&'static str> {
        Some(match self {
            Self::Route | Self::ClientGone => return None,
            Self::Path | Self::NoHost | Self::MethodNotAllowed | Self::ClientBody => "http_request_error",
            Self::Denied | Self::AccessDenied | Self::TooManyRequests | Self::TooManyInFlight => "http_request_denied",
            Self::NoRoute => "destination_not_found",
            Self::NoCluster => "proxy_configuration_error",
            Self::NoneAvailable | Self::NoLiveUpstreams | Self::AffinityLost | Self::Maintenance => {
                "destination_unavailable"
            }
            Self::QueueFull | Self::QueueTimeout => "connection_limit_reached",
            Self::Dns => "dns_error",
            Self::ConnectionRefused => "connection_refused",
            Self::Unreachable => "destination_ip_unroutable",
            Self::ConnectTimeout => "connection_timeout",
            Self::Tls => "tls_protocol_error",
            Self::ConnectionReset | Self::ReusedConnectionReset | Self::Unprocessed => "connection_terminated",
            Self::ResponseTimeout | Self::PerTryTimeout | Self::Deadline => "http_response_timeout",
            Self::ProtocolError => "http_protocol_error",
            Self::HeadTooLarge => "http_response_header_section_size",
            Self::Local => "proxy_internal_error",
        })
    }

    /// Our own word, also for the access log.
    pub fn details(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Denied => "denied",
            Self::AccessDenied => "access-denied",
            Self::TooManyRequests => "too-many-requests",
            Self::TooManyInFlight => "too-many-in-flight",
            Self::Path => "ambiguous-path",
            Self::Maintenance => "maintenance",
            Self::NoHost => "no-host",
            Self::NoRoute => "no-route",
            Self::MethodNotAllowed => "method-not-allowed",
            Self::NoCluster => "no-cluster",
            Self::NoneAvailable => "none-available",
            Self::NoLiveUpstreams => "no-live-upstreams",
            Self::AffinityLost => "affinity-lost",
            Self::QueueFull => "queue-full",
            Self::QueueTimeout => "queue-timeout",
            Self::Dns => "name-not-found",
            Self::ConnectionRefused => "connection-refused",
            Self::Unreachable => "unreachable",
            Self::ConnectTimeout => "connect-timeout",
            Self::Tls => "tls-failed",
            Self::ConnectionReset => "connection-reset",
            Self::ReusedConnectionReset => "reused-connection-reset",
            Self::Unprocessed => "not-processed",
            Self::ResponseTimeout => "response-timeout",
            Self::PerTryTimeout => "per-try-timeout",
            Self::ProtocolError => "not-http",
            Self::HeadTooLarge => "response-head-too-large",
            Self::Deadline => "deadline",
            Self::Local => "out-of-resources",
            Self::ClientGone => "client-gone",
            Self::ClientBody => "client-body",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCS: &str = include_str!("../../../docs/http.md");

    #[test]
    fn every_failure_has_an_answer_with_a_status_of_its_side() {
        for failure in FailureKind::ALL {
            let reason = Reason::of_failure(Some(failure), Progress::Sent);
            let is_client = matches!(failure, FailureKind::ClientGone | FailureKind::ClientBody);
            assert_eq!(reason.status() < 500, is_client, "{failure:?}");
            assert!(reason.proxy_error().is_some() || failure == FailureKind::ClientGone, "{failure:?}");
        }
    }

    #[test]
    fn every_reason_stands_in_the_documentation_with_its_status() {
        for reason in Reason::ALL.into_iter().filter(|reason| *reason != Reason::Route) {
            let row = format!("| `{}` | {} |", reason.details(), reason.status());
            assert!(DOCS.contains(&row), "docs/http.md has no row {row}");
        }
    }

    #[test]
    fn a_broken_reused_connection_is_named() {
        let reason = Reason::of_failure(Some(FailureKind::Reset), Progress::StaleReuse);
        assert_eq!((reason.status(), reason.details()), (502, "reused-connection-reset"));
    }
}
