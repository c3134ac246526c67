//! The general driver of an exchange: any kind of client side to any kind of destination side.
//!
//! ```text
//!   ClientSide (an HTTP/2 stream, …)          machine              DestinationSide (an HTTP/1.1 leg, …)
//!       request head ── HTTP/1.1 text ──> Exchange::begin
//!                                            Step::Connect ──────────> head(text), poll_send(frame) …
//!       poll_frame ──> Replay window ────────────────────────────────> poll_send
//!       interim, head <── HTTP/1.1 text <── Step::Forward <─────────── poll_head
//!       poll_send <─────────────────────────────────────────────────── poll_frame
//! ```
//! Two things cross the seam. **Heads** are HTTP/1.1 text as `http1::forward` writes it, whatever the versions on both
//! sides: every rule on fields (hop-by-hop, framing, `X-Forwarded-*`, transforms) is stated and tested once, and a side
//! of another version converts at its own edge with the `http2` core. **Bodies** are [`Frame`]s without framing: each
//! side adds its own.
//!
//! Back-pressure: a side is asked for a frame only when the one before was taken by the other side, and the room that a
//! frame took is given back ([`ClientSide::release`], [`DestinationSide::release`]) only then. So an exchange holds at
//! most one frame per direction beside the window for replay ([`upload::Upload`]) and what a side buffers itself.
//!
//! An HTTP/1.1 client of an HTTP/1.1 destination does not come this way: [`crate::turn`] passes its bytes on as they
//! are.

mod walk;

mod gather;

mod attempt;
mod await_head;

mod ahead;
mod deliver;
mod hold;
mod switch;

mod answer;

pub(crate) mod frame;
mod upload;

pub(crate) mod side;

pub(crate) mod http1;

pub(crate) mod http2;

mod outgoing;

mod incoming;

pub(crate) use answer::refuse;
pub(crate) use incoming::{Form, Incoming};
pub(crate) use walk::{Begun, Peer, go_on, serve};
