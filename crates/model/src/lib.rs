//! The vocabulary of Lazaret: plain data that every other crate speaks.
//!
//! Nothing here decides, waits or talks to the outside. Read in this order: names ([`id`]), time ([`time`]), the three
//! values of [`health`], what an attempt came to ([`outcome`], [`classify`]), then the resolved configuration
//! ([`config`] down to [`destination`]), and last what leaves the health core ([`event`], [`view`]).
#![forbid(unsafe_code)]

pub mod id;
pub mod random;
pub mod ratio;
pub mod time;

mod number;

pub mod health;
pub mod outcome;

pub mod classify;

pub mod address;
pub mod request;

pub mod active;
pub mod affinity;
pub mod available;
pub mod balancing;
pub mod cluster;
pub mod config;
pub mod destination;
pub mod entry;
pub mod guards;
pub mod listener;
pub mod page;
pub mod passive;
pub mod pattern;
pub mod readmission;
pub mod retry;
pub mod route;
pub mod timeouts;
pub mod tls;
pub mod transform;
pub mod upstream;
pub mod vip;

pub mod probe_uri;

pub mod event;
pub mod view;
