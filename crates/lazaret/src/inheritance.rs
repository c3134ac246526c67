//! What a process may begin with: listening sockets that are open already, and what its predecessor knew.
//!
//! ```text
//!   Inheritance::none ────────────────────────────> binds everything
//!   Inheritance::from_manager ── LISTEN_FDS ──────> takes sockets by their addresses, binds the rest
//!   Inheritance::from_predecessor ── hand_over ───> the same, and the clock and health of the one before
//! ```
//! Read on: [`hand_over`] (what two processes say to each other), `manager` (systemd).

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;

use ::io::real::{Real, pass};
use control::listen::Inherited;
use model::config::Control;

pub mod hand_over;

pub(crate) mod manager;

use crate::error::Error;

use hand_over::Predecessor;
use manager::Store;

/// What [`crate::Lazaret::start_with`] begins with.
pub struct Inheritance {
    pub(crate) io: Real,
    pub(crate) sockets: Vec<TcpListener>,
    pub(crate) control: Inherited,
    pub(crate) predecessor: Option<Predecessor>,
    pub(crate) store: Store,
}

impl Inheritance {
    /// Nothing.
    pub fn none() -> Self {
        Self {
            io: Real::new(),
            sockets: Vec::new(),
            control: Inherited::default(),
            predecessor: None,
            store: Store::none(),
        }
    }

    /// The sockets that the service manager has opened or kept (`LISTEN_FDS`, sd_listen_fds(3)); from here on they belong
    /// to this value, so ask once. Listening sockets are given to the manager to keep (`FDSTORE=1`) when there is one.
    pub fn from_manager() -> io::Result<Self> {
        Ok(Self { sockets: manager::listeners()?, store: Store::of_manager(), ..Self::none() })
    }

    /// What the process at the other end of the stream hands over with [`crate::running::Upgrader::hand_over`].
    ///
    /// When nothing comes of it, here or in [`crate::Lazaret::start_with`], the other process hears why and goes on. Who
    /// cannot even begin says so with [`Self::decline`].
    pub fn from_predecessor(stream: UnixStream) -> io::Result<Self> {
        let other = stream.try_clone()?;
        let received = Self::receive(stream);
        if let Err(error) = &received {
            hand_over::decline(&other, &error.to_string());
        }
        received
    }

    /// Tells the process at the other end of the stream that this one does not take over: what its log and who waits for
    /// the upgrade are told.
    pub fn decline(stream: &UnixStream, why: &Error) {
        hand_over::decline(stream, &why.in_a_line());
    }

    fn receive(stream: UnixStream) -> io::Result<Self> {
        let hand_over::Estate { now, sockets, control, predecessor } = hand_over::receive(stream)?;
        Ok(Self { io: Real::at(now), sockets, control, predecessor: Some(predecessor), store: Store::of_manager() })
    }

    /// A way to tell the process before that nothing came of it; `None` when there is none.
    pub(crate) fn predecessor(&self) -> Option<UnixStream> {
        self.predecessor.as_ref().and_then(|predecessor| predecessor.share().ok())
    }

    /// The control API's sockets: its own, or among the others one that is bound to its address.
    pub(crate) fn take_control(&mut self, config: &Control) -> Inherited {
        let mut control = std::mem::take(&mut self.control);
        let is_there = |socket: &TcpListener| socket.local_addr().is_ok_and(|at| at == config.address);
        if control.tcp.is_none()
            && let Some(place) = self.sockets.iter().position(is_there)
        {
            control.tcp = Some(self.sockets.remove(place));
        }
        control
    }
}

impl fmt::Debug for Inheritance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inheritance").field("sockets", &self.sockets).finish_non_exhaustive()
    }
}

/// Those of `descriptors` that are listening TCP sockets; others are closed with a warning.
fn listeners_among(descriptors: Vec<std::os::fd::OwnedFd>) -> Vec<TcpListener> {
    let listener = |descriptor| match pass::listener(descriptor) {
        Ok(listener) => Some(listener),
        Err(descriptor) => {
            tracing::warn!(target: "lazaret", ?descriptor, "an inherited descriptor is no listening TCP socket: closed");
            None
        }
    };
    descriptors.into_iter().filter_map(listener).collect()
}
