//! Time limits towards destinations and clients, each of which fires with a status and a reason that names it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Time limits of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// TCP and TLS together.
    pub connect: Duration,
    /// No byte on either side of a running exchange for so long (YARP's activity timeout); also bounds the wait for
    /// the response head.
    pub idle: Duration,
    /// No byte on either side of a tunnel (an upgraded connection) for so long.
    pub tunnel_idle: Duration,
    /// Pooled connections to destinations are closed after so long without use.
    pub pool_idle: Duration,
    /// Pooled connections kept per worker and destination; `None`: no cap.
    pub pool_size: Option<u32>,
    /// While exchanges wait on an HTTP/2 connection to a destination: a PING after so long without a byte from it, the
    /// connection's end after as long again; `None`: never. Some gRPC servers close a connection for it.
    pub http2_ping: Option<Duration>,
}

impl Timeouts {
    /// Defaults of the native format.
    pub const NATIVE: Self = Self {
        connect: Duration::from_secs(1),
        idle: Duration::from_secs(60),
        tunnel_idle: Duration::from_secs(3600),
        pool_idle: Duration::from_secs(30),
        pool_size: Some(64),
        http2_ping: None,
    };
    /// Defaults of a YARP file.
    pub const YARP: Self = Self {
        connect: Duration::from_secs(15),
        idle: Duration::from_secs(100),
        tunnel_idle: Duration::from_secs(100),
        pool_idle: Duration::from_secs(60),
        pool_size: None,
        http2_ping: None,
    };
}

/// Limits on what a client may send and how slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientLimits {
    /// From the first byte of a request head (on a new connection: from its accept) to its last.
    pub header_timeout: Duration,
    /// Idle time between two requests of one connection.
    pub keepalive: Duration,
    /// From the accept to the end of the TLS handshake.
    pub tls_handshake: Duration,
    /// Longest request line, bytes.
    pub request_line: usize,
    /// Longest request head without the request line, bytes.
    pub header_bytes: usize,
    /// Most header fields.
    pub header_fields: usize,
    /// Longest request body, bytes; `None`: no limit.
    pub body: Option<u64>,
}

impl ClientLimits {
    /// Defaults of the native format.
    pub const NATIVE: Self = Self {
        header_timeout: Duration::from_secs(10),
        keepalive: Duration::from_secs(75),
        tls_handshake: Duration::from_secs(10),
        request_line: 8 * 1024,
        header_bytes: 32 * 1024,
        header_fields: 100,
        body: None,
    };
    /// Defaults of a YARP file.
    pub const YARP: Self = Self {
        header_timeout: Duration::from_secs(30),
        keepalive: Duration::from_secs(130),
        body: Some(30_000_000),
        ..Self::NATIVE
    };
}
