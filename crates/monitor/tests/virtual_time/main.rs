//! The monitor over a simulated network, in virtual time: what destinations, workers and operators would see.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod commands;
mod destination;
mod extensions;
mod probes;
mod reload;
mod traffic;
mod world;
