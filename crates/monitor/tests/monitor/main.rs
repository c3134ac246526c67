//! The monitor over a simulated network, in virtual time: what destinations, workers and operators would see; and over
//! loopback, where the kernel and TLS have a word.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod answers;
mod commands;
mod destination;
mod extensions;
mod loopback;
mod probes;
mod reload;
mod traffic;
mod world;
