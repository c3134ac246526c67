//! Everything that is tested from outside, in virtual time: one program, one module per subject.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(missing_docs, clippy::wildcard_enum_match_arm, clippy::type_complexity)]

mod inputs;
mod world;

mod yarp_available;
mod yarp_consecutive_failures;
mod yarp_middleware;
mod yarp_monitor;
mod yarp_resolver;
mod yarp_scheduler;
mod yarp_transport_failure_rate;
mod yarp_updater;

mod acquittal;
mod checkpoint;
mod doubt;
mod guards;
mod membership;
mod names;
mod nginx_max_fails;
mod overload;
mod passive;
mod registry;
mod reload;
mod returning;
mod saved;
mod schedule;
mod slots;
mod stall;
mod tries;

mod properties;
mod reference;
mod transcripts;
