//! Turns the health core: the control thread's loop over timers, probes, the board and commands.
//!
//! ```text
//!                    ┌──────────────────────── Monitor::run (one task) ────────────────────────┐
//!   Handle ─commands─┼─> Configured, HealthSet, DrainStarted ─┐                                │
//!   board ──waker────┼─> feed: sums, then failures ───────────┤            ┌─ Event ──> journal │
//!   clock ──100 ms───┼─> feed, retry budgets, trends, quiet ──┼─> Core ────┼─ Publish ─> board  │
//!   clock ──timers───┼─> TimerDue ────────────────────────────┤            └─ Probe ──┐         │
//!   lookup tasks ────┼─> Configured, with other addresses ────┤      ┌────────────────┘         │
//!   probe tasks ─────┼─> Probed ──────────────────────────────┘      │                          │
//!        ^           └────────────────────────────────────────────────┼─────────────────────────┘
//!        └───────────── one task per probe, on the same thread <──────┘
//! ```
//!
//! Read in this order: [`handle`] (what others ask of it), [`context`] (what it is made of), [`monitor`] (the loop), then
//! what it does: [`prepare`](mod@prepare) (TLS towards destinations), [`names`] (names to addresses), `quiet`, and
//! [`probe`], and
//! [`spool`] (the flight recorder's folder). What lies between the board and the core is the crate `bridge`.
#![forbid(unsafe_code)]

pub mod handle;

pub mod context;

pub mod monitor;

pub mod prepare;

pub mod names;
mod quiet;
mod summary;

pub mod probe;

pub mod spool;

pub use context::{Context, Extensions};
pub use handle::{ConfigureError, Gone, Handle};
pub use monitor::Monitor;
pub use names::Names;
pub use prepare::prepare;
pub use probe::{ProbeBuilder, ProbeEnd, ProbeMessage, ProbeSender};
pub use spool::Spool;
