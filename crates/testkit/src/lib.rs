//! What tests share; never a normal dependency of anything.
//!
//! In reading order: text tests of cores ([`transcript`]), skipping loudly ([`skip`]).
//!
//! A failure here is a failed test, so this crate panics where another would return an error.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod skip;
pub mod transcript;

pub use skip::skip;
