//! What an ended attempt leaves on the board, and what becomes of the gate that it held.
//!
//! Whoever carries requests (the proxy over real sockets, the policy lab in virtual time) settles them here, so that the
//! core hears the same of both.

use std::time::Duration;

use board::{Ended, GateGuard, Worker};
use exchange::snapshot::{Needs, Snapshot};
use exchange::step::Telling;
use exchange::{Admission, Report};
use model::id::Slot;
use model::outcome::OutcomeClass;
use model::time::Timestamp;

/// Tells of the attempt that `report` is about and that has ended at `now`: as fully as the policies of its cluster need it.
#[inline]
pub fn outcome(board: &Worker<Snapshot>, now: Timestamp, report: &Report, slot: Slot, needs: Needs) {
    match needs {
        Needs::Nothing | Needs::Failures if report.telling() == Telling::AsSum => {
            board.count(slot, report.outcome.class, report.which);
        }
        // A cluster without passive policies still has probes that a failure calls for earlier.
        Needs::Nothing | Needs::Failures | Needs::EveryOutcome => {
            let Report { picked_at, which, outcome, .. } = *report;
            board.report(slot, Ended { picked_at, ended_at: now, which, outcome });
        }
    }
}

/// The gate that is held on: that of an attempt which this report does not end. A trial's stays shut until the core has
/// heard of what came of it ([`crate::gates`]); after an end that says nothing it opens again at once.
pub fn gate(report: &Report, held: Option<GateGuard>) -> Option<GateGuard> {
    match (report.admission, report.outcome.class) {
        (Admission::Gate, OutcomeClass::Neutral) => None,
        (Admission::Gate, _) => {
            if let Some(gate) = held {
                gate.keep();
            }
            None
        }
        (Admission::Open | Admission::Place, _) => held,
    }
}

/// A trial request that takes longer than this no longer keeps others out.
pub const GATE_LEASE: Duration = Duration::from_secs(60);
