//! The service manager: sockets that it opened or kept for us, and sockets that it keeps for who comes after us.
//!
//! The protocol is systemd's (sd_listen_fds(3), sd_notify(3)); without its variables in the environment nothing happens.
//! Each socket is kept under its address, so that one whose listener is gone can be taken out again: a socket that the
//! manager still has would go on taking connections that nobody accepts.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};

use ::io::real::pass;

use super::listeners_among;

/// The sockets that this process was started with.
pub(crate) fn listeners() -> io::Result<Vec<TcpListener>> {
    // There is nothing when the variables are absent, or meant for another process.
    let numbers: Vec<_> = sd_notify::listen_fds().map_err(io::Error::other)?.collect();
    Ok(listeners_among(pass::adopt(&numbers)?))
}

/// What the manager keeps for us.
pub(crate) struct Store {
    socket: Option<UnixDatagram>,
    kept: BTreeSet<String>,
}

impl Store {
    /// Keeps nothing.
    pub(crate) fn none() -> Self {
        Self { socket: None, kept: BTreeSet::new() }
    }

    /// The manager's, when there is one.
    pub(crate) fn of_manager() -> Self {
        let path = std::env::var_os("NOTIFY_SOCKET");
        let socket = path.and_then(|path| match connect(&path) {
            Ok(socket) => Some(socket),
            Err(error) => {
                tracing::warn!(target: "lazaret", %error, "NOTIFY_SOCKET cannot be reached: sockets are not kept");
                None
            }
        });
        Self { socket, kept: BTreeSet::new() }
    }

    /// These are all the sockets there are now. The manager keeps what it does not have yet and forgets the others.
    pub(crate) fn keep<'s>(&mut self, sockets: impl Iterator<Item = (SocketAddr, &'s TcpListener)>) {
        let Some(socket) = &self.socket else { return };
        let mut kept = BTreeSet::new();
        for (address, listener) in sockets {
            let name = name(address);
            // The manager knows descriptors of one socket as the same, so that a second time does no harm.
            let message = format!("FDSTORE=1\nFDNAME={name}");
            if !self.kept.contains(&name) {
                warn(pass::send_with(socket, message.as_bytes(), listener.as_fd()));
            }
            kept.insert(name);
        }
        for gone in self.kept.difference(&kept) {
            warn(socket.send(format!("FDSTOREREMOVE=1\nFDNAME={gone}").as_bytes()));
        }
        self.kept = kept;
    }
}

fn warn<T>(sent: io::Result<T>) {
    if let Err(error) = sent {
        tracing::warn!(target: "lazaret", %error, "the service manager was not told of a socket");
    }
}

/// Letters that a name may have: no colon.
fn name(address: SocketAddr) -> String {
    format!("listener-{address}").replace(':', "_")
}

fn connect(path: &OsStr) -> io::Result<UnixDatagram> {
    let address = match path.as_bytes().strip_prefix(b"@") {
        Some(name) => UnixAddress::from_abstract_name(name)?,
        None => UnixAddress::from_pathname(path)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    Ok(socket)
}
