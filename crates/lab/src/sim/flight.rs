//! Requests on their way: each holds its exchange, the snapshot it began with, and what it holds of the board.

use std::time::Duration;

use board::{Current, GateGuard, InFlight};
use exchange::snapshot::Snapshot;
use exchange::{Attempt, Exchange};
use model::request::Method;
use model::time::Timestamp;

use super::source::Request;

/// One request on its way.
pub struct Flight {
    /// Its walk.
    pub exchange: Exchange,
    /// What it walks over.
    pub snapshot: Current<Snapshot>,
    /// Through this proxy.
    pub proxy: u32,
    /// Through this thread of it.
    pub worker: u32,
    /// Which stream it came from.
    pub source: u32,
    /// What was asked.
    pub request: Request,
    /// It fails everywhere, with this status.
    pub bad: Option<u16>,
    /// When it came.
    pub began: Timestamp,
    /// Time spent between proxy and destinations, which is not simulated by events.
    pub lag: Duration,
    /// Attempts so far, free resends included.
    pub tries: u32,
    /// Its walk began anew because nobody was left.
    pub is_again: bool,
    /// The running attempt.
    pub running: Option<Running>,
    /// The status that is held for the case that nothing better comes.
    pub held: Option<u16>,
    /// The gate of the running attempt.
    pub gate: Option<GateGuard>,
    /// Names this flight.
    pub serial: u32,
}

/// The attempt that runs.
pub struct Running {
    /// As the exchange wants it.
    pub attempt: Attempt,
    /// Names it.
    pub serial: u32,
    /// When its destination was picked.
    pub picked_at: Timestamp,
    /// Its connection had carried requests before, and the proxy knows what that means.
    pub may_be_stale: bool,
    /// It counts at its destination until this is dropped.
    pub in_flight: InFlight,
}

/// All flights, by place.
#[derive(Default)]
pub struct Flights {
    places: Vec<Option<Flight>>,
    free: Vec<u32>,
    serial: u32,
}

impl Flights {
    /// The next name of a flight or an attempt.
    pub fn next_serial(&mut self) -> u32 {
        self.serial = self.serial.wrapping_add(1);
        self.serial
    }

    /// Keeps one.
    pub fn put(&mut self, flight: Flight) -> u32 {
        if let Some(place) = self.free.pop() {
            if let Some(slot) = self.places.get_mut(place as usize) {
                *slot = Some(flight);
            }
            return place;
        }
        self.places.push(Some(flight));
        // There is no room for four thousand million of them.
        (self.places.len() - 1) as u32
    }

    /// The one at a place.
    pub fn at(&mut self, place: u32) -> Option<&mut Flight> {
        self.places.get_mut(place as usize)?.as_mut()
    }

    /// Takes one out.
    pub fn take(&mut self, place: u32) -> Option<Flight> {
        let flight = self.places.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(flight)
    }

    /// Whether the attempt of this name still runs there.
    pub fn is_running(&self, place: u32, serial: u32) -> bool {
        let flight = self.places.get(place as usize).and_then(Option::as_ref);
        flight.and_then(|flight| flight.running.as_ref()).is_some_and(|running| running.serial == serial)
    }

    /// Whether the flight of this name is still there.
    pub fn is_there(&self, place: u32, serial: u32) -> bool {
        self.places.get(place as usize).and_then(Option::as_ref).is_some_and(|flight| flight.serial == serial)
    }
}

/// What the cores may know of a simulated request, beside its method.
pub fn name_of(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Options => "OPTIONS",
        Method::Trace => "TRACE",
        Method::Put => "PUT",
        Method::Delete => "DELETE",
        Method::Post => "POST",
        Method::Patch => "PATCH",
        Method::Connect => "CONNECT",
        Method::Other => "OTHER",
    }
}
