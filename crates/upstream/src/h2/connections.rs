//! A worker's HTTP/2 connections: finds one with room, or makes one.
//!
//! ```text
//!   open ──> a connection with room ─────────────────────────────────────────────> Place
//!     │ none
//!     ├──> one is being made (or waits for the destination's preface): wait for it ──> again, or its failure
//!     └──> connect (one at a time) ──┬─ h2 ──> Connection ──> Place; the others are told
//!                                    └─ ALPN chose http/1.1 ──> Opened::Http1; the others connect by themselves
//! ```
//! A burst of requests so makes one connection and not one each; when that is full, the next. All of it is one thread's:
//! no lock is held over an await, and who gives up in the middle of connecting hands the turn on.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use ::io::Io;
use ::io::deadline::Deadline;
use model::id::Slot;
use model::outcome::FailureKind;
use model::time::Timestamp;
use model::tls::Alpn;
use model::upstream::UpstreamHttp;
use tokio::sync::Notify;

use super::connection::{Connection, Place};
use crate::connect::{ConnectError, Connector};
use crate::key::{Key, OwnedKey};
use crate::resolve::Resolve;
use crate::stream::Stream;

/// HTTP/2 connections of one worker, by destination.
#[derive(Default)]
pub struct Connections {
    peers: RefCell<Vec<Option<Peer>>>,
    /// Connections so far.
    made: Cell<u64>,
    /// When [`Connections::sweep`] came last.
    swept: Cell<Timestamp>,
}

/// How long connections are kept, and whether they are asked if they live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Care {
    /// A connection is closed after so long without a stream.
    pub idle: Duration,
    /// While streams wait: a PING after so long without a byte, the connection's end after as long again; `None`: never.
    pub ping: Option<Duration>,
}

/// Which connections will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Any that lives.
    Any,
    /// One that is made from now on.
    Fresh,
}

/// A way to a destination.
pub enum Opened<S> {
    /// A stream of HTTP/2.
    Http2(Place),
    /// The destination chose HTTP/1.1.
    Http1(Stream<S>),
}

/// One destination's.
struct Peer {
    key: OwnedKey,
    care: Care,
    /// Each with its number; the oldest first.
    connections: Vec<(u64, Rc<Connection>)>,
    turn: Option<Rc<Turn>>,
    /// ALPN chose HTTP/1.1 last.
    is_http1: bool,
    /// Told when there may be room, or nobody connects any more.
    told: Rc<Notify>,
}

/// Whoever connects.
#[derive(Default)]
struct Turn {
    failed: Cell<Option<FailureKind>>,
}

/// What is to be done next.
enum Next {
    Use(Place),
    Wait(Rc<Notify>, Option<Rc<Turn>>),
    Connect(Rc<Turn>, Rc<Notify>),
    ConnectAlone(Rc<Notify>),
}

