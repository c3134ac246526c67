//! Between the board and the health core: what traffic left becomes the core's inputs, and the core's picture becomes the
//! snapshot that traffic reads.
//!
//! ```text
//!   board ──drain──> feed ──> Input ──> health::Core ──view──> publish ──Snapshot──> board
//!     ^                └─ sums ──> budgets, trends                        gates ──────┘
//! ```
//!
//! Pure: whoever turns the health core (the monitor over real sockets, the policy lab in virtual time) and whoever carries
//! requests (the proxy, and the lab again) calls this with the time of its own clock, so all do the very same.
//!
//! Read in this order: [`settle`] (attempts to board), [`feed`] and [`pulses`] (board to core), [`publish`] (core to board),
//! [`budgets`], [`gates`].
#![forbid(unsafe_code)]

pub mod settle;

pub mod feed;

pub mod pulses;

pub mod publish;

pub mod budgets;

pub mod gates;

pub use budgets::Budgets;
pub use feed::{Reach, Taken};
pub use gates::Gates;
pub use publish::Publisher;
pub use pulses::Pulses;
