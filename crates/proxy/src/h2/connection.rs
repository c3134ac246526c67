//! One HTTP/2 connection: accepts streams, watches its idle time, and ends.
//!
//! ```text
//!   preface, SETTINGS ──> Open ── draining, listener gone, idle ──> GOAWAY(2^31-1), PING ── its answer ──> GOAWAY(last)
//!                          │                                                                                  │
//!                          └── the client closes, breaks the protocol, resets too much ──> closed <── no stream left
//! ```
//! After the first GOAWAY streams that were on their way are still served (RFC 9113 6.8), so none is lost.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ::h2::Reason;
use ::h2::server::{self, Connection};
use bytes::Bytes;
use io::Io;
use model::time::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};
use upstream::Resolve;

use super::stream;
use crate::listener::{ListenerCell, View};
use crate::local::Local;
use crate::relay::Peer;
use crate::timer::Timer;

/// What a connection comes in with.
pub(crate) struct Entrance {
    /// Where.
    pub(crate) listener: Rc<ListenerCell>,
    /// Whose it is.
    pub(crate) peer: Peer,
}

/// What the streams of a connection share with it.
pub(super) struct Shared {
    pub(super) entrance: Entrance,
    open: Cell<usize>,
    served: Cell<u64>,
    /// Streams that the client gave up.
    cancelled: Cell<u64>,
    /// The connection's task.
    waker: RefCell<Option<Waker>>,
}

/// The entry of a stream among those that are open.
pub(super) struct Open {
    pub(super) shared: Rc<Shared>,
}

/// Serves a connection to its end. The caller's task is the one that [`crate::local::Presence`] wakes.
pub(crate) async fn serve<I: Io, R: Resolve, S: AsyncRead + AsyncWrite + Unpin>(
    local: Rc<Local<I, R>>,
    entrance: Entrance,
    wire: S,
) {
    let view = entrance.listener.view();
    let mut timer = Timer::new(local.io.clone());
    let due = local.io.now() + view.config.limits.header_timeout;
    let mut handshake = pin!(builder(&view).handshake::<S, Bytes>(wire));
    let connection = poll_fn(|context| match handshake.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(result.ok()),
        Poll::Pending => timer.poll(context, due).map(|()| None),
    })
    .await;
    // Whoever does not even get this far gets no answer: there is no version to give it in.
    let Some(connection) = connection else { return };
    let shared = Rc::new(Shared {
        entrance,
        open: Cell::new(0),
        served: Cell::new(0),
        cancelled: Cell::new(0),
        waker: RefCell::new(None),
    });
    let mut run = Run { local, connection, shared, timer, phase: Phase::Open, idle_since: None };
    poll_fn(|context| run.poll(context, due)).await;
}

/// The settings; each bound is told in [`crate::h2`].
fn builder(view: &View) -> server::Builder {
    let limits = &view.config.limits;
    // RFC 9113 6.5.2 counts 32 bytes for each field beside its name and value.
    let list = limits.request_line + limits.header_bytes + 32 * limits.header_fields;
    let mut builder = server::Builder::new();
    builder
        .max_concurrent_streams(view.config.http2.streams)
        .max_header_list_size(u32::try_from(list).unwrap_or(u32::MAX))
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_local_error_reset_streams(Some(LOCAL_RESETS))
        .enable_connect_protocol();
    builder
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// GOAWAY was sent; since when no stream is left, if so.
    Leaving,
}

struct Run<I: Io, R, S> {
    local: Rc<Local<I, R>>,
    connection: Connection<S, Bytes>,
    shared: Rc<Shared>,
    timer: Timer<I>,
    phase: Phase,
    /// Since when no stream is open.
    idle_since: Option<Timestamp>,
}

impl<I: Io, R: Resolve, S: AsyncRead + AsyncWrite + Unpin> Run<I, R, S> {
    fn poll(&mut self, context: &mut Context<'_>, first: Timestamp) -> Poll<()> {
        self.remember(context.waker());
        loop {
            if self.phase == Phase::Open && self.is_closing() {
                self.leave();
            }
            if self.is_abused() {
                self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            }
            match self.connection.poll_accept(context) {
                Poll::Ready(Some(Ok((request, respond)))) => self.open(request, respond),
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(()),
                Poll::Pending => {
                    let due = self.due(first);
                    if self.timer.poll(context, due).is_pending() {
                        return Poll::Pending;
                    }
                    match self.phase {
                        Phase::Open => self.leave(),
                        // It does not answer: what it may still want is not known, and it has had its time.
                        Phase::Leaving => return Poll::Ready(()),
                    }
                }
            }
        }
    }

    /// When to look again, if nothing happens before.
    fn due(&mut self, first: Timestamp) -> Timestamp {
        if self.shared.open.get() > 0 {
            self.idle_since = None;
            return Timestamp::MAX;
        }
        let since = *self.idle_since.get_or_insert_with(|| self.local.io.now());
        match self.phase {
            Phase::Leaving => since + LEAVE,
            Phase::Open if self.shared.served.get() == 0 => first,
            Phase::Open => since + self.shared.entrance.listener.view().config.limits.keepalive,
        }
    }

    fn leave(&mut self) {
        self.phase = Phase::Leaving;
        self.idle_since = None;
        self.connection.graceful_shutdown();
    }

    fn open(&self, request: http::Request<::h2::RecvStream>, respond: server::SendResponse<Bytes>) {
        self.shared.served.set(self.shared.served.get() + 1);
        let open = Open::enter(&self.shared);
        tokio::task::spawn_local(stream::serve(Rc::clone(&self.local), open, request, respond));
    }

    fn is_closing(&self) -> bool {
        self.local.presence.is_draining() || self.shared.entrance.listener.is_closed()
    }

    /// Whether the client opens streams to give them up, which costs it nothing and us an attempt each.
    fn is_abused(&self) -> bool {
        let cancelled = self.shared.cancelled.get();
        cancelled > RESETS && cancelled > self.shared.served.get() / 2
    }

    fn remember(&self, waker: &Waker) {
        let mut place = self.shared.waker.borrow_mut();
        if !place.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *place = Some(waker.clone());
        }
    }
}

impl Open {
    fn enter(shared: &Rc<Shared>) -> Self {
        shared.open.set(shared.open.get() + 1);
        Self { shared: Rc::clone(shared) }
    }

    /// The client gave the stream up.
    pub(super) fn cancel(&self) {
        self.shared.cancelled.set(self.shared.cancelled.get() + 1);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.open.set(self.shared.open.get() - 1);
        if let Some(waker) = &*self.shared.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
const SEND_BUFFER: usize = 64 * 1024;
const PENDING_RESETS: usize = 20;
const LOCAL_RESETS: usize = 100;
/// So many streams may be given up whatever their share.
const RESETS: u64 = 200;
/// Without a stream, a client that was told to go has so long to answer.
const LEAVE: Duration = Duration::from_secs(5);
