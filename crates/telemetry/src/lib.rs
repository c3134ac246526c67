//! What the process says of itself: metric names, logs, the journal of health events.
//!
//! Walk: [`names`] (every metric, one line each), [`metrics`] (what is counted and how a scrape is made), [`process`]
//! (the process's own figures), [`logs`] (where log lines go), [`reopen`] (files that survive rotation), [`journal`]
//! (the last events, numbered, for readers that come and go).
#![forbid(unsafe_code)]

pub mod names;

pub mod metrics;
pub mod process;

pub mod logs;
pub mod reopen;

pub mod journal;
