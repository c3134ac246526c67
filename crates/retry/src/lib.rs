//! May a failed attempt be repeated on the next destination, and what does that cost.
//!
//! Everything here is a pure function of facts. Read in this order: [`request`] (what counts of a request),
//! [`decision`] (the rules), [`budget`] (what keeps retries from multiplying an outage), [`trends`] (who
//! fails most of what it gets, so that a retry there is no help), [`pace`] (how long a try may take).
//!
//! ```text
//!   AttemptEnd ──> decide(rules, compat, request, end, walk) ──> Retry { target, cost } ──> budget ──> next pick
//!                                                          └──> Denied(reason) ──> the answer, the log, the metric
//! ```
#![forbid(unsafe_code)]

pub mod request;

pub mod decision;

pub mod budget;

pub mod trends;

pub mod pace;

mod nginx;

pub use budget::{Cost, Ledger};
pub use decision::{EndState, Pool, Replay, RetryDenied, Target, Verdict, Walk, decide, may_be_cut, may_be_trial};
pub use pace::Pace;
pub use request::Repeatable;
pub use trends::Trends;
