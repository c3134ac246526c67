//! What an exchange shares with others of its proxy: the same board as in production, without limits per client.

use std::cell::RefCell;
use std::time::Duration;

use board::{GateGuard, Trend};
use bridge::settle;
use exchange::Report;
use exchange::limit::{ClientKey, Pace, Rule};
use exchange::snapshot::{Needs, Snapshot};
use exchange::step::{Cost, Places, Refused, Shared};
use model::id::Slot;
use model::time::Timestamp;

/// One call's access to the board.
pub struct Sharing<'a> {
    board: &'a board::Worker<Snapshot>,
    now: Timestamp,
    /// The gate that the attempt which begins with this call holds.
    gate: RefCell<Option<GateGuard>>,
}

impl<'a> Sharing<'a> {
    /// For a call at `now`.
    pub fn new(board: &'a board::Worker<Snapshot>, now: Timestamp) -> Self {
        Self { board, now, gate: RefCell::new(None) }
    }

    /// Puts an ended attempt into the board, as the proxy does, and gives the gate that is held from here on.
    pub fn settle(
        self,
        report: Option<&Report>,
        slot: Option<Slot>,
        needs: Needs,
        held: Option<GateGuard>,
    ) -> Option<GateGuard> {
        let new = self.gate.into_inner();
        let Some(report) = report else { return new.or(held) };
        let kept = settle::gate(report, held);
        if let Some(slot) = slot {
            settle::outcome(self.board, self.now, report, slot, needs);
        }
        new.or(kept)
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

    fn refund(&self, budget: u32, cost: Cost) {
        self.board.board().deposit(budget, cost.0, u32::MAX);
    }

    fn can_pay(&self, budget: u32, cost: Cost) -> bool {
        self.board.board().balance(budget) >= cost.0
    }

    fn claim(&self, slot: Slot, _: Option<Places>) -> Result<(), Refused> {
        let guard = self.board.claim_gate(slot, self.now, settle::GATE_LEASE).ok_or(Refused::Gate)?;
        self.gate.replace(Some(guard));
        Ok(())
    }

    /// Scenarios limit destinations by what they are, not by what a proxy lets through.
    fn occupy(&self, _: Slot, _: Places) -> bool {
        true
    }

    fn is_full(&self, _: Slot, _: Places) -> bool {
        false
    }

    fn is_held(&self, slot: Slot, now: Timestamp) -> bool {
        self.board.board().is_gate_held(slot, now)
    }

    fn is_queued(&self, _: u32) -> bool {
        false
    }

    fn is_failing(&self, slot: Slot) -> bool {
        self.board.board().trend(slot) == Trend::Failing
    }

    fn take(&self, _: Rule, _: ClientKey, _: Pace) -> Result<(), Duration> {
        Ok(())
    }

    /// Simulated proxies never stand still.
    fn is_awake_since(&self, _: Timestamp) -> bool {
        true
    }

    fn enter(&self, _: Rule, _: ClientKey, _: u32) -> bool {
        true
    }
}
