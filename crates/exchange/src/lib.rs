//! One request's walk as a pure machine, and the snapshot it walks over.
//!
//! The driver (a connection of the proxy) loads one [`Snapshot`], calls [`Exchange::begin`] with the request's head,
//! does what the [`Step`] says, tells the machine what came of it by [`Exchange::handle`], and after each call hands
//! [`Exchange::report`] to the board. The machine never waits and never sees a byte of a body.
//!
//! Read in this order: [`snapshot`], [`step`], [`walk`] (the machine), [`access`] (who may come), [`limit`] (how often),
//! [`queue`] (who waits), [`split`] (to which of several clusters), `buffering` (whether the body is read first),
//! [`redirect`], [`transform`] (what goes on in place of what came), `pick` (who is next), [`grpc`], [`reason`].
#![forbid(unsafe_code)]

pub mod snapshot;
pub mod step;

pub mod walk;

pub mod access;

pub mod limit;

pub mod queue;

pub mod split;

mod buffering;

pub mod redirect;

pub mod transform;

mod pick;

pub mod grpc;

pub mod reason;

pub use reason::Reason;
pub use snapshot::Snapshot;
pub use step::{Admission, Answer, Attempt, Connection, Input, Placement, Replay, Report, RetryDenied, Shared, Step};
pub use walk::{Exchange, Worker};
