//! Whether this process may change addresses at all.
//!
//! Without CAP_NET_ADMIN dumps and notifications still work and only the first change fails, perhaps months later; so
//! it is asked for at the start.

use std::fmt;

use caps::{CapSet, Capability};

/// Why addresses cannot be changed.
#[derive(Debug)]
pub enum CapabilityError {
    /// CAP_NET_ADMIN is not in the effective set.
    Missing,
    /// The sets cannot be read.
    Unreadable(String),
}

/// Fails unless CAP_NET_ADMIN is effective.
pub fn require_net_admin() -> Result<(), CapabilityError> {
    match caps::has_cap(None, CapSet::Effective, Capability::CAP_NET_ADMIN) {
        Ok(true) => Ok(()),
        Ok(false) => Err(CapabilityError::Missing),
        Err(error) => Err(CapabilityError::Unreadable(error.to_string())),
    }
}

impl fmt::Display for CapabilityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str(
                "CAP_NET_ADMIN is missing: addresses cannot be changed without it \
                 (systemd: AmbientCapabilities=CAP_NET_ADMIN)",
            ),
            Self::Unreadable(error) => write!(f, "the capabilities of this process cannot be read: {error}"),
        }
    }
}

impl std::error::Error for CapabilityError {}
