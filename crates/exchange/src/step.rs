//! What goes into the machine and what comes out.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use model::id::{ClusterIndex, DestinationIndex, RouteIndex, Slot};
use model::outcome::{AttemptEnd, Outcome, OutcomeClass, Try};
use model::time::Timestamp;
pub use retry::{Cost, Replay, RetryDenied};

use crate::limit::{ClientKey, Pace, Rule};
pub use crate::reason::Reason;

/// What the driver tells the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The running attempt has a complete response head; nothing of it went to the client yet.
    ResponseHead {
        /// Its status, 200 or above, or 101 (other 1xx never reach the machine).
        status: u16,
        /// A `Retry-After` stood in it.
        retry_after: bool,
        /// Whether the request's body can be sent once more.
        body_replayable: Replay,
        /// What follows the head.
        content: Content,
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
    /// The request's body was read as [`Step::Gather`] asked, or is not to be: a destination is needed now.
    Gathered,
    /// Something may have become free for this request, and it is its turn among those that wait.
    Woken,
    /// The wait of [`Step::Wait`] is over.
    WaitOver,
    /// As many wait already as may.
    QueueFull,
    /// The total deadline is over.
    DeadlineReached,
    /// The client went away before its answer began.
    ClientGone,
}

/// What follows a response's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A message that comes to an end by itself.
    Message,
    /// Events for as long as both sides like: what the attempt came to is known with the head, unless it breaks off.
    Events,
}

/// What the driver does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read the request's body to its end before a destination is chosen, then tell [`Input::Gathered`]. No destination
    /// has part in what happens until then; a fault of the client is answered without asking the machine again.
    Gather,
    /// Nobody can take the request now: join those of its cluster that wait, in the order of arrival, and tell
    /// [`Input::Woken`] when it is first there and whenever something may have changed, [`Input::WaitOver`] at `until`.
    /// A driver that finds as many there as may wait tells [`Input::QueueFull`].
    Wait {
        /// Until when.
        until: Timestamp,
        /// A place at this destination alone helps; `None`: at any.
        wants: Option<Slot>,
    },
    /// Start an attempt.
    Connect(Attempt),
    /// Keep this response (head and body, as far as it fits the replay limit) and start another attempt; the held one
    /// is the answer when nothing better comes. A driver that cannot keep it calls `Exchange::drop_held`.
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
    /// Counted from 1. A free resend has the number of the attempt that it repeats.
    pub number: u8,
    /// Which connection to use.
    pub connection: Connection,
    /// What it holds of the destination.
    pub admission: Admission,
    /// Its own time, from its beginning to its response's head; `None`: it has no limit of its own.
    pub limit: Option<TryLimit>,
}

/// The time of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryLimit {
    /// It ends the attempt, also the last one.
    Given(Duration),
    /// It was learnt, and ends the attempt only where [`crate::Exchange::may_be_cut`] says so.
    Learnt(Duration),
}

impl TryLimit {
    /// How long it is.
    pub fn span(self) -> Duration {
        match self {
            Self::Given(span) | Self::Learnt(span) => span,
        }
    }
}

/// Which connection an attempt uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connection {
    /// A pooled one if there is one.
    Any,
    /// A fresh one: a pooled one has just failed.
    Fresh,
}

/// What an attempt holds of its destination until it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Nothing: its destination has no gate, and its places are not counted.
    Open,
    /// The gate, and one of the places where they are counted.
    Gate,
    /// One of the places (`max_connections`).
    Place,
}

/// An answer of our own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status. 499: nothing is sent.
    pub status: u16,
    /// Why: the RFC 9209 error type and our own word, also for the access log.
    pub reason: Reason,
    /// Body, when the route gives one.
    pub body: Option<Arc<str>>,
    /// Value of Location, for redirects.
    pub location: Option<Arc<str>>,
    /// Value of Allow, for 405.
    pub allow: Option<Arc<str>>,
    /// Value of Retry-After, seconds.
    pub retry_after: Option<u32>,
}

impl Answer {
    /// The answer that a reason has by itself.
    pub fn of(reason: Reason) -> Self {
        Self { status: reason.status(), reason, body: None, location: None, allow: None, retry_after: None }
    }
}

