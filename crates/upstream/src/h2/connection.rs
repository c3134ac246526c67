//! One connection: its task, and what is known of it.
//!
//! ```text
//!            first byte of the destination          GOAWAY, end, silence
//!   new (one stream) ──────────> open (up to its limit) ──────────> retired ── last stream over ──> closed
//! ```
//! Until the destination's preface has come its limit is not known, so one stream must do: others wait that moment. A
//! retired connection takes no new streams; those on it end by themselves.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use h2::{Ping, PingPong};
use http::Request;
use model::outcome::{FailureKind, Progress};
use model::time::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::call::Call;
use super::failure::Failure;
use super::watched::{Received, Watched};
use super::{CONNECTION_WINDOW, End, STREAM_WINDOW, STREAMS};

/// A connection that speaks HTTP/2.
pub struct Connection {
    sender: SendRequest<Bytes>,
    received: Rc<Received>,
    open: Cell<usize>,
    /// Streams at once that the destination was seen to take; below its own word when it refused one.
    most: Cell<usize>,
    /// Streams so far.
    served: Cell<u64>,
    state: Rc<Cell<State>>,
    pings: std::cell::RefCell<Option<PingPong>>,
    /// What a sweep saw last: streams so far, bytes so far, since when these stand still.
    seen: Cell<(u64, u64, Timestamp)>,
    /// Told when there may be room.
    room: Rc<Notify>,
    driver: AbortHandle,
    closing: Rc<Notify>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Takes streams.
    Open,
    /// Takes no more; what runs goes on.
    Retired,
    /// Not a byte comes any more: what runs is cut when it is over.
    Dead,
}

/// Room for one stream. Given back when it is dropped.
pub struct Place {
    connection: Rc<Connection>,
    is_reused: bool,
}

