//! What tests share; never a normal dependency of anything.
//!
//! In reading order: text tests of cores ([`transcript`]), skipping and measuring again loudly ([`skip()`], [`again()`]), certificates ([`certificates`]),
//! the two ends of a raw HTTP/1.1 conversation ([`destination`], [`client`]) with the little parsing they share
//! ([`message`]), requests that wait for each other ([`gathering`]), a destination of raw HTTP/2 frames ([`frames`]), a bad wire between them ([`relay`]), and a name server
//! ([`name_server`]).
//!
//! Clients, destinations and relays run on threads of their own and block with a bound, so that tests with and without a
//! runtime can use them. A failure here is a failed test, so this crate panics where another would return an error.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod again;
pub mod certificates;
pub mod client;
pub mod destination;
pub mod frames;
pub mod gathering;
pub mod message;
pub mod name_server;
pub mod relay;
pub mod skip;
pub mod transcript;
pub mod wait;

pub use again::again;
pub use skip::skip;
pub use wait::eventually;
