//! Where the API listens: TCP for everybody who reads, a unix socket for those who change things.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use model::config::{Control, ControlSocket};

/// Bound sockets, not yet part of a runtime.
#[derive(Debug)]
pub struct Listeners {
    /// For reading.
    pub tcp: TcpListener,
    /// For changing.
    pub unix: Option<UnixSocket>,
}

/// A bound unix socket; its path is removed when it is dropped, unless another process has put its own there.
#[derive(Debug)]
pub struct UnixSocket {
    pub(crate) listener: UnixListener,
    path: PathBuf,
    inode: u64,
}

/// Why the API cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// On TCP.
    #[error("control.address {address}: {source}{}", taken(source))]
    Tcp {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// On the unix socket that the configuration asks for.
    #[error("control.socket {}: {source}", path.display())]
    Unix {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The likely cause, where it is one that words help with.
fn taken(source: &io::Error) -> &'static str {
    if source.kind() == io::ErrorKind::AddrInUse {
        " (another lazaret, or another program? set control.address)"
    } else {
        ""
    }
}

impl Listeners {
    /// Binds both. The default socket is left out with one warning when it cannot be had; one that was asked for, and
    /// the TCP address, are errors.
    pub fn bind(control: &Control) -> Result<Self, BindError> {
        let address = control.address;
        let tcp = TcpListener::bind(address).map_err(|source| BindError::Tcp { address, source })?;
        tcp.set_nonblocking(true).map_err(|source| BindError::Tcp { address, source })?;
        let unix = match &control.socket {
            ControlSocket::Off => None,
            ControlSocket::Path(path) => {
                Some(UnixSocket::bind(path).map_err(|source| BindError::Unix { path: path.clone(), source })?)
            }
            ControlSocket::Default(path) => match UnixSocket::bind(path) {
                Ok(socket) => Some(socket),
                Err(error) => {
                    tracing::warn!(
                        target: "control",
                        path = %path.display(), %error,
                        "no control socket: changing calls need control.socket or control.token_file"
                    );
                    None
                }
            },
        };
        Ok(Self { tcp, unix })
    }
}

impl UnixSocket {
    /// Binds with mode 0660. A socket that nobody listens on any more is replaced, and its folder is made when only
    /// that is missing.
    pub fn bind(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
            fs::create_dir(folder)?;
        }
        match UnixStream::connect(path) {
            Ok(_) => return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens there")),
            // A plain file refuses just as a dead socket does: it is left alone, and binding fails.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && is_socket(path) => fs::remove_file(path)?,
            Err(_) => {}
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
        listener.set_nonblocking(true)?;
        let inode = fs::symlink_metadata(path)?.ino();
        Ok(Self { listener, path: path.to_owned(), inode })
    }
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_taken_address_names_the_likely_cause() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let control = Control { address, socket: ControlSocket::Off, users: Vec::new(), token_file: None };
        let error = Listeners::bind(&control).err().unwrap().to_string();
        assert!(error.contains("another lazaret, or another program? set control.address"), "{error}");
    }
}
