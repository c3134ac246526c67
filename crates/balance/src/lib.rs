//! Who of the available destinations serves.
//!
//! [`Picker`] holds one cluster's policy and weights and is shared by all workers; what a worker remembers between two
//! picks (whose turn it is) stands in its own [`Turns`]. [`affinity`] binds a client to the destination that served it
//! first. Policies stand in [`policy`], one file each.
//!
//! ```text
//!   available ──minus──> excluded (tried, gate taken, weight 0) ──> Candidates ──> policy ──> one destination
//! ```
#![forbid(unsafe_code)]

pub mod affinity;

pub mod candidates;
pub mod picker;
pub mod turns;

pub mod policy;

mod index_set;

pub use candidates::{Candidates, Key, Loads, Member};
pub use index_set::IndexSet;
pub use picker::{Picker, Policies};
pub use policy::Policy;
pub use turns::Turns;
