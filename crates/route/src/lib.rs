//! Which route a request belongs to.
#![forbid(unsafe_code)]

/// All routes, ready for look-ups.
pub struct Table;
