//! HTTP/2 towards clients (RFC 9113), on the `h2` crate: it speaks frames, what stands here decides.
//!
//! ```text
//!   connection::serve ── preface by prior knowledge, or ALPN ──> h2::connection::serve      one task per connection:
//!                                                                   │ accepts, counts, ends it
//!                                                                   │ parts: what of it was woken
//!                                                                   ├─ a seat per stream ──> stream::serve
//!                                                                   │                          └─ relay::serve(side::StreamSide)
//!                                                                   └─ outlet: what all of them said leaves together
//! ```
//! What a client can make grow, and by what it is bounded:
//!
//! | what | bound |
//! |---|---|
//! | streams at once | `http2.streams`; more are refused (REFUSED_STREAM) |
//! | a header block, CONTINUATION frames | the listener's `limits`, told by SETTINGS_MAX_HEADER_LIST_SIZE |
//! | request bodies that wait | windows: 64 KiB a stream, 1 MiB a connection; given back as the destination takes them |
//! | responses that wait | 64 KiB a stream, and one frame in hand |
//! | streams that are reset at once (CVE-2023-44487) | `http2.streams` that were not served yet: who opens what it may and gives all of it up goes on; beyond [`connection::RESETS`] served ones, more than half of all: ENHANCE_YOUR_CALM |
//! | streams that we had to reset | 100 |
//! | frames that wait to leave | 32 KiB and one frame, while the client's socket takes nothing |
//! | PING and SETTINGS | each is answered before the next frame is read |
//! | empty DATA frames | the `h2` crate's budget for frames without content |
//! | a connection without streams | `keepalive`; before its first stream `header_timeout` |

pub(crate) mod connection;
mod outlet;
mod parts;

mod stream;

mod side;

pub(crate) use connection::{Entrance, serve};
pub(crate) use stream::Start;

/// Whether a connection that begins with these bytes speaks HTTP/2 by prior knowledge (RFC 9113 3.3, 3.4). The first
/// line tells; the `h2` crate looks at the rest.
pub(crate) fn is_preface(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PRI * HTTP/2.0\r\n")
}
