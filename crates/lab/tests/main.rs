//! The lab's tests, one module per promise.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods)] // Scenarios are read by the tests alone.

mod cascade;
mod claims;
mod determinism;
mod faults;
mod judge;
mod labels;
mod oracles;
mod overload;
mod peers;
mod queueing;
mod replay;
mod support;
mod tries;
mod tune;
