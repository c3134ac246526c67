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
//! Read in this order: [`handle`] (what others ask of it), [`monitor`] (the loop), then what it does: `feed` (board to
//! core), [`names`] (names to addresses), `publish` (core to board), `budgets`, `gates`, `quiet`, and [`probe`].
#![forbid(unsafe_code)]

pub mod handle;

pub mod monitor;

mod budgets;
mod feed;
mod gates;
pub mod names;
mod publish;
mod quiet;
mod summary;

pub mod probe;

pub use handle::{ConfigureError, Gone, Handle};
pub use monitor::{Context, Extensions, Monitor, prepare};
pub use names::Names;
pub use probe::{ProbeBuilder, ProbeEnd, ProbeMessage, ProbeSender};
