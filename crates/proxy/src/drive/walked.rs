//! One exchange as far as its driver has walked it: the machine, the snapshot it walks over, and what is told of it.

use std::net::IpAddr;
use std::sync::Arc;

use board::{Current, InFlight};
use exchange::snapshot::{ClusterView, DestinationView, Needs, RouteView};
use exchange::step::TryLimit;
use exchange::{Attempt, Exchange, Input, Snapshot, Step};
use http1::framing::RequestFraming;
use http1::request::Request;
use io::Io;
use model::address::Scheme;
use model::request::RequestFacts;
use model::time::Timestamp;

use crate::client_address;
use crate::leg::Origin;
use crate::listener::View;
use crate::local::Local;
use crate::record::{Outcome, Record, Told};
use crate::sharing::Sharing;

/// One exchange.
pub(crate) struct Walked<'a> {
    /// The clock, as it was read last.
    pub(crate) now: Timestamp,
    pub(crate) snapshot: Current<Snapshot>,
    pub(crate) exchange: Exchange,
    pub(crate) sharing: Sharing<'a>,
    /// The attempt that runs, or ran last.
    pub(crate) attempt: Option<Attempt>,
    /// Where the connection of the attempt that runs (or ran last) came from.
    pub(crate) origin: Origin,
    /// The request's id, where requests have one.
    pub(crate) id: Option<Box<str>>,
    pub(crate) record: Record,
}

/// Who asks.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'v> {
    pub(crate) view: &'v View,
    /// The peer's address, canonical.
    pub(crate) peer: IpAddr,
    /// The client as trusted proxies name it.
    pub(crate) client: IpAddr,
    /// What its connection speaks.
    pub(crate) scheme: Scheme,
}

/// What a request's body may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyBounds {
    /// The longest that is taken.
    pub(crate) most: Option<u64>,
    /// So much of it is kept for another attempt.
    pub(crate) replay: u64,
    /// Its head says already that it is longer.
    pub(crate) is_exceeded: bool,
}

impl<'a> Walked<'a> {
    /// The head of a request has come at `now`, on a connection to which so many bytes were `sent` before; what is to be
    /// done first.
    pub(crate) fn begin<I: Io, R>(
        local: &'a Local<I, R>,
        now: Timestamp,
        request: &Request<'_>,
        asker: Asker<'_>,
        sent: u64,
    ) -> (Self, Step) {
        let snapshot = local.board.snapshot();
        let sharing = Sharing::new(&local.board, &local.limits, &local.awake, now);
        let facts = RequestFacts {
            method: request.method(),
            method_name: request.method_name(),
            scheme: asker.scheme,
            host: request.host(),
            port: request.port().unwrap_or_else(|| asker.scheme.default_port()),
            path: request.path(),
            query: request.query(),
            fields: request,
            client: asker.client,
            body: request.body(),
            is_upgrade: request.offers_upgrade(),
            attempt: request.attempt(),
        };
        let (exchange, step) = Exchange::begin(now, &facts, &snapshot, &mut local.picks.borrow_mut(), &sharing);
        let trust = client_address::trust(&asker.view.config, asker.peer);
        let id = local.ids.of(&snapshot.config.answers.request_id, trust, request);
        let (attempt, origin, record) = (None, Origin::Fresh, Record::begin(now, sent));
        (Self { now, snapshot, exchange, sharing, attempt, origin, id, record }, step)
    }

    /// Reads the clock and tells the machine.
    pub(crate) fn handle<I: Io, R>(&mut self, local: &Local<I, R>, input: Input) -> Step {
        self.now = local.io.now();
        self.tell(local, input)
    }

    /// Tells the machine, and puts what it reports where it belongs.
    pub(crate) fn tell<I: Io, R>(&mut self, local: &Local<I, R>, input: Input) -> Step {
        self.sharing.advance(self.now);
        let mut picks = local.picks.borrow_mut();
        let step = self.exchange.handle(self.now, input, &self.snapshot, &mut picks, &self.sharing);
        drop(picks);
        self.settle(local, &step);
        step
    }