impl Connections {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Connections that are known and not yet closed by us.
    pub fn len(&self) -> usize {
        self.peers.borrow().iter().flatten().map(|peer| peer.connections.len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the destination chose HTTP/1.1 last.
    pub fn is_http1(&self, key: &Key<'_>) -> bool {
        let peers = self.peers.borrow();
        let peer = peers.get(key.slot.index()).and_then(Option::as_ref).filter(|peer| peer.key.fits(key));
        peer.is_some_and(|peer| peer.is_http1)
    }

    /// Room for a stream, by `deadline`: on a connection that is there, on one that somebody is making, or on a new one.
    pub async fn open<I: Io, R: Resolve>(
        &self,
        connector: &Connector<I, R>,
        key: &Key<'_>,
        wanted: Wanted,
        care: Care,
        deadline: Timestamp,
    ) -> Result<Opened<I::Stream>, ConnectError> {
        let from = match wanted {
            Wanted::Any => 0,
            Wanted::Fresh => self.made.get(),
        };
        let deadline = Deadline::new(connector.io().clone(), deadline);
        loop {
            let next = self.next(key, care, from);
            match next {
                Next::Use(place) => return Ok(Opened::Http2(place)),
                Next::Wait(told, turn) => {
                    if deadline.within(told.notified()).await.is_err() {
                        return Err(waited(FailureKind::ConnectTimeout));
                    }
                    if let Some(kind) = turn.and_then(|turn| turn.failed.get()) {
                        return Err(waited(kind));
                    }
                }
                Next::Connect(turn, told) => {
                    let _turn = TakenTurn { connections: self, slot: key.slot.index(), turn: Rc::clone(&turn) };
                    let opened = self.connect(connector, key, told, &deadline).await;
                    if let Err(error) = &opened {
                        turn.failed.set(Some(error.kind));
                    }
                    return opened;
                }
                Next::ConnectAlone(told) => return self.connect(connector, key, told, &deadline).await,
            }
        }
    }

    fn next(&self, key: &Key<'_>, care: Care, from: u64) -> Next {
        let mut peers = self.peers.borrow_mut();
        let index = key.slot.index();
        if peers.len() <= index {
            peers.resize_with(index + 1, || None);
        }
        let Some(place) = peers.get_mut(index) else { return Next::ConnectAlone(Rc::default()) };
        // Those of other settings end with their last stream.
        let peer = match place {
            Some(peer) if peer.key.fits(key) => peer,
            Some(_) | None => place.insert(Peer::new(key)),
        };
        peer.care = care;
        if let Some(place) = peer.place(from) {
            return Next::Use(place);
        }
        let told = Rc::clone(&peer.told);
        if let Some(turn) = &peer.turn {
            return Next::Wait(told, Some(Rc::clone(turn)));
        }
        if peer.connections.iter().any(|(number, one)| *number >= from && !one.is_greeted()) {
            return Next::Wait(told, None);
        }
        if peer.is_http1 {
            return Next::ConnectAlone(told);
        }
        let turn = Rc::new(Turn::default());
        peer.turn = Some(Rc::clone(&turn));
        Next::Connect(turn, told)
    }

    async fn connect<I: Io, R: Resolve>(
        &self,
        connector: &Connector<I, R>,
        key: &Key<'_>,
        told: Rc<Notify>,
        deadline: &Deadline<I>,
    ) -> Result<Opened<I::Stream>, ConnectError> {
        let stream = connector.connect_within(key.target(), deadline).await?;
        let spoken = match key.http {
            UpstreamHttp::Http1 => Alpn::Http11,
            UpstreamHttp::Http2 => Alpn::Http2,
            UpstreamHttp::Http2OrHttp1 => stream.alpn().unwrap_or(Alpn::Http11),
        };
        self.learn(key, spoken);
        if spoken == Alpn::Http11 {
            return Ok(Opened::Http1(stream));
        }
        let now = connector.io().now();
        let started = deadline.within(Connection::start(stream, told, now)).await;
        let failed = |kind, source| ConnectError { kind, address: None, source };
        let connection = match started {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(failed(FailureKind::Reset, error)),
            Err(_) => return Err(waited(FailureKind::ConnectTimeout)),
        };
        let place = connection.take();
        let number = self.made.replace(self.made.get() + 1);
        if let Some(Some(peer)) = self.peers.borrow_mut().get_mut(key.slot.index())
            && peer.key.fits(key)
        {
            peer.connections.push((number, connection));
        }
        Ok(Opened::Http2(place))
    }

    fn learn(&self, key: &Key<'_>, spoken: Alpn) {
        if let Some(Some(peer)) = self.peers.borrow_mut().get_mut(key.slot.index()) {
            peer.is_http1 = spoken == Alpn::Http11;
        }
    }

    /// Forgets those of all other destinations; what runs on them goes on.
    pub fn retain(&self, mut is_kept: impl FnMut(Slot) -> bool) {
        for (index, place) in (0..).zip(self.peers.borrow_mut().iter_mut()) {
            if !is_kept(Slot(index)) {
                *place = None;
            }
        }
    }

    /// Closes what carried nothing for too long, drops what has ended, asks what stands still. For a tick, once a second
    /// or so: after a longer pause nobody is blamed for silence.
    pub fn sweep(&self, now: Timestamp) {
        let was_away = now.since(self.swept.replace(now)) > AWAY;
        for place in self.peers.borrow_mut().iter_mut() {
            let Some(peer) = place else { continue };
            let care = peer.care;
            peer.connections.retain(|(_, one)| {
                if was_away && one.open() > 0 {
                    one.excuse(now);
                }
                let still = one.tick(care.ping, now);
                one.is_usable() && (one.open() > 0 || still < care.idle)
            });
            if peer.connections.is_empty() && peer.turn.is_none() && !peer.is_http1 {
                *place = None;
            }
        }
    }
}

impl Peer {
    fn new(key: &Key<'_>) -> Self {
        Self {
            key: key.owned(),
            care: Care { idle: Duration::ZERO, ping: None },
            connections: Vec::new(),
            turn: None,
            is_http1: false,
            told: Rc::default(),
        }
    }

    /// Room on the oldest connection that has some, made as number `from` or later: so the younger ones become idle
    /// when there is less to do.
    fn place(&mut self, from: u64) -> Option<Place> {
        self.connections.retain(|(_, one)| one.is_usable());
        self.connections.iter().filter(|(number, _)| *number >= from).find_map(|(_, one)| one.place())
    }
}

/// Hands the turn on when it is over, however it ends.
struct TakenTurn<'a> {
    connections: &'a Connections,
    slot: usize,
    turn: Rc<Turn>,
}

impl Drop for TakenTurn<'_> {
    fn drop(&mut self) {
        if let Some(Some(peer)) = self.connections.peers.borrow_mut().get_mut(self.slot)
            && peer.turn.as_ref().is_some_and(|turn| Rc::ptr_eq(turn, &self.turn))
        {
            peer.turn = None;
            peer.told.notify_waiters();
        }
    }
}

fn waited(kind: FailureKind) -> ConnectError {
    let source = io::Error::other("the connection that this request waited for did not come");
    ConnectError { kind, address: None, source }
}

/// A sweep that comes so long after the one before was kept from coming.
const AWAY: Duration = Duration::from_secs(3);
