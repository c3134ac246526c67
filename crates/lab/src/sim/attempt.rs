//! The beginning of an attempt: a connection of the pool or a new one, and what it meets at its destination at once.

use exchange::{Attempt, Connection};
use model::outcome::{FailureKind, Progress};

use super::destination::{Arrival, Job, Way, Who};
use super::flight::Running;
use super::world::{TO_CONNECT, TO_RESPONSE, World};
use crate::chance::Draw;
use crate::scenario::OnFull;

/// What an attempt meets at once.
pub(super) enum Met {
    /// Nothing yet.
    Waiting,
    /// It fails.
    Failed(Progress, FailureKind),
    /// An answer.
    Answered(Head),
}

/// What is known of a response by its head.
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) retry_after: bool,
}

impl World<'_> {
    /// Starts an attempt.
    pub(super) fn connect(&mut self, place: u32, attempt: Attempt) -> Met {
        let now = self.now;
        let index = attempt.destination.index();
        let serial = self.flights.next_serial();
        let round_trip = self.scenario.proxies.round_trip;
        let Some(flight) = self.flights.at(place) else { return Met::Waiting };
        let Some(destination) = self.destinations.get_mut(index) else { return Met::Waiting };
        let proxy = flight.proxy;
        let Some(one) = self.proxies.get_mut(proxy as usize) else { return Met::Waiting };
        let Some(worker) = one.workers.get_mut(flight.worker as usize) else { return Met::Waiting };
        let is_reused = attempt.connection == Connection::Any
            && worker.pools.get_mut(index).is_some_and(|pool| pool.take(now, destination.connections));
        let slot = (flight.snapshot.clusters.get(attempt.cluster.index()))
            .and_then(|cluster| cluster.destinations.get(index))
            .map(|destination| destination.slot);
        let Some(slot) = slot else { return Met::Waiting };
        let in_flight = worker.board.start(slot);
        flight.tries += 1;
        flight.lag += if is_reused { std::time::Duration::ZERO } else { round_trip };
        let may_be_stale = is_reused && one.tells_stale;
        flight.running = Some(Running { attempt, serial, picked_at: now, may_be_stale, in_flight });
        let stream = u64::from(flight.tries) << 32 | index as u64;
        let mut luck = self.chance.stream(Draw::Fault, flight.request.number, stream);
        let service = self.chance.unit(Draw::Service, flight.request.number, stream);
        let job = Job::new(Who::Attempt { flight: place, serial }, service, luck.unit(), flight.bad);
        let way = if is_reused { Way::Kept } else { Way::New };
        let is_spoilt = destination.is_spoiling(self.scenario, proxy, &job);
        let arrival = destination.arrive(self.scenario, now, proxy, way, job);
        match arrival {
            Arrival::Refused | Arrival::Full(OnFull::Refuse) => self.meter.refused(now, index),
            Arrival::NoWay => {}
            Arrival::Swallowed | Arrival::Full(OnFull::Status { .. }) | Arrival::Waits | Arrival::Served(_) => {
                self.meter.came(now, index);
                if is_spoilt {
                    self.meter.spoilt(now, index);
                }
            }
        }
        match arrival {
            Arrival::Refused => return Met::Failed(Progress::NotSent, FailureKind::Refused),
            Arrival::Full(OnFull::Refuse) => return Met::Failed(Progress::NotSent, FailureKind::Refused),
            Arrival::Full(OnFull::Status { status, retry_after }) => {
                flight.lag += round_trip;
                return Met::Answered(Head { status, retry_after });
            }
            Arrival::NoWay => {
                self.set_deadline(TO_CONNECT, self.scenario.connect, place, serial);
                return Met::Waiting;
            }
            Arrival::Swallowed | Arrival::Waits => {}
            Arrival::Served(planned) => self.plan_completion(index as u32, planned),
        }
        self.set_deadline(TO_RESPONSE, self.scenario.response, place, serial);
        Met::Waiting
    }
}
