//! Which VIPs to announce: the pure core of `lazaret-rhi`.
//!
//! The control API of the proxy is polled in cycles; each answer gives an upstream a standing, the standings of a VIP's
//! upstreams are joined by its condition into a decision, and the decisions are compared with what the kernel really
//! holds. Nothing here waits, talks or looks at a clock: inputs go in by [`Core::handle`], effects come out of
//! [`Core::poll_output`], and [`Core::poll_timeout`] tells when the next [`Input::TimerDue`] is owed.
//!
//! ```text
//!   answer ──> upstream ──> quorum ──> vip ──┐
//!   (poll)     standing     joined    wanted │
//!                                            ├─> reconcile ──> AddAddress / RemoveAddress
//!   dump ───────────────> kernel picture ────┘
//! ```
//!
//! Read in this order: [`answer`], [`upstream`] (with [`failure`] and [`warming`]), [`quorum`], [`vip`], [`kernel`],
//! [`reconcile`], [`cycle`], and last [`core`] with `start`, `judging` (answers to decisions), `acting` (decisions to
//! addresses), `reload` and `stop`.
#![forbid(unsafe_code)]

pub mod answer;

pub mod failure;
pub mod upstream;
pub mod warming;

pub mod quorum;
pub mod vip;

pub mod commands;
pub mod kernel;
pub mod reconcile;

pub mod cycle;
pub mod event;
pub mod timers;

mod acting;
pub mod core;
mod judging;
mod reload;
mod start;
pub mod status;
mod stop;

pub use answer::{Answer, Node, PollFailure};
pub use core::{Core, Input, Output};
pub use event::{Event, Level};
pub use kernel::{AddressKey, Held, Link};
