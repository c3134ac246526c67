//! One HTTP/2 connection: accepts streams, watches its idle time, and ends.
//!
//! ```text
//!   preface, SETTINGS ──> Open ── draining, listener gone, idle ──> GOAWAY(2^31-1), PING ── its answer ──> GOAWAY(last)
//!                          │                                                                                  │
//!                          └── the client closes, breaks the protocol, resets too much ──> closed <── no stream left
//! ```
//! After the first GOAWAY streams that were on their way are still served (RFC 9113 6.8), so none is lost.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ::h2::Reason;
use ::h2::server::{self, Connection};
use bytes::Bytes;
use io::Io;
use model::time::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::coop::has_budget_remaining;
use upstream::Resolve;

use super::outlet::Outlet;
use super::parts::{Part, Parts};
use super::stream::{self, Start};
use crate::listener::{ListenerCell, View};
use crate::local::Local;
use crate::relay::Peer;
use crate::seats::Seat;
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
    let outlet = Outlet::new(wire);
    let mut handshake = pin!(builder(&view).handshake::<_, Bytes>(outlet.handle()));
    let connection = poll_fn(|context| match handshake.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(result.ok()),
        Poll::Pending => match outlet.poll_send(context) {
            Poll::Ready(Err(_)) => Poll::Ready(None),
            Poll::Ready(Ok(())) | Poll::Pending => timer.poll(context, due).map(|()| None),
        },
    })
    .await;
    // Whoever does not even get this far gets no answer: there is no version to give it in.
    let Some(connection) = connection else { return };
    let shared = Shared { entrance, open: Cell::new(0), served: Cell::new(0), cancelled: Cell::new(0) };
    let parts = Arc::<Parts>::default();
    let own = Part::new(&parts, OWN);
    let mut run = Run {
        local,
        connection,
        outlet,
        shared: Rc::new(shared),
        timer,
        phase: Phase::Open,
        idle_since: None,
        waker: Waker::from(Arc::clone(&own)),
        own,
        parts,
        places: Vec::new(),
        free: Vec::new(),
        woken: Vec::new(),
    };
    run.waker.wake_by_ref();
    poll_fn(|context| run.poll(context, due)).await;
    run.finish().await;
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
        .max_pending_accept_reset_streams(view.config.http2.streams as usize)
        .max_local_error_reset_streams(Some(LOCAL_RESETS))
        .enable_connect_protocol();
    builder
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// GOAWAY was sent; since when no stream is left, if so.
    Leaving,
    /// It ends at once.
    Cut,
}

struct Run<I: Io, R, S> {
    local: Rc<Local<I, R>>,
    connection: Connection<Outlet<S>, Bytes>,
    outlet: Outlet<S>,
    shared: Rc<Shared>,
    timer: Timer<I>,
    phase: Phase,
    /// Since when no stream is open.
    idle_since: Option<Timestamp>,
    parts: Arc<Parts>,
    /// What the `h2` crate wakes.
    own: Arc<Part>,
    waker: Waker,
    /// Part `n + 1` is the place `n`: as many as there were streams at once.
    places: Vec<Place<I, R>>,
    /// Places without a stream.
    free: Vec<usize>,
    /// Memory for [`Parts::take`].
    woken: Vec<usize>,
}

type StreamSeat<I, R> = Seat<Start<I, R>, Timer<I>>;

/// Where a stream is served, one after the other.
struct Place<I: Io, R> {
    part: Arc<Part>,
    waker: Waker,
    seat: Option<StreamSeat<I, R>>,
    /// Of the streams that were served here; it wakes the same part all the time.
    timer: Option<Timer<I>>,
}

/// Whether the connection goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    GoesOn,
    Over,
}

impl<I: Io, R: Resolve, S: AsyncRead + AsyncWrite + Unpin> Run<I, R, S> {
    fn poll(&mut self, context: &mut Context<'_>, first: Timestamp) -> Poll<()> {
        self.parts.begin(context.waker());
        let local = Rc::clone(&self.local);
        let memory = &local.outlet;
        self.outlet.lend(&mut memory.borrow_mut());
        let turn = self.serve(context, first);
        let sent = self.outlet.poll_send(&mut Context::from_waker(&self.waker));
        self.outlet.give_back(&mut memory.borrow_mut());
        self.parts.end();
        match (turn, sent) {
            (Turn::Over, _) | (_, Poll::Ready(Err(_))) => Poll::Ready(()),
            (Turn::GoesOn, Poll::Ready(Ok(())) | Poll::Pending) => Poll::Pending,
        }
    }

    /// Does what there is to do.
    fn serve(&mut self, context: &mut Context<'_>, first: Timestamp) -> Turn {
        for _ in 0..PASSES {
            self.tell();
            if self.poll_woken() == Turn::Over {
                return Turn::Over;
            }
            if !has_budget_remaining() {
                break;
            }
            if self.parts.is_any_woken() {
                continue;
            }
            let due = self.due(first);
            if self.timer.poll(context, due).is_pending() {
                return Turn::GoesOn;
            }
            match self.phase {
                Phase::Open => self.leave(),
                // It does not answer: what it may still want is not known, and it has had its time.
                Phase::Leaving | Phase::Cut => return Turn::Over,
            }
        }
        // Others have waited long enough; this task is woken again at once.
        self.waker.wake_by_ref();
        Turn::GoesOn
    }