impl Connection {
    /// Begins to speak over `stream`: nothing of the destination is waited for. To be called within a `LocalSet` or a
    /// local runtime, whose thread drives it from then on. `room` is told when there may be room for a stream.
    pub async fn start<S>(stream: S, room: Rc<Notify>, now: Timestamp) -> io::Result<Rc<Self>>
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let received = Rc::new(Received::new(Rc::clone(&room)));
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(HEADER_BYTES)
            .max_send_buffer_size(SEND_BUFFER)
            .max_frame_size(FRAME);
        let (sender, mut connection) = builder
            .handshake::<_, Bytes>(Watched::new(stream, Rc::clone(&received)))
            .await
            .map_err(|error| io::Error::other(error.to_string()))?;
        let pings = connection.ping_pong();
        let state = Rc::new(Cell::new(State::Open));
        let closing = Rc::new(Notify::new());
        let ended = (Rc::clone(&state), Rc::clone(&room), Rc::clone(&closing));
        let driver = tokio::task::spawn_local(async move {
            let (state, room, closing) = ended;
            let end = tokio::select! {
                end = &mut connection => end,
                // Nobody needs it any more: its end is said, if the destination still takes it.
                () = closing.notified() => tokio::time::timeout(FAREWELL, connection).await.unwrap_or(Ok(())),
            };
            if let Err(error) = end {
                tracing::debug!(target: "upstream", %error, "an HTTP/2 connection ended");
            }
            if state.get() == State::Open {
                state.set(State::Retired);
            }
            room.notify_waiters();
        });
        Ok(Rc::new(Self {
            sender,
            received,
            open: Cell::new(0),
            most: Cell::new(STREAMS),
            served: Cell::new(0),
            state,
            pings: std::cell::RefCell::new(pings),
            seen: Cell::new((0, 0, now)),
            room,
            driver: driver.abort_handle(),
            closing,
        }))
    }

    /// Room for a stream, if there is.
    pub fn place(self: &Rc<Self>) -> Option<Place> {
        self.has_room().then(|| self.take())
    }

    pub(super) fn has_room(&self) -> bool {
        self.is_usable() && self.open.get() < self.limit()
    }

    /// The first place on a connection that was just made.
    pub(super) fn take(self: &Rc<Self>) -> Place {
        self.open.set(self.open.get() + 1);
        let is_reused = self.served.replace(self.served.get() + 1) > 0;
        Place { connection: Rc::clone(self), is_reused }
    }

    /// Whether it takes streams, now or when some of those on it are over.
    pub(super) fn is_usable(&self) -> bool {
        if self.state.get() != State::Open {
            return false;
        }
        // After a GOAWAY, or when the connection is gone, the next request would not be taken.
        let ready = self.sender.clone().poll_ready(&mut Context::from_waker(Waker::noop()));
        !matches!(ready, Poll::Ready(Err(_)))
    }

    /// Whether the destination's preface has come.
    pub(super) fn is_greeted(&self) -> bool {
        self.received.bytes() > 0
    }

    /// Streams that run.
    pub(super) fn open(&self) -> usize {
        self.open.get()
    }

    pub(super) fn received(&self) -> u64 {
        self.received.bytes()
    }

    fn limit(&self) -> usize {
        if !self.is_greeted() {
            return 1;
        }
        // One that allows none is taken at its word only by refusing.
        self.most.get().min(self.sender.current_max_send_streams()).max(1)
    }

    /// A request waited in vain. When nothing at all came since `before`, the connection takes no more.
    pub(super) fn doubt(&self, before: u64) {
        if self.received.bytes() == before {
            self.give_up();
        }
    }

    /// It refused a stream: that many are too much.
    pub(super) fn refused(&self) {
        self.most.set(self.most.get().min(self.open.get().saturating_sub(1)).max(1));
    }

    fn give_up(&self) {
        self.state.set(State::Dead);
        self.room.notify_waiters();
    }

    /// For a tick. How long it has carried nothing; a PING after `ping` without a byte while streams wait, and the end of
    /// all of them after as long again.
    pub(super) fn tick(&self, ping: Option<Duration>, now: Timestamp) -> Duration {
        let (served, bytes, since) = self.seen.get();
        let is_still = self.received.bytes() == bytes;
        if self.served.get() != served || !is_still || (self.open.get() > 0 && ping.is_none()) {
            self.seen.set((self.served.get(), self.received.bytes(), now));
            return Duration::ZERO;
        }
        let still = now.since(since);
        if let Some(ping) = ping.filter(|_| self.open.get() > 0) {
            if still >= ping * 2 {
                self.give_up();
                self.driver.abort();
            } else if still >= ping {
                self.ping();
            }
            return Duration::ZERO;
        }
        still
    }

    /// Nobody has listened until `now`: what went before is no silence of the destination's.
    pub(super) fn excuse(&self, now: Timestamp) {
        let (served, bytes, _) = self.seen.get();
        self.seen.set((served, bytes, now));
    }

    /// One PING at a time; its answer counts as any other byte does.
    fn ping(&self) {
        if let Some(pings) = &mut *self.pings.borrow_mut() {
            let _ = pings.poll_pong(&mut Context::from_waker(Waker::noop()));
            let _ = pings.send_ping(Ping::opaque());
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        match self.state.get() {
            State::Dead => self.driver.abort(),
            State::Open | State::Retired => self.closing.notify_one(),
        }
    }
}

impl Place {
    /// Whether the connection carried requests before.
    pub fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Sends the request's head. With [`End::Here`] there is no body. When the connection had ended by then, nothing was
    /// sent.
    pub fn send(self, request: Request<()>, end: End) -> Result<Call, Failure> {
        let before = self.connection.received();
        match self.connection.sender.clone().send_request(request, end == End::Here) {
            Ok((response, upload)) => Ok(Call::new(self, response, upload, end, before)),
            Err(error) if error.is_io() || error.is_go_away() => {
                Err(Failure { kind: FailureKind::Unprocessed, progress: Progress::NotSent, was_on_wire: false })
            }
            Err(error) => Err(Failure::before_head(&error, before)),
        }
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connection.open.set(self.connection.open.get().saturating_sub(1));
        self.connection.room.notify_waiters();
    }
}

/// Longest header section of a response, as RFC 9113 6.5.2 counts it.
const HEADER_BYTES: u32 = 64 * 1024;
/// Bytes of one request that may wait for the connection.
const SEND_BUFFER: usize = 256 * 1024;
/// Largest frame taken: fewer, larger reads of large bodies.
const FRAME: u32 = 64 * 1024;
/// So long an end may take to be said.
const FAREWELL: Duration = Duration::from_secs(5);
