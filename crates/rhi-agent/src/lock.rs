//! One daemon per interface and network namespace.
//!
//! The lock is an abstract unix socket: it belongs to the network namespace as the interface does, and it is gone with
//! the process however that ends.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::{fmt, io};

/// Held as long as it lives.
#[derive(Debug)]
pub struct Lock {
    _listener: UnixListener,
}

/// Why there is no lock.
#[derive(Debug)]
pub enum LockError {
    /// Another daemon has it.
    Taken {
        /// For which interface.
        interface: String,
    },
    /// The socket cannot be made.
    Socket(io::Error),
}

impl Lock {
    /// Takes the lock for an interface.
    pub fn take(interface: &str) -> Result<Self, LockError> {
        let name = format!("lazaret-rhi/{interface}");
        let address = SocketAddr::from_abstract_name(name.as_bytes()).map_err(LockError::Socket)?;
        match UnixListener::bind_addr(&address) {
            Ok(listener) => Ok(Self { _listener: listener }),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                Err(LockError::Taken { interface: interface.to_owned() })
            }
            Err(error) => Err(LockError::Socket(error)),
        }
    }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { interface } => {
                write!(f, "another lazaret-rhi already manages interface {interface} in this network namespace")
            }
            Self::Socket(error) => write!(f, "the lock cannot be taken: {error}"),
        }
    }
}

impl std::error::Error for LockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Taken { .. } => None,
            Self::Socket(error) => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_second_daemon_for_the_same_interface_is_refused_until_the_first_is_gone() {
        let name = format!("test-{}", std::process::id());
        let first = Lock::take(&name).unwrap();
        assert!(matches!(Lock::take(&name), Err(LockError::Taken { .. })));
        Lock::take(&format!("{name}-other")).unwrap();
        drop(first);
        Lock::take(&name).unwrap();
    }
}
