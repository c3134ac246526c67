//! The flight recorder: every input of the health core, in bounded memory, as a file from which the core runs again.
//!
//! The core decides by its inputs and their times alone. So whoever keeps all of them, and the state they began with,
//! can ask later why a destination was taken out, or what other policies would have made of the same minutes. These are
//! all the ways in (the names are those of [`health::Input`]):
//!
//! ```text
//!  who says it            through                              becomes                  with the time
//!  ─────────────────────────────────────────────────────────────────────────────────────────────────────────
//!  process start, reload  monitor::takeover                    Configured               of the takeover
//!  a name's addresses     monitor::names, at the next tick     Configured               of the tick
//!  a refused reload       monitor::Handle                      ConfigRefused            of the command
//!  traffic's successes    board ──> bridge::feed               SumsTaken                of the drain: the tick, or a
//!  traffic's failures     board ──> bridge::feed               OutcomeSeen              ms after the first failure
//!  requests in flight     board ──> bridge::pulses             PulsesTaken              of the tick
//!  probes' ends           monitor::probe                       Probed                   when the monitor took them
//!  time                   the core's own poll_timeout          TimerDue                 when the monitor came to it
//!  embedding programs     monitor::Handle::set_health          HealthSet                of the command
//!  a planned stop         monitor::Handle::drain               DrainStarted             of the command
//!  the process before     health::saved                        HealthRestored           of the hand-over
//!  freed slots            monitor's quiet slots                SlotQuiet                of the tick
//! ```
//! The retry budget, the gates and the trends are no inputs: they are made of the same drains and of the core's view, and
//! say nothing back. What comes out is no part of the state, but one thing is: who is available is chosen when the core is
//! asked what is to be done, for all inputs before at once. So that is recorded, too ([`Record::Asked`]), and so is each
//! event, for [`Recording::rerun`] to compare with.
//!
//! ```text
//!   monitor ──input──> RecordedCore ──input──> Core ──outputs──> monitor
//!                          └── records ──> ring of segments ──save──> file ──read──> Recording ──> rerun, the policy lab
//!                                          └ each begins with the core's whole state (health::checkpoint)
//! ```
//!
//! No request is in a recording, and no client: only how many came to what. What may be secret in a configuration is
//! replaced (`redact`). Policies written by others are not in the state; a recording with one of them is replayed by a
//! program that has it registered, and may differ.
//!
//! Read in this order: [`recorded`] (what the monitor turns), [`ring`](mod@ring), [`records`] and `bytes` (how it is
//! written), `redact`, [`mod@file`], [`spool`] and
//! [`segments`] (the same in a folder, while it happens), [`rerun`].
#![forbid(unsafe_code)]

pub mod recorded;

pub mod ring;

pub mod records;

pub mod file;

pub mod spool;

pub mod segments;

pub mod rerun;

mod bytes;
mod frames;
mod redact;

pub use file::{Header, ReadError, Recording};
pub use recorded::{RecordedCore, Standing};
pub use records::{Asked, Record};
pub use rerun::{Difference, ReplayError, Rerun};
pub use ring::Limits;
pub use spool::{Author, Piece, Place};
