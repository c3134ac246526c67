//! Which route a request belongs to.
//!
//! [`Table`] holds all routes, sorted once by precedence (`rank`) and indexed by host (`host`) and path (`trie`);
//! a look-up allocates nothing. [`rewrite`] makes the target that goes on where a route changes it. [`path`] tells which paths are refused before any look-up, and what their normal form is.
//!
//! ```text
//!   request ──> path::check ──> host bucket ──> path trie ──> methods, headers, query ──> the best rank
//!                   400             (404)          (404)         (405)
//! ```
#![forbid(unsafe_code)]

pub mod path;

pub mod rewrite;

mod host;
mod predicate;
mod rank;
mod table;
mod trie;

pub use table::{Found, Table};
