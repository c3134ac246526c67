//! What the exchange machine shares with other exchanges, over the board; and what its reports leave there.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use board::{GateGuard, Trend};
use bridge::settle;
use exchange::limit::{ClientKey, Pace, Rule};
use exchange::snapshot::Needs;
use exchange::step::{Cost, Part, Places, Refused, Shared};
use exchange::{Admission, Report, Snapshot, Step};
use model::id::Slot;
use model::time::Timestamp;

use crate::awake::Awake;
use crate::limits::{Limits, Permit};
use crate::queue::Place;

/// What an attempt holds at its destination until it ends; each is given back when dropped. Most attempts hold nothing.
#[derive(Default)]
struct Held {
    /// Its gate.
    gate: Option<GateGuard>,
    /// One of its places.
    place: Option<Place>,
}

/// One exchange's access to the board.
pub(crate) struct Sharing<'a> {
    board: &'a board::Worker<Snapshot>,
    awake: &'a Awake,
    now: Cell<Timestamp>,
    /// What the running attempt holds at its destination.
    held: RefCell<Option<Held>>,
    /// The same of the attempt that may end with the input that the machine is told.
    ending: RefCell<Option<Held>>,
    /// The place of an attempt that is over for the machine, while its response is still being read.
    read: RefCell<Option<Place>>,
    limits: &'a Arc<Limits>,
    /// The client's place among its requests in flight, until the exchange is over.
    permit: RefCell<Option<Permit>>,
}

impl<'a> Sharing<'a> {
    /// For an exchange that begins at `now`.
    pub(crate) fn new(
        board: &'a board::Worker<Snapshot>,
        limits: &'a Arc<Limits>,
        awake: &'a Awake,
        now: Timestamp,
    ) -> Self {
        Self {
            board,
            awake,
            now: Cell::new(now),
            held: RefCell::default(),
            ending: RefCell::default(),
            read: RefCell::default(),
            limits,
            permit: RefCell::default(),
        }
    }

    /// Time goes on. What the attempt holds that may end with the next input is laid aside, so that what the next attempt
    /// claims does not take its place; [`Sharing::settle`] sees to it.
    #[inline]
    pub(crate) fn advance(&self, now: Timestamp) {
        self.now.set(now);
        if self.held.borrow().is_some() {
            self.ending.replace(self.held.take());
        }
    }

    /// The place that the running attempt has, for a tunnel that goes on after the exchange.
    pub(crate) fn keep(&self) -> Option<Place> {
        self.held.borrow_mut().as_mut()?.place.take()
    }

    /// The response that [`Step::HoldThenConnect`] is about is read, or given up: its destination has the place again.
    pub(crate) fn read(&self) {
        self.read.take();
    }

    /// Puts an ended attempt into the board, and gives up what it held.
    #[inline]
    pub(crate) fn settle(&self, report: Option<Report>, slot: Option<Slot>, needs: Needs, next: &Step) {
        if self.ending.borrow().is_some()
            && let Some(held) = self.ending.take()
        {
            self.settle_held(held, report, next);
        }
        if let (Some(report), Some(slot)) = (report, slot) {
            settle::outcome(self.board, self.now.get(), &report, slot, needs);
        }
    }

    fn settle_held(&self, held: Held, report: Option<Report>, next: &Step) {
        let Some(report) = report else {
            return self.hand_back(held);
        };
        let Held { gate, place } = held;
        match (report.admission, report.part) {
            // A stream that has begun has its place until the exchange is over.
            (Admission::Open, _) | (_, Part::Begun) => self.hand_back(Held { gate: None, place }),
            (Admission::Gate | Admission::Place, Part::Whole | Part::Broken) => match next {
                Step::HoldThenConnect(_) => _ = self.read.replace(place),
                Step::Gather
                | Step::Wait { .. }
                | Step::Connect(_)
                | Step::Forward
                | Step::AnswerHeld
                | Step::Answer(_)
                | Step::Done => drop(place),
            },
        }
        if let Some(gate) = settle::gate(&report, gate) {
            self.hand_back(Held { gate: Some(gate), place: None });
        }
    }

    fn place(&self, slot: Slot, places: Places) -> Option<Place> {
        let guard = self.board.board().take_place(slot, places.most)?;
        Some(Place::new(guard, &self.limits.queues, places.cluster, slot))
    }

    /// The client's place among its requests in flight, for what goes on after the exchange.
    pub(crate) fn permit(&self) -> Option<Permit> {
        self.permit.take()
    }

    /// What the next attempt has claimed meanwhile stays.
    fn hand_back(&self, held: Held) {
        let mut now = self.held.borrow_mut();
        let Held { gate, place } = now.get_or_insert_default();
        *gate = gate.take().or(held.gate);
        *place = place.take().or(held.place);
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

    fn claim(&self, slot: Slot, places: Option<Places>) -> Result<(), Refused> {
        let gate = self.board.claim_gate(slot, self.now.get(), settle::GATE_LEASE).ok_or(Refused::Gate)?;
        let place = match places {
            None => None,
            // The gate opens again.
            Some(places) => Some(self.place(slot, places).ok_or(Refused::Place)?),
        };
        self.held.replace(Some(Held { gate: Some(gate), place }));
        Ok(())
    }

    fn occupy(&self, slot: Slot, places: Places) -> bool {
        let place = self.place(slot, places);
        let is_taken = place.is_some();
        if is_taken {
            self.held.replace(Some(Held { gate: None, place }));
        }
        is_taken
    }

    fn is_full(&self, slot: Slot, places: Places) -> bool {
        self.board.board().is_full(slot, places.most)
    }

    fn is_held(&self, slot: Slot, now: Timestamp) -> bool {
        self.board.board().is_gate_held(slot, now)
    }

    fn is_queued(&self, cluster: u32) -> bool {
        self.limits.queues.is_queued(cluster)
    }

    fn is_failing(&self, slot: Slot) -> bool {
        self.board.board().trend(slot) == Trend::Failing
    }

    fn take(&self, rule: Rule, client: ClientKey, pace: Pace) -> Result<(), Duration> {
        self.limits.take(self.now.get(), rule, client, pace)
    }

    fn is_awake_since(&self, since: Timestamp) -> bool {
        self.awake.is_since(since, self.now.get())
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
