//! What goes into the machine and what comes out.
//!
//! ```text
//!                    ┌────────── AttemptEnded, may go on ──────────┐
//!                    v                                             │
//!  begin ──> Step::Connect ──(driver connects, sends)──> ResponseHead ──> Step::Forward ──> ResponseEnded ──> Done
//!    │               │                                             │
//!    │               └─ AttemptEnded, may not ─> Step::Answer      └─ listed status ─> Step::HoldThenConnect
//!    └─ no route, respond, redirect, deny, none available ─> Step::Answer
//! ```

use std::sync::Arc;

use model::id::{ClusterIndex, DestinationIndex, RouteIndex};
use model::outcome::{AttemptEnd, Outcome};

/// What the driver tells the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The running attempt has a complete response head; nothing of it went to the client yet.
    ResponseHead {
        /// Its status, 200 or above (1xx never reach the machine).
        status: u16,
        /// A `Retry-After` stood in it.
        retry_after: bool,
        /// The request body, as far as it was read, still lies in the replay buffer whole.
        body_replayable: Replay,
    },
    /// The running attempt failed before its head was forwarded.
    AttemptEnded {
        /// How.
        end: AttemptEnd,
        /// Whether the request's body can be sent once more.
        body_replayable: Replay,
    },
    /// The forwarded response came to its end, good or bad.
    ResponseEnded {
        /// How.
        end: AttemptEnd,
    },
    /// The total deadline is over.
    DeadlineReached,
    /// The client went away before its answer began.
    ClientGone,
}

/// Whether the request's body can be sent once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// There is none, nothing of it was sent, or all that was sent still lies in the buffer.
    Possible,
    /// Bytes were sent that are gone.
    Lost,
}

/// What the driver does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Start an attempt.
    Connect(Attempt),
    /// Keep this response (head and body, as far as it fits the replay limit) and start another attempt; the held one
    /// is the answer when nothing better comes.
    HoldThenConnect(Attempt),
    /// Send this response to the client. From here on nothing is retried.
    Forward,
    /// Send the held response.
    AnswerHeld,
    /// Send an answer of our own.
    Answer(Answer),
    /// Nothing more: the exchange is over.
    Done,
}

/// One try at one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The cluster, in the snapshot of this exchange.
    pub cluster: ClusterIndex,
    /// The destination there.
    pub destination: DestinationIndex,
    /// Counted from 1.
    pub number: u8,
    /// Which connection to use.
    pub connection: Connection,
}

/// Which connection an attempt uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// A pooled one if there is one.
    Any,
    /// A fresh one: a pooled one has just failed.
    Fresh,
}

/// An answer of our own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Why: the RFC 9209 error type and our own word, also for the access log.
    pub reason: Reason,
    /// Body, when the route gives one.
    pub body: Option<Arc<str>>,
    /// Value of Location, for redirects.
    pub location: Option<Arc<str>>,
}

/// Why an answer is our own. `Proxy-Status: lazaret; error=<error>; details="<details>"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// A route's `respond`, `redirect` or `deny`: no error.
    Route,
    /// No route matches: 404.
    NoRoute,
    /// Routes match but for the method: 405.
    MethodNotAllowed,
    /// The route's cluster does not exist: 503.
    NoCluster,
    /// No destination is available: 503.
    NoneAvailable,
    /// The pinned destination is not available and its policy says 503.
    AffinityLost,
    /// Name not found: 502.
    Dns,
    /// Refused: 502.
    ConnectionRefused,
    /// Unreachable: 502.
    Unreachable,
    /// Connect timeout: 504.
    ConnectTimeout,
    /// TLS failed: 502.
    Tls,
    /// Broken off before a response: 502.
    ConnectionReset,
    /// A reused connection broke and the request may not be repeated: 502.
    ReusedConnectionReset,
    /// No head in time (idle or per-try): 504.
    ResponseTimeout,
    /// Not HTTP: 502.
    ProtocolError,
    /// The destination's head is too large: 502.
    HeadTooLarge,
    /// The total deadline: 504.
    Deadline,
    /// No descriptor, port or memory on our side: 503.
    Local,
    /// The client went away: nothing is sent, the log says 499.
    ClientGone,
    /// The client's body was at fault: 400, or 408 when it stalled.
    ClientBody,
}

/// What an ended attempt leaves for the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The cluster, in the snapshot of this exchange.
    pub cluster: ClusterIndex,
    /// The destination there.
    pub destination: DestinationIndex,
    /// What the policies learn.
    pub outcome: Outcome,
}

/// Why no further attempt was made, for the log and the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RetryDenied {
    /// All attempts are used.
    Attempts,
    /// The condition is not listed.
    Condition,
    /// The method may not be repeated.
    Method,
    /// The body cannot be sent again.
    Body,
    /// The cluster's budget is used up.
    Budget,
    /// Not enough time is left.
    Deadline,
    /// No untried destination is available.
    Untried,
    /// The untried ones fail as well.
    Pool,
}

/// What the machine shares with other exchanges: reads of counts, and the few writes that a retry or a gate costs.
pub trait Shared {
    /// Requests in flight at a destination, all workers together.
    fn in_flight(&self, slot: model::id::Slot) -> u32;
    /// Takes the price of one retry from the cluster's budget; false when it is not there.
    fn withdraw(&self, budget: u32) -> bool;
    /// Claims the destination's gate; false when somebody holds it.
    fn claim(&self, slot: model::id::Slot) -> bool;
}

/// Where an exchange stands, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The route that matched.
    pub route: Option<RouteIndex>,
    /// Its cluster.
    pub cluster: Option<ClusterIndex>,
}
