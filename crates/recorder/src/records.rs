//! What a segment holds, one after the other: inputs with their times, when outputs were asked for, and events.
//!
//! ```text
//!   kind (1 byte)  time since the record before (number)  what belongs to the kind
//! ```
//! What comes with each tick is kept in few bytes: a pulse says what differs from the destination's last one, an outcome
//! that is repeated is a count. Everything that is rare is JSON.

mod decode;
mod encode;

use std::collections::BTreeMap;
use std::sync::Arc;

use health::{Input, Pulse};
use model::cluster::Cluster;
use model::id::Slot;
use model::time::Timestamp;

pub(crate) use decode::Decoder;
pub(crate) use encode::Encoder;

/// One thing that happened at the core.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// It was told.
    Input(Timestamp, Input),
    /// It was asked what is to be done, or for its view: who is available is chosen then.
    Asked(Asked),
    /// It told an event, as JSON.
    Event(Vec<u8>),
}

/// How far the core was asked what is to be done before the next input came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// So many outputs were taken; none: only the view.
    Some(u64),
    /// Until there was nothing left.
    All,
}

/// The configurations of a recording, by number.
pub(crate) type Configurations = BTreeMap<u64, Vec<Arc<Cluster>>>;

/// What a destination's first pulse is told against.
fn no_pulse(slot: Slot) -> Pulse {
    Pulse {
        slot,
        waiting: 0,
        waiting_since: Timestamp::MAX,
        moved_at: Timestamp::ZERO,
        first_byte_p99: None,
        slowest: None,
        latency: None,
        mean: None,
    }
}

const ASKED: u8 = 0;
const EVENT: u8 = 1;
const AGAIN: u8 = 2;
const TIMER: u8 = 3;
const OUTCOME: u8 = 4;
const SUMS: u8 = 5;
const PULSES: u8 = 6;
const PROBED: u8 = 7;
const QUIET: u8 = 8;
const CONFIGURED: u8 = 9;
const OTHER: u8 = 10;
const ASKED_SOME: u8 = 11;
