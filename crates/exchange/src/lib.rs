//! One request's walk as a pure machine, and the snapshot it walks over.
#![forbid(unsafe_code)]

pub mod snapshot;
pub mod step;
