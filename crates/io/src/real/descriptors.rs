//! How many of the process's descriptors traffic may take, so that a crowd of clients cannot lock out the control API,
//! the probes and the log.
//!
//! ```text
//!   0 ── clients ── 3/4 ── connections to destinations ── limit - reserve ── control, probes, files ── limit
//! ```
//! The kernel gives out the lowest free descriptor: who gets a high one knows that all below are taken. So nothing is
//! counted, and what other parts of the process hold is counted in.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// The first descriptors that traffic may not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptors {
    clients: RawFd,
    destinations: RawFd,
}

impl Descriptors {
    /// Traffic takes what it gets.
    pub(super) const UNBOUNDED: Self = Self { clients: RawFd::MAX, destinations: RawFd::MAX };

    /// Below the process's limit as it stands now.
    pub(super) fn below_limit() -> Self {
        match getrlimit(Resource::RLIMIT_NOFILE) {
            Ok((soft, _)) => Self::below(soft),
            Err(_) => Self::UNBOUNDED,
        }
    }

    /// Below a limit of so many.
    pub(super) fn below(limit: u64) -> Self {
        let traffic = limit - (limit / 4).min(RESERVE);
        let first = |count: u64| RawFd::try_from(count).unwrap_or(RawFd::MAX);
        Self { clients: first(traffic / 4 * 3), destinations: first(traffic) }
    }

    /// Whether a client's connection may stay. A refusal is [`io::ErrorKind::QuotaExceeded`]: a limit of ours that
    /// holds, which is not the same as a listener that cannot accept.
    pub(super) fn admit_client(self, socket: &impl AsRawFd) -> io::Result<()> {
        if socket.as_raw_fd() < self.clients { Ok(()) } else { Err(io::ErrorKind::QuotaExceeded.into()) }
    }

    /// Whether a connection to a destination may be made. A refusal is the error of having no descriptor at all: it is
    /// ours, and nobody else's fault.
    pub(super) fn admit_destination(self, socket: &impl AsRawFd) -> io::Result<()> {
        if socket.as_raw_fd() < self.destinations { Ok(()) } else { Err(Errno::EMFILE.into()) }
    }
}

/// Raises the number of descriptors that the process may have to what the system allows it; a limit that cannot be raised
/// stays. Returns the limit in force.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok() { Ok(hard) } else { Ok(soft) }
}

/// For the control API, probes and files.
const RESERVE: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_leave_room_for_destinations_and_both_for_the_rest() {
        for (limit, clients, destinations) in [(256, 144, 192), (1024, 576, 768), (65_536, 48_960, 65_280), (0, 0, 0)] {
            assert_eq!(Descriptors::below(limit), Descriptors { clients, destinations }, "{limit}");
        }
        assert_eq!(Descriptors::below(u64::MAX), Descriptors::UNBOUNDED);
    }

    #[test]
    fn a_socket_beyond_its_share_is_refused_as_a_shortage_of_our_own() {
        struct Numbered(RawFd);
        impl AsRawFd for Numbered {
            fn as_raw_fd(&self) -> RawFd {
                self.0
            }
        }
        let descriptors = Descriptors::below(256);
        assert!(descriptors.admit_client(&Numbered(143)).is_ok());
        let refused = descriptors.admit_client(&Numbered(144)).map_err(|error| error.kind());
        assert_eq!(refused, Err(io::ErrorKind::QuotaExceeded));
        assert!(descriptors.admit_destination(&Numbered(191)).is_ok());
        let refused = descriptors.admit_destination(&Numbered(192)).map_err(|error| error.raw_os_error());
        assert_eq!(refused, Err(Some(Errno::EMFILE as i32)));
    }
}
