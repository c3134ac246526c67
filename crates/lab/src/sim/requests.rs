//! Requests: from their arrival through the exchange's steps to their fate.
//!
//! What the driver of the proxy does with bytes is done here with times: the very same inputs go into the exchange.

use std::net::{IpAddr, Ipv4Addr};

use exchange::reason::Reason;
use exchange::snapshot::Needs;
use exchange::step::Content;
use exchange::{Exchange, Input, Replay, Step};
use model::address::Scheme;
use model::outcome::{AttemptEnd, FailureKind, Progress};
use model::random::Random;
use model::request::{BodyFacts, NoFields, RequestFacts};

use super::attempt::{Head, Met};
use super::deadlines::Mark;
use super::destination::Way;
use super::flight::{Flight, name_of};
use super::sharing::Sharing;
use super::source::Request;
use super::world::{IN_ALL, PATIENCE, TO_CONNECT, TO_RESPONSE, World};
use crate::chance::Draw;
use crate::meter::{Fate, Kind};
use crate::models::Then;
use crate::scenario::Reply;

impl World<'_> {
    /// A request comes.
    pub(super) fn request(&mut self, source: u32, request: Request) {
        let mut entrance = self.chance.stream(Draw::Entrance, request.number, 0);
        let proxy = entrance.below(self.proxies.len());
        let worker = entrance.below(self.scenario.proxies.workers as usize);
        let bad = self.bad(request.number);
        let pick = self.chance.stream(Draw::Pick, request.number, 0).bits();
        let Some(thread) = self.proxies.get_mut(proxy).and_then(|one| one.workers.get_mut(worker)) else { return };
        thread.exchange.random = Random::new(pick);
        let snapshot = thread.board.snapshot();
        let sharing = Sharing::new(&thread.board, self.now);
        let (exchange, step) = Exchange::begin(self.now, &facts(&request), &snapshot, &mut thread.exchange, &sharing);
        let gate = sharing.settle(None, None, Needs::Nothing, None);
        let has_deadline = exchange.deadline().is_some();
        let serial = self.flights.next_serial();
        let place = self.flights.put(Flight {
            exchange,
            snapshot,
            proxy: proxy as u32,
            worker: worker as u32,
            source,
            request,
            bad,
            began: self.now,
            lag: std::time::Duration::ZERO,
            tries: 0,
            is_again: false,
            running: None,
            held: None,
            gate,
            serial,
        });
        let patience = self.sources.get(source as usize).map(|source| source.patience());
        if let Some(patience) = patience {
            self.set_deadline(PATIENCE + source as usize, patience, place, serial);
        }
        if has_deadline && let Some(total) = self.scenario.total {
            self.set_deadline(IN_ALL, total, place, serial);
        }
        self.carry(place, step);
    }

    /// A destination has replied to an attempt.
    pub(super) fn replied(&mut self, place: u32, serial: u32, destination: u32, reply: Reply) {
        if !self.flights.is_running(place, serial) {
            return;
        }
        let Some(flight) = self.flights.at(place) else { return };
        let is_lost = (self.destinations.get(destination as usize))
            .is_some_and(|one| one.is_cut_off(self.scenario, flight.proxy));
        if is_lost {
            return;
        }
        flight.lag += self.scenario.proxies.round_trip;
        let (head, cut) = match reply {
            Reply::Response { status, retry_after } => (Head { status, retry_after }, None),
            Reply::Cut => (Head { status: 200, retry_after: false }, Some(FailureKind::BodyCut)),
            Reply::Reset => return self.reset(place, serial),
        };
        self.answered(place, head, cut);
    }

    /// An attempt's connection breaks before a response.
    pub(super) fn reset(&mut self, place: u32, serial: u32) {
        if !self.flights.is_running(place, serial) {
            return;
        }
        let progress = match self.way(place) {
            Way::New => Progress::Sent,
            Way::Kept => Progress::StaleReuse,
        };
        self.failed(place, progress, FailureKind::Reset);
    }

    /// The first of a kind of deadlines may be over.
    pub(super) fn deadline(&mut self, kind: usize) {
        let now = self.now;
        loop {
            let Some(deadlines) = self.deadlines.get_mut(kind) else { return };
            let flights = &self.flights;
            let stands = |mark: Mark| match kind {
                TO_RESPONSE | TO_CONNECT => flights.is_running(mark.flight, mark.serial),
                _ => flights.is_there(mark.flight, mark.serial),
            };
            let Some(mark) = deadlines.take(now, stands) else {
                if let Some(at) = deadlines.rest() {
                    self.queue.plan(at, super::event::Event::Deadline(kind as u32));
                }
                return;
            };
            match kind {
                TO_RESPONSE => self.failed(mark.flight, Progress::Sent, FailureKind::HeadTimeout),
                TO_CONNECT => self.failed(mark.flight, Progress::NotSent, FailureKind::ConnectTimeout),
                IN_ALL => {
                    let step = self.tell(mark.flight, Input::DeadlineReached);
                    self.carry(mark.flight, step);
                }
                _ => {
                    self.tell(mark.flight, Input::ClientGone);
                    self.finish(mark.flight, Fate::GaveUp);
                }
            }
        }
    }

    fn bad(&self, number: u64) -> Option<u16> {
        if self.bad_requests.is_empty() {
            return None;
        }
        let draw = self.chance.unit(Draw::BadRequest, number, 0);
        let mut upper = 0.0;
        self.bad_requests.iter().find_map(|(_, share, status)| {
            upper += share;
            (draw < upper).then_some(*status)
        })
    }

    /// Does what the exchange wants, until something has to be waited for.
    fn carry(&mut self, place: u32, mut step: Step) {
        // An exchange has a bounded number of attempts; each ends once.
        loop {
            match step {
                Step::Connect(_) | Step::HoldThenConnect(_) if self.has_had_its_tries(place) => {
                    let held = self.flights.at(place).and_then(|flight| flight.held);
                    return self.finish(place, Fate::Status(held.unwrap_or(503)));
                }
                Step::Connect(attempt) | Step::HoldThenConnect(attempt) => match self.connect(place, attempt) {
                    Met::Waiting => return,
                    Met::Failed(progress, failure) => step = self.tell(place, ended(progress, failure, Way::New)),
                    Met::Answered(head) => return self.answered(place, head, None),
                },
                Step::Gather => step = self.tell(place, Input::Gathered),
                // No cluster of a scenario lets requests wait.
                Step::Wait { .. } => step = self.tell(place, Input::WaitOver),
                Step::Answer(answer) => match self.again(place, answer.reason) {
                    Some(next) => step = next,
                    None => return self.finish(place, Fate::Status(answer.status)),
                },
                Step::AnswerHeld => {
                    let held = self.flights.at(place).and_then(|flight| flight.held);
                    return self.finish(place, Fate::Status(held.unwrap_or(502)));
                }
                Step::Forward | Step::Done => return,
            }
        }
    }

    /// Some products try a destination again when there is no other one: as if the request had just come.
    fn again(&mut self, place: u32, reason: Reason) -> Option<Step> {
        let flight = self.flights.at(place)?;
        let one = self.proxies.get_mut(flight.proxy as usize)?;
        let has_tries = (1..u32::from(self.scenario.attempts)).contains(&flight.tries);
        if reason != Reason::NoLiveUpstreams || !one.tries_again || !has_tries {
            return None;
        }
        let thread = one.workers.get_mut(flight.worker as usize)?;
        let pick = self.chance.stream(Draw::Pick, flight.request.number, u64::from(flight.tries)).bits();
        thread.exchange.random = Random::new(pick);
        flight.snapshot = thread.board.snapshot();
        flight.is_again = true;
        let sharing = Sharing::new(&thread.board, self.now);
        let facts = facts(&flight.request);
        let (exchange, step) = Exchange::begin(self.now, &facts, &flight.snapshot, &mut thread.exchange, &sharing);
        flight.exchange = exchange;
        flight.gate = sharing.settle(None, None, Needs::Nothing, None);
        Some(step)
    }

    fn has_had_its_tries(&mut self, place: u32) -> bool {
        let attempts = u32::from(self.scenario.attempts);
        self.flights.at(place).is_some_and(|flight| flight.is_again && flight.tries >= attempts)
    }

    /// An attempt fails before its response.
    fn failed(&mut self, place: u32, progress: Progress, failure: FailureKind) {
        let way = self.way(place);
        let step = self.tell(place, ended(progress, failure, way));
        self.carry(place, step);
    }

    /// The running attempt's connection, as its proxy can tell.
    fn way(&mut self, place: u32) -> Way {
        let running = self.flights.at(place).and_then(|flight| flight.running.as_ref());
        if running.is_some_and(|running| running.may_be_stale) { Way::Kept } else { Way::New }
    }

    /// The head of a response is there, and with it the rest, whole or not.
    fn answered(&mut self, place: u32, Head { status, retry_after }: Head, cut: Option<FailureKind>) {
        if let Some(flight) = self.flights.at(place) {
            flight.held = Some(flight.held.filter(|_| status >= 500).unwrap_or(status));
        }
        let step = self.tell(
            place,
            Input::ResponseHead { status, retry_after, body_replayable: Replay::Possible, content: Content::Message },
        );
        if step != Step::Forward {
            return self.carry(place, step);
        }
        let end = AttemptEnd {
            progress: Progress::Forwarded,
            failure: cut,
            status: Some(status),
            call: None,
            retry_after,
            response_bytes_seen: true,
            client_gone: false,
            reused: false,
        };
        self.tell(place, Input::ResponseEnded { end });
        let fate = match (cut, status) {
            (Some(_), _) => Fate::Cut,
            (None, 429 | 500..) => Fate::Status(status),
            (None, _) => Fate::Served,
        };
        self.finish(place, fate);
    }

    /// Tells the exchange, and the board what it reports.
    fn tell(&mut self, place: u32, input: Input) -> Step {
        let now = self.now;
        let Some(flight) = self.flights.at(place) else { return Step::Done };
        let proxy = flight.proxy;
        let Some(one) = self.proxies.get_mut(proxy as usize) else { return Step::Done };
        let Some(thread) = one.workers.get_mut(flight.worker as usize) else { return Step::Done };
        let sharing = Sharing::new(&thread.board, now);
        let step = flight.exchange.handle(now, input, &flight.snapshot, &mut thread.exchange, &sharing);
        let report = flight.exchange.report();
        let cluster = report.as_ref().and_then(|report| flight.snapshot.clusters.get(report.cluster.index()));
        let slot = (report.as_ref().zip(cluster))
            .and_then(|(report, cluster)| cluster.destinations.get(report.destination.index()))
            .map(|destination| destination.slot);
        let needs = cluster.map_or(Needs::Nothing, |cluster| cluster.needs);
        if let (Input::ResponseHead { .. }, Some(running)) = (&input, &flight.running) {
            running.in_flight.answered(now, now.since(running.picked_at) + self.scenario.proxies.round_trip);
        }
        flight.gate = sharing.settle(report.as_ref(), slot, needs, flight.gate.take());
        let Some(report) = report else { return step };
        let index = report.destination.index();
        if let Some(running) = flight.running.take() {
            drop(running.in_flight);
            let is_whole = report.outcome.failure.is_none() || report.outcome.failure == Some(FailureKind::Status);
            if is_whole
                && let Some(pool) = thread.pools.get_mut(index)
                && let Some(destination) = self.destinations.get(index)
            {
                pool.put(now, destination.connections);
            }
        }
        if let Some(model) = &mut one.model {
            let is_repeated = matches!(step, Step::Connect(_) | Step::HoldThenConnect(_) | Step::Gather);
            let is_broken = report.outcome.failure == Some(FailureKind::Reset);
            let then = match (is_repeated, is_broken) {
                (true, _) => Then::Again,
                (false, true) => Then::Dropped,
                (false, false) => Then::Answered,
            };
            model.on_outcome(now, index, &report.outcome, then);
            self.after_model(proxy);
        }
        self.wake(proxy);
        step
    }

    fn finish(&mut self, place: u32, fate: Fate) {
        let now = self.now;
        let Some(flight) = self.flights.take(place) else { return };
        let took = now.since(flight.began) + flight.lag;
        let kind = if flight.bad.is_some() { Kind::Bad } else { Kind::Good };
        self.meter.ended(flight.began, took, fate, flight.tries, kind);
        if let Some(client) = flight.request.client
            && let Some(source) = self.sources.get_mut(flight.source as usize)
        {
            let at = source.answered(client, now, fate);
            self.queue.plan(at, super::event::Event::Ask { source: flight.source, client });
        }
    }
}

fn facts(request: &Request) -> RequestFacts<'static> {
    RequestFacts {
        method: request.method,
        method_name: name_of(request.method),
        scheme: Scheme::Http,
        host: "lab",
        port: 80,
        path: "/",
        query: None,
        fields: &NoFields,
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        body: BodyFacts::None,
        is_upgrade: false,
        attempt: 1,
    }
}

fn ended(progress: Progress, failure: FailureKind, way: Way) -> Input {
    let end = AttemptEnd {
        progress,
        failure: Some(failure),
        status: None,
        call: None,
        retry_after: false,
        response_bytes_seen: false,
        client_gone: false,
        reused: way == Way::Kept,
    };
    Input::AttemptEnded { end, body_replayable: Replay::Possible }
}
