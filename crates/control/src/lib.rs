//! The control API: what health checkers, RHI, people and scrapers ask of a running `lazaret`.
//!
//! Walk: [`listen`] (TCP for reading, a unix socket for changing), [`access`] (who may change), `hosts` (which names are ours), [`routes`] (every path)
//! and its handlers, [`document`] (what is answered), [`openapi`] (the same, described).
//!
//! ```text
//!   TCP 127.0.0.1:9090 ─┐                                     ┌─ Process::published   configuration + health, one snapshot
//!                       ├─> connection (256 of each) ─> routes ┼─ Journal              numbered events
//!   unix socket ────────┘     StallGuard, peer                └─ mpsc Command ─> the program ─> oneshot reply
//! ```
//!
//! Tasks: one accept loop, one per connection, one that watches for readiness; all end with [`serve::serve`]. Nothing
//! here decides anything about health, and nothing here holds a snapshot longer than one answer takes.
#![forbid(unsafe_code)]

pub mod context;
pub mod listen;

pub mod access;
mod hosts;
pub mod serve;

pub mod routes;

pub mod document;
pub mod openapi;

mod connection;

pub use context::{
    Command, Context, FailedUpgrades, Instance, Process, Published, RecordReply, ReloadReply, Trouble, Vitals,
};
pub use listen::{BindError, Listeners};
pub use serve::serve;