/// What an ended attempt leaves for the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The cluster, in the snapshot of this exchange.
    pub cluster: ClusterIndex,
    /// The destination there.
    pub destination: DestinationIndex,
    /// When the destination was picked.
    pub picked_at: Timestamp,
    /// Which of the exchange's tries it was.
    pub which: Try,
    /// What it held of the destination and gives back now, its place not before a stream of events is over. `Open` also
    /// where a later report does.
    pub admission: Admission,
    /// What the policies learn.
    pub outcome: Outcome,
    /// Which part of the attempt it tells of.
    pub part: Part,
}

impl Report {
    /// How it is told where only failures are told one by one. A trial that passed is, too, whether or not its destination
    /// still has a gate when it ends: in a sum it could not be told from answers to requests that were sent before the
    /// ejection.
    pub fn telling(&self) -> Telling {
        match (self.outcome.class, self.admission) {
            (OutcomeClass::Ok, Admission::Open | Admission::Place) | (OutcomeClass::Neutral, _) => Telling::AsSum,
            (OutcomeClass::Ok, Admission::Gate)
            | (
                OutcomeClass::AppFail
                | OutcomeClass::ConnFail
                | OutcomeClass::Timeout
                | OutcomeClass::Cut
                | OutcomeClass::Overload
                | OutcomeClass::Slow,
                _,
            ) => Telling::ByItself,
        }
    }
}

/// How the health core hears of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// One more of its class.
    AsSum,
    /// With its times.
    ByItself,
}

/// Which part of an attempt a report tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// A stream of events has begun; of its end only a break is reported.
    Begun,
    /// A stream that was reported when it began has broken off.
    Broken,
}

/// A destination's places (`max_connections`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    /// So many are there.
    pub most: NonZeroU32,
    /// The number of its cluster's budget: those who wait for that cluster are told of a place that is given back.
    pub cluster: u32,
}

/// What keeps a request from a destination that is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Somebody holds its gate.
    Gate,
    /// All its places are taken.
    Place,
}

/// What the machine shares with other exchanges: reads of counts, and the few writes that a retry or a gate costs.
pub trait Shared {
    /// Requests in flight at a destination, all workers together.
    fn in_flight(&self, slot: Slot) -> u32;
    /// The peak-sensitive mean of a destination's time to first byte; `None` when nothing is known.
    fn latency(&self, slot: Slot) -> Option<Duration>;
    /// Takes the price of one retry from the cluster's budget; false when it is not there. Never called with nothing.
    /// What comes in (`retry::budget`) is paid at the core's tick, so that a request that succeeds writes nothing.
    fn withdraw(&self, budget: u32, cost: Cost) -> bool;
    /// Gives back what [`Shared::withdraw`] took for a retry that found nobody to go to.
    fn refund(&self, budget: u32, cost: Cost);
    /// Whether the cluster's budget holds the price of one retry. Takes nothing.
    fn can_pay(&self, budget: u32, cost: Cost) -> bool;
    /// Claims the destination's gate, and one of its places where they are counted, for the attempt that begins. An
    /// error: nothing was claimed.
    fn claim(&self, slot: Slot, places: Option<Places>) -> Result<(), Refused>;
    /// Whether somebody holds the destination's gate at `now`.
    fn is_held(&self, slot: Slot, now: Timestamp) -> bool;
    /// Takes one of the destination's places, for the attempt that begins; false when there is none.
    fn occupy(&self, slot: Slot, places: Places) -> bool;
    /// Whether all of the destination's places are taken at this moment.
    fn is_full(&self, slot: Slot, places: Places) -> bool;
    /// Whether requests wait for the cluster: a new one does not go before them.
    fn is_queued(&self, cluster: u32) -> bool;
    /// Whether more than half of the destination's attempts of the last 10 s failed (of five or more): when all that is
    /// left fails like that, requests whose bytes went out are not repeated.
    fn is_failing(&self, slot: Slot) -> bool;
    /// Takes one request from what the client may still ask for; how long until it may where it may not.
    fn take(&self, rule: Rule, client: ClientKey, pace: Pace) -> Result<(), Duration>;
    /// Whether the worker has been there all the time since then: what was measured over a pause of the process, or while its
    /// thread got no CPU, says nothing of a destination.
    fn is_awake_since(&self, since: Timestamp) -> bool;
    /// Counts one more request of the client in flight, until the exchange is over; false when it has `most` already.
    fn enter(&self, rule: Rule, client: ClientKey, most: u32) -> bool;
}

/// Where an exchange stands, for the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The route that matched.
    pub route: Option<RouteIndex>,
    /// Its cluster.
    pub cluster: Option<ClusterIndex>,
}
