//! Recordings from outside: random stories, and files that are not what they should be.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(missing_docs, dead_code, clippy::wildcard_enum_match_arm, clippy::type_complexity)]

#[path = "../../health/tests/inputs.rs"]
mod inputs;
#[path = "../../health/tests/world/mod.rs"]
mod world;

mod files;
mod limits;
mod replays;
mod secrets;
mod spools;
mod tape;
