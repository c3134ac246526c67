//! Addresses on interfaces: reading, changing, watching.
//!
//! ```text
//!   driver ──commands, reads──> queue task ──one at a time──> command socket ──> kernel
//!     ^                            │                                               │
//!     └──── answers, in order ─────┘                                               │
//!     ^                                                                            │
//!     └──── "something changed" ── monitor task <── multicast socket <─────────────┘
//! ```
//!
//! There are two sockets, because on one that both commands and listens, netlink-proto takes the notification of an own
//! IPv4 change (it carries the command's sequence number) for part of the command's answer, and it never arrives.
//!
//! Walk: [`addresses`] (the trait), [`linux`] and [`fake`] (its two sides), [`queue`] (order), [`monitor`].

pub mod addresses;

pub mod fake;
pub mod linux;

pub mod queue;

pub mod monitor;
