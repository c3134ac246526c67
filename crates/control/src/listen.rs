//! Where the API listens: TCP for everybody who reads, a unix socket for those who change things.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::config::{Control, ControlSocket};

/// Bound sockets, not yet part of a runtime.
#[derive(Debug)]
pub struct Listeners {
    /// For reading.
    pub tcp: TcpListener,
    /// For changing.
    pub unix: Option<UnixSocket>,
    /// Inherited, and not where the configuration wants it.
    leaving: Option<UnixSocket>,
}

/// A bound unix socket; its path is removed when it is dropped, unless another process has put its own there, has taken this
/// one over, or has not given it up yet.
#[derive(Debug)]
pub struct UnixSocket {
    pub(crate) listener: UnixListener,
    path: PathBuf,
    inode: u64,
    is_handed_over: Arc<AtomicBool>,
}

/// Descriptors of the same sockets, for another process. Connections wait in them while either process has one.
#[derive(Debug)]
pub struct Shared {
    /// For reading.
    pub tcp: TcpListener,
    /// For changing, and its path.
    pub unix: Option<(UnixListener, PathBuf)>,
    is_handed_over: Arc<AtomicBool>,
}

/// What another process has handed over.
#[derive(Debug, Default)]
pub struct Inherited {
    /// For reading.
    pub tcp: Option<TcpListener>,
    /// For changing, and its path.
    pub unix: Option<(UnixListener, PathBuf)>,
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
        Self::bind_with(control, Inherited::default())
    }

    /// The same; what is inherited and still where the configuration wants it is taken in place of a new one, the rest
    /// is closed.
    pub fn bind_with(control: &Control, inherited: Inherited) -> Result<Self, BindError> {
        let address = control.address;
        let is_there = |tcp: &TcpListener| {
            let found = tcp.local_addr().ok();
            found.is_some_and(|at| at.ip() == address.ip() && (address.port() == 0 || at.port() == address.port()))
        };
        let tcp = match inherited.tcp.filter(is_there) {
            Some(tcp) => tcp,
            None => TcpListener::bind(address).map_err(|source| BindError::Tcp { address, source })?,
        };
        let inherited = inherited.unix.and_then(|(listener, path)| UnixSocket::inherit(listener, &path).ok());
        let wanted = match &control.socket {
            ControlSocket::Off => None,
            ControlSocket::Path(path) | ControlSocket::Default(path) => Some(path),
        };
        let is_wanted = inherited.as_ref().is_some_and(|socket| Some(&socket.path) == wanted);
        let (inherited, leaving) = if is_wanted { (inherited, None) } else { (None, inherited) };
        tcp.set_nonblocking(true).map_err(|source| BindError::Tcp { address, source })?;
        let unix = match &control.socket {
            ControlSocket::Off => None,
            ControlSocket::Path(_) | ControlSocket::Default(_) if inherited.is_some() => inherited,
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
        Ok(Self { tcp, unix, leaving })
    }

    /// What was inherited is this process's own from here on; until then the process before has it, also when this one
    /// ends. A unix socket that the configuration has elsewhere now goes, with its path.
    pub fn take_over(&mut self) {
        for socket in self.unix.iter().chain(&self.leaving) {
            socket.is_handed_over.store(false, Ordering::Relaxed);
        }
        self.leaving = None;
    }

    /// Descriptors of the same sockets.
    pub fn share(&self) -> io::Result<Shared> {
        let unix =
            self.unix.as_ref().map(|socket| Ok::<_, io::Error>((socket.listener.try_clone()?, socket.path.clone())));
        let is_handed_over = match &self.unix {
            Some(socket) => Arc::clone(&socket.is_handed_over),
            None => Arc::default(),
        };
        Ok(Shared { tcp: self.tcp.try_clone()?, unix: unix.transpose()?, is_handed_over })
    }
}

impl Shared {
    /// The same once more.
    pub fn share(&self) -> io::Result<Self> {
        let unix = self.unix.as_ref().map(|(listener, path)| Ok::<_, io::Error>((listener.try_clone()?, path.clone())));
        let is_handed_over = Arc::clone(&self.is_handed_over);
        Ok(Self { tcp: self.tcp.try_clone()?, unix: unix.transpose()?, is_handed_over })
    }

