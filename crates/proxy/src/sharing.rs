//! What the exchange machine shares with other exchanges, over the board; and what its reports leave there.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use board::{Ended, GateGuard, Trend};
use exchange::limit::{ClientKey, Pace, Rule};
use exchange::snapshot::Needs;
use exchange::step::{Cost, Shared};
use exchange::{Admission, Report, Snapshot};
use model::id::Slot;
use model::outcome::OutcomeClass;
use model::time::Timestamp;

use crate::limits::{Limits, Permit};

/// One exchange's access to the board.
pub(crate) struct Sharing<'a> {
    board: &'a board::Worker<Snapshot>,
    now: Cell<Timestamp>,
    /// The gate that the running attempt holds.
    gate: RefCell<Option<GateGuard>>,
    limits: &'a Arc<Limits>,
    /// The client's place among its requests in flight, until the exchange is over.
    permit: RefCell<Option<Permit>>,
}

impl<'a> Sharing<'a> {
    /// For an exchange that begins at `now`.
    pub(crate) fn new(board: &'a board::Worker<Snapshot>, limits: &'a Arc<Limits>, now: Timestamp) -> Self {
        Self { board, now: Cell::new(now), gate: RefCell::new(None), limits, permit: RefCell::new(None) }
    }

    /// Time goes on. The gate of the attempt that may end with the next input is handed out, so that a gate claimed by
    /// the next attempt does not take its place; it comes back by [`Sharing::settle`].
    pub(crate) fn advance(&self, now: Timestamp) -> Option<GateGuard> {
        self.now.set(now);
        self.gate.take()
    }

    /// Puts an ended attempt into the board. The gate stays shut until the core has heard of what came of it; after an
    /// end that says nothing it opens again at once.
    pub(crate) fn settle(&self, report: Option<Report>, slot: Option<Slot>, needs: Needs, gate: Option<GateGuard>) {
        let Some(report) = report else {
            return self.hand_back(gate);
        };
        match (report.admission, report.outcome.class) {
            (Admission::Gate, OutcomeClass::Neutral) => drop(gate),
            (Admission::Gate, _) => {
                if let Some(gate) = gate {
                    gate.keep();
                }
            }
            (Admission::Open, _) => self.hand_back(gate),
        }
        let Some(slot) = slot else { return };
        let is_quiet = matches!(report.outcome.class, OutcomeClass::Ok | OutcomeClass::Neutral);
        match needs {
            Needs::Nothing | Needs::Failures if is_quiet => self.board.count(slot, report.outcome.class),
            // A cluster without passive policies still has probes that a failure calls for earlier.
            Needs::Nothing | Needs::Failures | Needs::EveryOutcome => {
                let ended = Ended { picked_at: report.picked_at, ended_at: self.now.get(), outcome: report.outcome };
                self.board.report(slot, ended);
            }
        }
    }

    /// The client's place among its requests in flight, for what goes on after the exchange.
    pub(crate) fn permit(&self) -> Option<Permit> {
        self.permit.take()
    }

    fn hand_back(&self, gate: Option<GateGuard>) {
        let mut place = self.gate.borrow_mut();
        if place.is_none() {
            *place = gate;
        }
    }
}

impl Shared for Sharing<'_> {
    fn in_flight(&self, slot: Slot) -> u32 {
        self.board.in_flight(slot)
    }

    fn latency(&self, slot: Slot) -> Option<Duration> {
        self.board.board().latency(slot)
    }

    fn withdraw(&self, budget: u32, cost: Cost) -> bool {
        self.board.board().withdraw(budget, cost.0)
    }

    fn can_pay(&self, budget: u32, cost: Cost) -> bool {
        self.board.board().balance(budget) >= cost.0
    }

    fn claim(&self, slot: Slot) -> bool {
        let guard = self.board.claim_gate(slot, self.now.get(), GATE_LEASE);
        let is_claimed = guard.is_some();
        if is_claimed {
            self.gate.replace(guard);
        }
        is_claimed
    }

    fn is_failing(&self, slot: Slot) -> bool {
        self.board.board().trend(slot) == Trend::Failing
    }

    fn take(&self, rule: Rule, client: ClientKey, pace: Pace) -> Result<(), Duration> {
        self.limits.take(self.now.get(), rule, client, pace)
    }

    fn enter(&self, rule: Rule, client: ClientKey, most: u32) -> bool {
        let permit = self.limits.enter(rule, client, most);
        let is_admitted = permit.is_some();
        if is_admitted {
            self.permit.replace(permit);
        }
        is_admitted
    }
}

/// A trial request that takes longer than this no longer keeps others out.
const GATE_LEASE: Duration = Duration::from_secs(60);
