//! Where an exchange is, and what it remembers of the way.

use model::time::Timestamp;

use super::wait::Waiting;
use crate::step::Attempt;

/// Where an exchange is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The request's body is read; no destination is chosen.
    Gathering,
    /// No destination can take it now.
    Waiting(Waiting),
    /// An attempt runs.
    Attempting(Running),
    /// Its response goes to the client.
    Forwarding(Running, u16),
    /// The answer is decided, no attempt runs.
    Ended,
}

/// An attempt that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) attempt: Attempt,
    pub(super) picked_at: Timestamp,
    pub(super) told: Told,
    pub(super) given: Given,
}

/// What the total deadline leaves an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// As good as what an attempt may have (a first one: half of it); or there is no deadline.
    Enough,
    /// What earlier attempts, or waiting, have left.
    Rest,
}

/// Whether an attempt was reported before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Nothing,
    /// A stream of events: it is Ok from its head on.
    Begun,
}

/// Who set the total deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// The configuration.
    Ours,
    /// The client, and all limits of ours are longer.
    Client,
}

/// Whether the request is a call that says how long its caller waits (`grpc-timeout`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallTime {
    /// It is none, or says nothing that can be read.
    Unsaid,
    Said,
}

/// The one free resend of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resend {
    Unused,
    Used,
}

/// Whether the request is served where its session lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Session {
    /// There, or where it will live from now on.
    AtHome,
    /// Elsewhere for this time, because its destination is spared or full.
    Visiting,
}

/// Whether the driver keeps a real response of an earlier attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Nothing,
    Response,
}

/// How the attempt that just ended is accounted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    Possible,
    No,
}