    /// Another process serves them from here on: the path stays when this process ends.
    pub fn hand_over(&self) {
        self.is_handed_over.store(true, Ordering::Relaxed);
    }
}

impl UnixSocket {
    /// Binds one, as [`files::socket::bind`] does.
    pub fn bind(path: &Path) -> io::Result<Self> {
        Self::own(files::socket::bind(path)?, path)
    }

    /// One that another process has bound to `path`, and may go on with.
    fn inherit(listener: UnixListener, path: &Path) -> io::Result<Self> {
        let socket = Self::own(listener, path)?;
        socket.is_handed_over.store(true, Ordering::Relaxed);
        Ok(socket)
    }

    /// One that is bound to `path` already.
    fn own(listener: UnixListener, path: &Path) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let inode = fs::symlink_metadata(path)?.ino();
        Ok(Self { listener, path: path.to_owned(), inode, is_handed_over: Arc::default() })
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if self.is_handed_over.load(Ordering::Relaxed) {
            return;
        }
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn sockets_that_are_handed_over_go_on_being_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let address = "127.0.0.1:0".parse().unwrap();
        let control = Control {
            address,
            names: Vec::new(),
            socket: ControlSocket::Path(path.clone()),
            users: Vec::new(),
            token_file: None,
        };
        let before = Listeners::bind(&control).unwrap();
        let shared = before.share().unwrap();
        let port = before.tcp.local_addr().unwrap();
        let _waiting = (UnixStream::connect(&path).unwrap(), std::net::TcpStream::connect(port).unwrap());
        shared.hand_over();
        drop(before);
        let inherited = Inherited { tcp: Some(shared.tcp), unix: shared.unix };
        let mut after = Listeners::bind_with(&control, inherited).unwrap();
        after.take_over();
        assert_eq!(after.tcp.local_addr().unwrap(), port);
        assert!(after.tcp.accept().is_ok() && after.unix.as_ref().unwrap().listener.accept().is_ok());
        drop(after);
        assert!(!path.exists());
    }

    #[test]
    fn an_inherited_socket_that_is_wanted_elsewhere_goes_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old.sock"), folder.path().join("new.sock"));
        let address = "127.0.0.1:0".parse().unwrap();
        let control = |path: &Path| Control {
            address,
            names: Vec::new(),
            socket: ControlSocket::Path(path.to_owned()),
            users: Vec::new(),
            token_file: None,
        };
        let before = Listeners::bind(&control(&old)).unwrap();
        let shared = before.share().unwrap();
        shared.hand_over();
        let inherited = Inherited { tcp: None, unix: shared.unix };
        let mut after = Listeners::bind_with(&control(&new), inherited).unwrap();
        assert!(new.exists() && old.exists());
        after.take_over();
        assert!(new.exists() && !old.exists());
    }

    #[test]
    fn a_process_that_inherits_and_gives_up_leaves_the_socket_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let control = |socket| Control {
            address: "127.0.0.1:0".parse().unwrap(),
            names: Vec::new(),
            socket,
            users: Vec::new(),
            token_file: None,
        };
        let before = Listeners::bind(&control(ControlSocket::Path(path.clone()))).unwrap();
        for socket in [ControlSocket::Path(path.clone()), ControlSocket::Off] {
            let inherited = Inherited { tcp: None, unix: before.share().unwrap().unix };
            drop(Listeners::bind_with(&control(socket), inherited).unwrap());
            assert!(UnixStream::connect(&path).is_ok());
        }
    }

    #[test]
    fn a_taken_address_names_the_likely_cause() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let control =
            Control { address, names: Vec::new(), socket: ControlSocket::Off, users: Vec::new(), token_file: None };
        let error = Listeners::bind(&control).err().unwrap().to_string();
        assert!(error.contains("another lazaret, or another program? set control.address"), "{error}");
    }
}
