//! One exchange: drives the machine of `exchange` and does what its steps say, as [`crate::turn`] does for HTTP/1.1 on
//! both sides.

use std::net::IpAddr;

use board::Current;
use exchange::snapshot::{ClusterView, DestinationView, Needs};
use exchange::{Attempt, Exchange, Input, Snapshot, Step};
use http1::framing::RequestFraming;
use http1::proxy_header::OnBehalf;
use http1::response::RequestKind;
use io::Io;
use model::address::Scheme;
use model::request::{Method, RequestFacts};
use model::time::Timestamp;
use upstream::Resolve;

use super::hold::Held as HeldResponse;
use super::outgoing::Outgoing;
use super::side::ClientSide;
use super::upload::{Fault, Upload};
use crate::buffering::Share;
use crate::client_address;
use crate::leg::Origin;
use crate::listener::View;
use crate::local::{Local, Workspace};
use crate::record::{Outcome, Record, Told};
use crate::sharing::Sharing;
use crate::timer::Timer;

/// Who the client is, the same for all exchanges of its connection.
pub(crate) struct Peer {
    /// The peer's address, canonical.
    pub(crate) address: IpAddr,
    /// What its connection speaks.
    pub(crate) scheme: Scheme,
    /// It sits on this host.
    pub(crate) is_local: bool,
    /// Whom connections that serve it stand for.
    pub(crate) on_behalf: OnBehalf,
}

/// One exchange.
pub(super) struct Relay<'a, I: Io, R, C> {
    pub(super) local: &'a Local<I, R>,
    pub(super) client: &'a mut C,
    pub(super) peer: &'a Peer,
    pub(super) work: &'a mut Workspace,
    pub(super) view: &'a View,
    pub(super) timer: &'a mut Timer<I>,
    /// The clock, as it was read last.
    pub(super) now: Timestamp,
    pub(super) snapshot: Current<Snapshot>,
    pub(super) exchange: Exchange,
    pub(super) sharing: Sharing<'a>,
    /// The client as trusted proxies name it.
    pub(super) address: IpAddr,
    pub(super) kind: RequestKind,
    pub(super) upload: Upload,
    pub(super) destination: Option<Outgoing<I::Stream>>,
    /// The attempt that runs, or ran last.
    pub(super) attempt: Option<Attempt>,
    /// Where the connection of the attempt that runs (or ran last) came from.
    pub(super) origin: Origin,
    /// A response that is sent when nothing better comes.
    pub(super) held: Option<HeldResponse>,
    pub(super) fault: Option<Fault>,
    /// Memory of a body that was read ahead.
    pub(super) share: Option<Share<'a>>,
    /// The request's id, where requests have one.
    pub(super) id: Option<Box<str>>,
    pub(super) record: Record,
}

/// Serves the request whose head lies in `work`. What becomes of the client's side is its own to see, by what it was
/// told last.
pub(crate) async fn serve<I: Io, R: Resolve, C: ClientSide>(
    local: &Local<I, R>,
    client: &mut C,
    peer: &Peer,
    work: &mut Workspace,
    view: &View,
    timer: &mut Timer<I>,
) {
    let now = local.io.now();
    let snapshot = local.board.snapshot();
    let sharing = Sharing::new(&local.board, &local.limits, now);
    let request = work.request.view(&work.head);
    let address = client_address::client(&view.config, peer.address, &request);
    let kind = if request.method() == Method::Head { RequestKind::Head } else { RequestKind::Other };
    if view.is_self_check(&request) {
        return super::answer::self_check(local, client, peer, request, view, kind).await;
    }
    let (exchange, step) = Exchange::begin(
        now,
        &RequestFacts {
            method: request.method(),
            method_name: request.method_name(),
            scheme: peer.scheme,
            host: request.host(),
            port: request.port().unwrap_or_else(|| peer.scheme.default_port()),
            path: request.path(),
            query: request.query(),
            fields: &request,
            client: address,
            body: request.body(),
            is_upgrade: request.offers_upgrade(),
            attempt: request.attempt(),
        },
        &snapshot,
        &mut local.picks.borrow_mut(),
        &sharing,
    );
    let begun = Begun { now, snapshot, sharing, exchange, step, address, kind };
    go_on(local, client, peer, work, view, timer, begun).await;
}

/// An exchange whose first step is known.
pub(crate) struct Begun<'a> {
    pub(crate) now: Timestamp,
    pub(crate) snapshot: Current<Snapshot>,
    pub(crate) sharing: Sharing<'a>,
    pub(crate) exchange: Exchange,
    pub(crate) step: Step,
    /// The client as trusted proxies name it.
    pub(crate) address: IpAddr,
    pub(crate) kind: RequestKind,
}

