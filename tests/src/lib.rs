//! What the end-to-end tests share: real programs, a bounded load, destinations. The tests stand in the `tests` folder,
//! one file per promise.

pub mod binaries;
pub mod clients;
pub mod control;
pub mod generations;
pub mod grpc;
pub mod load;
pub mod mixed;
pub mod netns;
pub mod nginx;
pub mod odd;
pub mod patient;
pub mod probed;
pub mod process;
pub mod secured;
pub mod twin;
