//! Who is healthy: schedule, active and passive policies, availability.
//!
//! A pure core: no clock, no socket, no task. [`Core::handle`] takes what happened ([`Input`]), [`Core::poll_output`]
//! gives what is to be done ([`Output`]), [`Core::poll_timeout`] tells when [`Input::TimerDue`] is wanted next, and
//! [`Core::view`] is the picture that traffic and people read.
//!
//! ```text
//!  Configured ──> reload ──────────┐
//!  TimerDue ────> timers ─> schedule ──> Output::Probe
//!  Probed ──────> active policy ───┤
//!  OutcomeSeen ─> passive policies ┼─> verdict ─> destination ─> availability ─> Output::Event, Output::Publish
//!  SumsTaken ───> passive policies ┤
//!  PulsesTaken ─> doubt ───────────┤
//!  HealthSet ──────────────────────┘
//! ```
//!
//! Read in this order: [`input`], [`output`], `core`, then `destination` and `cluster` (the state), `schedule` (when
//! probes run), `acquittal`, `doubt`, `comparison`, `readmission` and `guards` (what is below a verdict and around it), the policies
//! ([`active`], [`passive`], [`available`]), [`registry`] (policies written by others).
#![forbid(unsafe_code)]

pub mod input;
pub mod output;

mod core;

mod acquittal;
mod away;
mod cluster;
mod comparison;
mod destination;
mod doubt;
mod effects;
mod guards;
mod invariants;
mod judge;
mod lookout;
mod pulse;
mod readmission;
mod reload;
mod rest;
mod schedule;
mod slots;
mod status;
mod timers;
mod traffic;
mod window;

pub mod checkpoint;
pub mod membership;
pub mod saved;

pub mod active;
pub mod available;
pub mod passive;
pub mod registry;

pub use crate::checkpoint::{Checkpoint, ResumeError};
pub use crate::core::{Core, Ignored};
pub use crate::input::{HealthSet, Input, OutcomeEvent, Probed, Pulse, Sum};
pub use crate::output::{Output, ProbeOrder, Ticket};
pub use crate::passive::Needs;
pub use crate::readmission::Comeback;
pub use crate::registry::Registry;
pub use crate::saved::SavedHealth;
