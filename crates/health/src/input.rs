//! What the core is told. Names are in the past tense: an input is a fact, never a wish.
//!
//! Every input serialises, so that a recorded run can be replayed. Facts about slots or tickets that the core does not
//! know (any more) are ignored and counted ([`crate::Ignored`]).

use std::sync::Arc;
use std::time::Duration;

use model::cluster::Cluster;
use model::health::{CheckKind, Health};
use model::id::{DestinationKey, Slot};
use model::outcome::{FailureKind, Outcome, Try};
use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::output::Ticket;

/// One fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Input {
    /// A configuration is in force from now on. The first one is the process start: nothing is held out then. A
    /// destination keeps its state while cluster id, destination id and address stay.
    Configured {
        /// All clusters, in the order of the configuration. Ids are unique.
        clusters: Vec<Arc<Cluster>>,
        /// One line for the journal: what changed.
        summary: String,
    },
    /// A configuration was refused; the one before stays. Only the journal hears of it.
    ConfigRefused {
        /// One line: why.
        summary: String,
    },
    /// The time of [`crate::Core::poll_timeout`] has come (or passed). Too early is harmless, and a driver that says it at
    /// each of its ticks lets the view's age tell whether the core still runs.
    TimerDue,
    /// A probe ended.
    Probed(Probed),
    /// One attempt ended: a failure, a trial that passed, or, where some policy of the cluster needs every outcome, whatever
    /// it was. Events of one drain come in the order of their `at`, after the sums of the same drain.
    OutcomeSeen(OutcomeEvent),
    /// Attempts that came to [`model::outcome::OutcomeClass::Ok`] since the last sums, per slot, without those that
    /// [`Input::OutcomeSeen`] tells: each success is heard once. Taken at each tick and at each drain, and handed over BEFORE
    /// the failures of that drain, so that a failure is never judged without the successes around it. Ignored for clusters
    /// that get every outcome as an event of its own.
    SumsTaken {
        /// One per slot; slots without successes may be left out.
        sums: Vec<Sum>,
    },
    /// How requests in flight are doing, per slot. Taken at each tick, after the sums.
    PulsesTaken {
        /// One per slot. A slot where nothing waits and that has no mean is told once so, and then left out until
        /// something happens there; after a configuration all are told.
        pulses: Vec<Pulse>,
    },
    /// A program set a value from outside. It stands until the check's own policy says otherwise.
    HealthSet(HealthSet),
    /// Another process has handed over what its core knew. Comes right after the first configuration; what that does
    /// not name any more, and everything under an unknown version, is forgotten.
    HealthRestored(Box<crate::saved::SavedHealth>),
    /// The process began a planned stop: every node is reported unhealthy from here on; traffic goes on.
    DrainStarted,
    /// No worker has a request in flight at this freed slot, none has a snapshot that names it, and its records are
    /// zeroed. Asked for by [`crate::Output::FreeSlot`].
    SlotQuiet {
        /// Which.
        slot: Slot,
    },
}

/// A probe's end, as facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probed {
    /// The order it answers.
    pub ticket: Ticket,
    /// How it failed; `None`: an answer came whole and its body held what was expected. The core itself compares the
    /// status with the expected ones; a driver that did so already says [`FailureKind::Status`].
    pub failure: Option<FailureKind>,
    /// The answer's status; `None` when there was none, and for `tcp`.
    pub status: Option<u16>,
}

/// One attempt's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeEvent {
    /// Who served it.
    pub slot: Slot,
    /// When the destination was picked for it.
    pub picked_at: Timestamp,
    /// When it ended.
    pub at: Timestamp,
    /// Which of its request's tries it was.
    pub which: Try,
    /// What it came to.
    pub outcome: Outcome,
}

/// Successes of one destination since the last sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// Whose.
    pub slot: Slot,
    /// How many.
    pub ok: u64,
    /// Those of them that were not the first try of their request.
    pub repeats: u64,
}

/// How one destination's requests in flight are doing, all workers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pulse {
    /// Whose.
    pub slot: Slot,
    /// Requests that were sent and have no response head yet.
    pub waiting: u32,
    /// Since when some request has waited without a break; [`Timestamp::MAX`] when none waits.
    pub waiting_since: Timestamp,
    /// When a byte or an end last came from it.
    pub moved_at: Timestamp,
    /// 99th percentile of the time to first byte of late; `None`: too few.
    pub first_byte_p99: Option<Duration>,
    /// The slowest time to first byte of the last minutes; `None`: none came.
    pub slowest: Option<Duration>,
    /// Its peak-sensitive mean; `None`: nothing of late.
    pub latency: Option<Duration>,
    /// The plain mean over the last few seconds; `None`: nothing came in them.
    pub mean: Option<Duration>,
}

/// A value set from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthSet {
    /// Whose.
    pub destination: DestinationKey,
    /// Which of its two values. One whose check is off stays Unknown.
    pub check: CheckKind,
    /// The value.
    pub health: Health,
    /// For a passive Unhealthy: Unknown again after this; `None`: after the cluster's reactivation period.
    pub reactivation: Option<Duration>,
}
