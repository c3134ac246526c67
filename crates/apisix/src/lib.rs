//! Shapes that cross processes: APISIX's control API, our health document, the status document of `lazaret-rhi`.
//!
//! Three writers and three readers meet here, in different programs and versions, so each shape follows one rule:
//! writers are exact, readers ignore what they do not know. Walk: [`checker`] (what APISIX says of one upstream, and
//! what Lazaret says in its place), [`error`] (what it says instead), [`health`] (Lazaret's own, richer document),
//! [`rhi`] (what `lazaret-rhi` says of its VIPs).
#![forbid(unsafe_code)]

pub mod checker;
pub mod error;
pub mod health;
pub mod rhi;