/// Serves an exchange that was begun elsewhere; its request's head lies in `work`.
pub(crate) async fn go_on<'a, I: Io, R: Resolve, C: ClientSide>(
    local: &'a Local<I, R>,
    client: &'a mut C,
    peer: &'a Peer,
    work: &'a mut Workspace,
    view: &'a View,
    timer: &'a mut Timer<I>,
    begun: Begun<'a>,
) {
    let Begun { now, snapshot, sharing, exchange, step, address, kind } = begun;
    let request = work.request.view(&work.head);
    let placement = exchange.placement();
    let route = placement.route.and_then(|index| snapshot.routes.get(index.index()));
    let cluster = placement.cluster.and_then(|index| snapshot.clusters.get(index.index()));
    let most = route.and_then(|route| route.max_request_body).unwrap_or(view.config.limits.body);
    let is_too_large = matches!((request.framing(), most), (RequestFraming::Length(n), Some(most)) if n > most);
    let upload = Upload::new(&request, most, cluster.map_or(0, |cluster| cluster.retry.replay));
    let trust = client_address::trust(&view.config, peer.address);
    let id = local.ids.of(&snapshot.config.answers.request_id, trust, &request);
    let mut relay = Relay {
        local,
        client,
        peer,
        work,
        view,
        timer,
        now,
        snapshot,
        exchange,
        sharing,
        address,
        kind,
        upload,
        destination: None,
        attempt: None,
        origin: Origin::Fresh,
        held: None,
        share: None,
        fault: is_too_large.then_some(Fault::TooLarge),
        id,
        record: Record::begin(now, 0),
    };
    relay.walk(step).await;
}

impl<I: Io, R: Resolve, C: ClientSide> Relay<'_, I, R, C> {
    async fn walk(&mut self, first: Step) {
        if let (Some(fault), Step::Connect(_) | Step::Gather | Step::Wait { .. }) = (self.fault, &first) {
            return self.answer_fault(fault).await;
        }
        let mut step = first;
        loop {
            step = match step {
                Step::Gather => match self.gather().await {
                    Ok(step) => step,
                    Err(fault) => return self.answer_fault(fault).await,
                },
                Step::Wait { until, wants } => self.wait(until, wants).await,
                Step::Connect(attempt) => {
                    let input = self.attempt(attempt).await;
                    self.handle(input)
                }
                Step::HoldThenConnect(attempt) => {
                    self.hold().await;
                    self.sharing.read();
                    let input = self.attempt(attempt).await;
                    self.handle(input)
                }
                Step::Forward => return self.forward().await,
                Step::AnswerHeld => return self.answer_held().await,
                Step::Answer(answer) => return self.answer(&answer).await,
                Step::Done => return,
            };
        }
    }

    /// Tells the machine, and puts what it reports where it belongs.
    pub(super) fn handle(&mut self, input: Input) -> Step {
        self.now = self.local.io.now();
        self.sharing.advance(self.now);
        let mut picks = self.local.picks.borrow_mut();
        let step = self.exchange.handle(self.now, input, &self.snapshot, &mut picks, &self.sharing);
        drop(picks);
        self.settle(&step);
        step
    }

    fn settle(&mut self, next: &Step) {
        let Some(report) = self.exchange.report() else {
            return self.sharing.settle(None, None, Needs::Nothing, next);
        };
        let cluster = self.snapshot.clusters.get(report.cluster.index());
        let destination = cluster.and_then(|cluster| cluster.destinations.get(report.destination.index()));
        let needs = cluster.map_or(Needs::Nothing, |cluster| cluster.needs);
        self.sharing.settle(Some(report), destination.map(|destination| destination.slot), needs, next);
        self.record.attempt(self.local, &self.snapshot, &report, self.now, self.origin);
    }

    /// Tells of the exchange's end.
    pub(super) fn end(&self, status: u16, reason: &'static str) {
        let outcome = Outcome { status, reason, bytes_in: self.upload.content() };
        let told = Told {
            listener: self.view.config.id.as_str(),
            client: self.address,
            protocol: self.client.protocol(),
            sent: self.client.sent(),
            request: Some(self.work.request.view(&self.work.head)),
            walked: Some((&self.exchange, &*self.snapshot)),
            id: self.id.as_deref(),
        };
        self.record.end(self.local, told, outcome, self.now);
    }
}

/// Where an attempt goes. `None`: not in this snapshot, which the machine does not do.
pub(super) fn place<'s>(snapshot: &'s Snapshot, attempt: &Attempt) -> Option<(&'s ClusterView, &'s DestinationView)> {
    let cluster = snapshot.clusters.get(attempt.cluster.index())?;
    Some((cluster, cluster.destinations.get(attempt.destination.index())?))
}
