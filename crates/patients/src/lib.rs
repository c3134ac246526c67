//! Misbehaving destinations, embedded: what the demo and the tests send traffic to.
//!
//! A [`Patient`] is a small HTTP/1.1 server whose [`Behaviour`] can change at any moment, by hand or by a [`Script`]. It
//! answers `/health` like everything else, unless its health is told to behave otherwise. One that works
//! ([`Patient::work`]) has a queue, and for each request a time it takes and an end.
//!
//! ```no_run
//! # async fn demo() -> std::io::Result<()> {
//! use patients::{Behaviour, Patient};
//!
//! let patient = Patient::start("red").await?;
//! patient.set(Behaviour::Hang);
//! patient.play("0s serve 5ms; 10s die; 25s serve 5ms".parse().map_err(std::io::Error::other)?);
//! assert_eq!(patient.counts().requests, 0);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod behaviour;
mod connection;
mod patient;
mod script;
mod work;

pub use behaviour::{Behaviour, UnknownBehaviour};
pub use patient::{Counts, Patient};
pub use script::{Script, Step};
pub use work::{End, Task, Work};
