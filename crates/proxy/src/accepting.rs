//! A listener of one worker, from its first accept to its close.
//!
//! ```text
//!   start ──> accepts (a task per socket) ──close──> task gone ──> queue taken ──> socket closed ──1 s──> idle dismissed
//! ```
//! The kernel resets what still waits in the queue of a socket that is closed, so the queue is emptied right before.
//! What remains is the instant between the last look and the close, and clients whose handshake is not over by then: to
//! them the port is closed, as it is to those who come later.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use ::io::Io;
use model::listener::Listener;
use tokio::task::JoinHandle;
use upstream::Resolve;

use crate::faults::Fault;
use crate::listener::{ListenerCell, accept, accept_waiting};
use crate::local::Local;

/// What became of a listener.
pub(crate) enum Place<I: Io> {
    /// It accepts.
    Accepts(Accepting<I>),
    /// The system did not let it.
    Faulty(#[expect(dead_code, reason = "says so for as long as it lives")] Fault),
}

/// A listener that accepts.
pub(crate) struct Accepting<I: Io> {
    pub(crate) cell: Rc<ListenerCell>,
    sockets: Vec<(Rc<I::Listener>, JoinHandle<()>)>,
}

impl<I: Io> Place<I> {
    /// Accepts on all of `bound`.
    pub(crate) fn open<R: Resolve>(local: &Rc<Local<I, R>>, config: Listener, bound: Vec<I::Bound>) -> Self {
        let id = config.id.clone();
        match Accepting::start(local, config, bound) {
            Ok(accepting) => Self::Accepts(accepting),
            Err(error) => {
                tracing::error!(target: "proxy", %error, listener = %id, "cannot listen");
                Self::Faulty(local.faults.enter(&id))
            }
        }
    }

    /// Takes another configuration over.
    pub(crate) fn update<R>(self, local: &Local<I, R>, config: Listener) -> Self {
        match self {
            Self::Accepts(accepting) => {
                accepting.cell.update(config, &local.server_tls);
                Self::Accepts(accepting)
            }
            Self::Faulty(_) => Self::Faulty(local.faults.enter(&config.id)),
        }
    }

    /// Accepts no longer. Who waits in the queue is served; every connection ends after its current exchange.
    pub(crate) async fn close<R: Resolve>(self, local: &Rc<Local<I, R>>) {
        let Self::Accepts(accepting) = self else { return };
        let cell = Rc::clone(&accepting.cell);
        cell.close();
        accepting.end(local).await;
        local.presence.wake_all();
        let local = Rc::clone(local);
        tokio::task::spawn_local(async move {
            local.io.sleep(IDLE).await;
            cell.dismiss_idle();
            local.presence.wake_all();
        });
    }

    /// The same when the worker ends: what becomes of connections is the worker's affair.
    pub(crate) async fn end<R: Resolve>(self, local: &Rc<Local<I, R>>) {
        match self {
            Self::Accepts(accepting) => accepting.end(local).await,
            Self::Faulty(_) => {}
        }
    }
}

impl<I: Io> Accepting<I> {
    fn start<R: Resolve>(local: &Rc<Local<I, R>>, config: Listener, bound: Vec<I::Bound>) -> io::Result<Self> {
        let listeners: io::Result<Vec<_>> =
            bound.into_iter().map(|bound| local.io.listen(bound).map(Rc::new)).collect();
        let cell = Rc::new(ListenerCell::new(config, &local.server_tls));
        let task = |listener: Rc<I::Listener>| {
            let accepting = accept(Rc::clone(local), Rc::clone(&listener), Rc::clone(&cell));
            (listener, tokio::task::spawn_local(accepting))
        };
        let sockets = listeners?.into_iter().map(task).collect();
        Ok(Self { cell, sockets })
    }

    async fn end<R: Resolve>(self, local: &Rc<Local<I, R>>) {
        for (listener, task) in self.sockets {
            task.abort();
            // It holds the socket, too. That it was cut off is what was wanted.
            let _ = task.await;
            accept_waiting(local, &*listener, &self.cell, QUEUE);
        }
    }
}

/// After a listener's close its idle connections may send one more request within this time, which is answered with
/// `Connection: close`: closing at once would cut off a request that is on its way.
pub(crate) const IDLE: Duration = Duration::from_secs(1);
/// Connections of one queue that are taken at its close. The kernel's own bound (net.core.somaxconn) is rarely above.
const QUEUE: usize = 4096;
