//! The way to a destination.
//!
//! ```text
//!   Target ──> resolve (literal: nothing to do) ──> TCP, one address after the other ──> TLS ──> Stream
//!              └────────────────────────── one deadline over all of it ──────────────────────┘
//! ```
//!
//! [`names`] asks name servers on behalf of the control thread, [`resolve`] turns what is still a name into addresses,
//! [`connect`] opens a connection and says in one [`FailureKind`] why it could not, [`tls`] keeps the TLS settings,
//! [`stream`] is what comes out. [`key`] tells connections apart, [`pool`] keeps idle ones, [`h2`] the connections that carry
//! many exchanges at once.
//!
//! [`FailureKind`]: model::outcome::FailureKind
#![forbid(unsafe_code)]

pub mod resolve;

pub mod names;

pub mod connect;

pub mod tls;

pub mod stream;

pub mod key;

pub mod pool;

pub mod h2;

pub use connect::{ConnectError, Connector, Target};
pub use key::Key;
pub use names::{LookUp, LookedUp, NameServers};
pub use resolve::{Resolve, SystemResolver};
pub use stream::Stream;
pub use tls::Tls;