    /// Polls what was woken, in that order: what a stream said before it let others go first has left by then.
    fn poll_woken(&mut self) -> Turn {
        let mut woken = std::mem::take(&mut self.woken);
        self.parts.take(&mut woken);
        let mut turn = Turn::GoesOn;
        for number in &woken {
            match number.checked_sub(1) {
                Some(index) => self.poll_stream(index),
                None => {
                    self.own.polled();
                    turn = self.accept();
                }
            }
            if turn == Turn::Over {
                break;
            }
        }
        self.woken = woken;
        turn
    }

    /// The connection is over. Its streams learn of it and end as what they are, given up by their client: each is charged,
    /// counted and logged. One that does not learn of it in time is dropped.
    async fn finish(self) {
        let Self { local, connection, parts, mut places, mut timer, .. } = self;
        drop(connection);
        let due = local.io.now() + LEAVE;
        for place in places.iter().filter(|place| place.seat.is_some()) {
            // The last turn may have taken it from the queue without coming to it.
            place.part.polled();
            place.waker.wake_by_ref();
        }
        let mut woken = Vec::new();
        poll_fn(|context| {
            parts.begin(context.waker());
            parts.take(&mut woken);
            for number in &woken {
                let place = number.checked_sub(1).and_then(|at| places.get_mut(at));
                let Some(place) = place.filter(|place| place.seat.is_some()) else { continue };
                place.part.polled();
                let mut context = Context::from_waker(&place.waker);
                if let Some(seat) = place.seat.take_if(|seat| seat.poll(&mut context).is_ready()) {
                    local.stream_seats.give_back(seat);
                }
            }
            parts.end();
            if places.iter().all(|place| place.seat.is_none()) {
                return Poll::Ready(());
            }
            timer.poll(context, due)
        })
        .await;
    }

    fn poll_stream(&mut self, index: usize) {
        let Some(place) = self.places.get_mut(index) else { return };
        place.part.polled();
        let Some(seat) = &mut place.seat else { return };
        if let Poll::Ready(timer) = seat.poll(&mut Context::from_waker(&place.waker)) {
            place.timer = Some(timer);
            if let Some(seat) = place.seat.take() {
                self.local.stream_seats.give_back(seat);
            }
            self.free.push(index);
        }
    }

    /// Ends the connection where it has to end.
    fn tell(&mut self) {
        if self.phase == Phase::Open && self.is_closing() {
            self.leave();
        }
        if self.phase != Phase::Cut && self.is_abused() {
            self.phase = Phase::Cut;
            self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            self.waker.wake_by_ref();
        }
    }

    /// Lets the `h2` crate read and write, and begins the streams that came.
    fn accept(&mut self) -> Turn {
        loop {
            match self.connection.poll_accept(&mut Context::from_waker(&self.waker)) {
                Poll::Ready(Some(Ok((request, respond)))) => self.open(request, respond),
                Poll::Ready(Some(Err(_)) | None) => return Turn::Over,
                Poll::Pending => return Turn::GoesOn,
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
            Phase::Leaving | Phase::Cut => since + LEAVE,
            Phase::Open if self.shared.served.get() == 0 => first,
            Phase::Open => since + self.shared.entrance.listener.view().config.limits.keepalive,
        }
    }

    fn leave(&mut self) {
        self.phase = Phase::Leaving;
        self.idle_since = None;
        self.connection.graceful_shutdown();
        self.waker.wake_by_ref();
    }

    fn open(&mut self, request: http::Request<::h2::RecvStream>, respond: server::SendResponse<Bytes>) {
        self.shared.served.set(self.shared.served.get() + 1);
        let index = self.free.pop().unwrap_or_else(|| {
            let part = Part::new(&self.parts, self.places.len() + 1);
            let waker = Waker::from(Arc::clone(&part));
            self.places.push(Place { part, waker, seat: None, timer: None });
            self.places.len() - 1
        });
        let Some(place) = self.places.get_mut(index) else { return };
        let timer = place.timer.take().unwrap_or_else(|| Timer::new(self.local.io.clone()));
        let (local, open) = (Rc::clone(&self.local), Open::enter(&self.shared));
        let seat = self.local.stream_seats.take(stream::serve::<I, R>);
        seat.start(Start { local, open, request, respond, timer });
        place.seat = Some(seat);
        place.waker.wake_by_ref();
    }

    fn is_closing(&self) -> bool {
        self.local.presence.is_draining() || self.shared.entrance.listener.is_closed()
    }

    /// Whether the client opens streams to give them up, which costs it nothing and us an attempt each.
    fn is_abused(&self) -> bool {
        let cancelled = self.shared.cancelled.get();
        cancelled > RESETS && cancelled > self.shared.served.get() / 2
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
    }
}

/// So often a turn looks at what was woken meanwhile.
const PASSES: usize = 32;
/// The number of the part that is the connection itself.
const OWN: usize = 0;
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
const SEND_BUFFER: usize = 64 * 1024;
const LOCAL_RESETS: usize = 100;
/// So many streams may be given up whatever their share.
const RESETS: u64 = 200;
/// Without a stream, a client that was told to go has so long to answer.
const LEAVE: Duration = Duration::from_secs(5);
