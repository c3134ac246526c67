//! The simulated world: proxies, destinations and clients in virtual time.
//!
//! ```text
//!   source ──arrival──> flight ──Exchange──> destination (queue, faults) ──Completed──> flight ──> meter
//!                          └──report──> board of its proxy ──> health core ──snapshot──┘   ^
//!                                         probes <── core, models ───────────────────────┘
//! ```
//!
//! One queue of events; what happens at the same time happens in the order in which it was planned. Time between proxy and
//! destination is added to a request's time and to nothing else.
//!
//! Read in this order: [`world`] (the loop), `requests`, `attempt` and `probing` (what it does with both), [`flight`], [`proxy`],
//! [`destination`], [`source`], then [`event`], [`queue`], [`deadlines`], [`sharing`].

pub mod world;

mod attempt;
mod probing;
mod requests;

pub mod flight;

pub mod proxy;

pub mod destination;

pub mod source;

pub mod event;

pub mod queue;

pub mod deadlines;

pub mod sharing;

pub use world::World;