    fn settle<I: Io, R>(&mut self, local: &Local<I, R>, next: &Step) {
        let Some(report) = self.exchange.report() else {
            return self.sharing.settle(None, None, Needs::Nothing, next);
        };
        let cluster = self.snapshot.clusters.get(report.cluster.index());
        let destination = cluster.and_then(|cluster| cluster.destinations.get(report.destination.index()));
        let needs = cluster.map_or(Needs::Nothing, |cluster| cluster.needs);
        self.sharing.settle(Some(report), destination.map(|destination| destination.slot), needs, next);
        self.record.attempt(local, &self.snapshot, &report, self.now, self.origin);
    }

    /// Its route.
    pub(crate) fn route(&self) -> Option<&RouteView> {
        self.exchange.placement().route.and_then(|index| self.snapshot.routes.get(index.index()))
    }

    /// Its cluster.
    pub(crate) fn cluster(&self) -> Option<&Arc<ClusterView>> {
        self.exchange.placement().cluster.and_then(|index| self.snapshot.clusters.get(index.index()))
    }

    /// What the request's body may be.
    pub(crate) fn body_bounds(&self, request: &Request<'_>, view: &View) -> BodyBounds {
        let most = self.route().and_then(|route| route.max_request_body).unwrap_or(view.config.limits.body);
        let is_exceeded = matches!((request.framing(), most), (RequestFraming::Length(n), Some(most)) if n > most);
        BodyBounds { most, replay: self.cluster().map_or(0, |cluster| cluster.retry.replay), is_exceeded }
    }

    /// The own time of the attempt that runs.
    pub(crate) fn limit(&self) -> Option<TryLimit> {
        self.attempt.and_then(|attempt| attempt.limit)
    }

    /// The head of the running attempt's response has come.
    pub(crate) fn answered<I: Io, R>(&self, local: &Local<I, R>, in_flight: &InFlight) {
        let picked_at = self.exchange.picked_at().unwrap_or(self.now);
        if local.awake.is_since(picked_at, self.now) {
            in_flight.answered(self.now, self.now.since(picked_at));
        } else {
            in_flight.answered_some_time(self.now);
        }
    }

    /// Time has passed without a destination: health has moved on. Places in another configuration would be others, so
    /// then the snapshot stays.
    pub(crate) fn refresh<I: Io, R>(&mut self, local: &Local<I, R>) {
        let newer = local.board.snapshot();
        if Arc::ptr_eq(&newer.config, &self.snapshot.config) {
            self.snapshot = newer;
        }
    }

    /// The same for an exchange that waits for a destination: it follows wherever it can.
    pub(crate) fn follow<I: Io, R>(&mut self, local: &Local<I, R>) {
        let newer = local.board.snapshot();
        if self.exchange.follow(&self.snapshot, &newer) {
            self.snapshot = newer;
        }
    }

    /// `told` with what the walk knows.
    pub(crate) fn told<'t>(&'t self, told: Told<'t>) -> Told<'t> {
        Told { walked: Some((&self.exchange, &*self.snapshot)), id: self.id.as_deref(), ..told }
    }

    /// Tells of the exchange's end.
    pub(crate) fn end<I: Io, R>(&self, local: &Local<I, R>, told: Told<'_>, outcome: Outcome) {
        self.record.end(local, self.told(told), outcome, self.now);
    }
}

/// Where an attempt goes. `None`: not in this snapshot, which the machine does not do.
pub(crate) fn place<'s>(snapshot: &'s Snapshot, attempt: &Attempt) -> Option<(&'s ClusterView, &'s DestinationView)> {
    let cluster = snapshot.clusters.get(attempt.cluster.index())?;
    Some((cluster, cluster.destinations.get(attempt.destination.index())?))
}
