//! What all connections of one worker share: the way out, the pool, buffers. Nothing here leaves the thread.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use exchange::Snapshot;
use http1::request::RequestHead;
use http1::response::ResponseHead;
use io::Io;
use telemetry::metrics::WorkerMetrics;
use upstream::h2::Connections;
use upstream::pool::Pool;
use upstream::{Connector, Stream};

use crate::access_log::AccessLog;
use crate::awake::Awake;
use crate::buffering::Store;
use crate::faults::Faults;
use crate::front::Front;
use crate::h2;
use crate::limits::Limits;
use crate::pipes::Pipes;
use crate::presence::Presence;
use crate::request_id::Ids;
use crate::seats::{self, Seats};
use crate::sums::Sums;
use crate::timer::Timer;
use crate::tls::ServerTls;
use crate::wall::Date;

/// One worker's state.
pub(crate) struct Local<I: Io, R> {
    pub(crate) io: I,
    pub(crate) connector: Connector<I, R>,
    pub(crate) board: board::Worker<Snapshot>,
    pub(crate) metrics: WorkerMetrics,
    /// Where of these what every request counts is.
    pub(crate) sums: Sums,
    pub(crate) access_log: Option<AccessLog>,
    pub(crate) instance: Arc<str>,
    pub(crate) picks: RefCell<exchange::Worker>,
    pub(crate) pool: RefCell<Pool<Stream<I::Stream>>>,
    /// Connections to destinations that carry many exchanges at once.
    pub(crate) streams: Connections,
    /// Every read of this thread goes in here first: connections that wait hold no buffer.
    pub(crate) scratch: RefCell<Vec<u8>>,
    #[expect(clippy::vec_box, reason = "a task holds the pointer, and half a kilobyte is not moved twice a request")]
    pub(crate) workspaces: RefCell<Vec<Box<Workspace>>>,
    pub(crate) seats: Seats<seats::Start<I, R>, seats::End<I>>,
    /// The same for streams of HTTP/2.
    pub(crate) stream_seats: Seats<h2::Start<I, R>, Timer<I>>,
    /// What a connection of HTTP/2 sends is collected in here.
    pub(crate) outlet: RefCell<Vec<u8>>,
    pub(crate) presence: Presence,
    pub(crate) awake: Awake,
    /// TLS of listeners.
    pub(crate) server_tls: ServerTls,
    /// Where it is said that a listener does not accept.
    pub(crate) faults: Faults,
    /// For large bodies between plain connections.
    pub(crate) pipes: Rc<Pipes>,
    /// Memory for bodies that are taken ahead.
    pub(crate) store: Store,
    /// What answers of our own carry.
    pub(crate) date: Date,
    /// Shared with the other workers.
    pub(crate) limits: Arc<Limits>,
    /// Where ids of requests come from.
    pub(crate) ids: Ids,
}

/// The memory of one exchange. Taken when the first byte of a request arrives, given back when the exchange is over.
#[derive(Default)]
pub(crate) struct Workspace {
    pub(crate) request: RequestHead,
    /// The request's head, and what came behind it until the head was complete.
    pub(crate) head: Vec<u8>,
    /// Towards the destination: head and first bytes of the body.
    pub(crate) out: Vec<u8>,
    /// The window over the request's body.
    pub(crate) window: Vec<u8>,
    pub(crate) response: ResponseHead,
    /// From the destination: head and first bytes of the body.
    pub(crate) reply: Vec<u8>,
    /// What of these bytes was left in [`Local::scratch`], for the moment.
    pub(crate) front: Front,
    /// Towards the client: what is not sent yet.
    pub(crate) back: Vec<u8>,
}

impl<I: Io, R> Local<I, R> {
    /// A workspace, used before or new.
    pub(crate) fn workspace(&self) -> Box<Workspace> {
        self.workspaces.borrow_mut().pop().unwrap_or_default()
    }

    /// Gives a workspace back.
    pub(crate) fn give_back(&self, mut workspace: Box<Workspace>) {
        let mut idle = self.workspaces.borrow_mut();
        if idle.len() < IDLE_WORKSPACES {
            workspace.clear();
            idle.push(workspace);
        }
    }
}

impl Workspace {
    /// Takes what was left in the worker's buffer.
    pub(crate) fn take_front(&mut self, scratch: &[u8]) {
        let front = std::mem::take(&mut self.front);
        self.reply.extend_from_slice(front.of(scratch));
    }

    fn clear(&mut self) {
        self.front = Front::default();
        for buffer in [&mut self.head, &mut self.out, &mut self.window, &mut self.reply, &mut self.back] {
            buffer.clear();
            // What a large body has grown is not kept for the next small one.
            buffer.shrink_to(KEPT_CAPACITY);
        }
    }
}

/// A buffer for [`Local::scratch`].
pub(crate) fn scratch() -> RefCell<Vec<u8>> {
    RefCell::new(vec![0; SCRATCH])
}

/// Text of an address as it stands in X-Forwarded-For and logs: IPv4 in IPv6 is IPv4, no zone.
pub(crate) fn address_of(peer: SocketAddr) -> std::net::IpAddr {
    peer.ip().to_canonical()
}

/// One read takes so much at most: large bodies go in few system calls.
const SCRATCH: usize = 256 * 1024;
const IDLE_WORKSPACES: usize = 256;
const KEPT_CAPACITY: usize = 16 * 1024;
