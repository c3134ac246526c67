//! HTTP/2 towards destinations: connections that carry many exchanges at once.
//!
//! ```text
//!   Connections (per worker) ── by Key ──> Peer ──┬─ Connection ──> driver task ──> Watched stream ──> destination
//!        open()                                   ├─ Connection      (spawn_local)    counts bytes
//!          └── Place ── send(request) ──> Call    └─ at most one being made
//! ```
//! `connections` finds a connection with room or makes one; `connection` is one of them, its task and what is known of
//! it; `call` is one stream: a request out, a response in; `failure` says what an error means for the request;
//! `watched` counts what comes in, which tells a slow connection from a dead one.
//!
//! Limits, all per connection: [`STREAMS`] streams at once, or fewer when the destination says so; [`STREAM_WINDOW`]
//! bytes of each response ahead of its client, and room for all streams to use theirs ([`CONNECTION_WINDOW`]), so that a
//! client that does not read never holds up the others (RFC 9113 5.2). What a client has not taken is not given back to
//! the destination.

mod call;
mod connection;
mod connections;
mod failure;
mod watched;

pub use self::call::{Call, Head, Piece};
pub use self::connection::{Connection, Place};
pub use self::connections::{Care, Connections, Opened, Wanted};
pub use self::failure::Failure;

/// Whether a message goes on after what is sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It ends with this.
    Here,
    /// Something may follow.
    Later,
}

/// Streams at once on one connection, whatever the destination allows.
pub const STREAMS: usize = 100;
/// Bytes of one response that may be on the way or wait for the client.
pub const STREAM_WINDOW: u32 = 256 * 1024;
/// The same of all responses of a connection.
pub const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS as u32;
