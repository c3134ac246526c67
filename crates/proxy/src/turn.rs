//! One exchange on a client's connection: drives the machine of `exchange` and does what its steps say.
//!
//! ```text
//!   head ──> begin ──> Connect ──> leg (pool or new) ──> await_head ──┬─ failed ──────> handle ──> Connect, Answer …
//!                         ^                                           └─ head ──> handle ─┬─ Forward ──> deliver ──> over
//!                         └───────────────────────── hold the response ── HoldThenConnect ┘
//! ```
//! Client and destination are driven by the one task of the connection: no second task, no channel.

mod answer;
mod attempt;
mod cross;
mod forward;
mod gather;
mod serve_rest;
mod switch;
mod wait;

use std::net::IpAddr;

use board::Current;
use exchange::snapshot::{ClusterView, DestinationView, Needs};
use exchange::{Attempt, Exchange, Input, Snapshot, Step};
use http1::connection::{Persistence, Version};
use http1::framing::RequestFraming;
use http1::response::RequestKind;
use io::Io;
use model::request::{Method, RequestFacts};
use model::time::Timestamp;
use upstream::Resolve;

use crate::await_head::ClientFault;
use crate::buffering::Share;
use crate::client::Client;
use crate::client_address;
use crate::leg::{Leg, Origin};
use crate::listener::View;
use crate::local::{Local, Workspace};
use crate::record::Record;
use crate::relay::Begun;
use crate::sharing::Sharing;
use crate::upload::Upload;

/// What becomes of the client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// It waits for the next request, since this time.
    KeepAlive(Timestamp),
    /// It is closed.
    Close,
    /// It is closed, but the client may still be sending.
    Linger,
    /// It is reset: what the client has got must not pass for whole.
    Reset,
    /// It speaks another protocol now; the tunnel lies in the client.
    Switched,
}

/// One exchange.
pub(crate) struct Turn<'a, I: Io, R> {
    local: &'a Local<I, R>,
    client: &'a mut Client<I>,
    work: &'a mut Workspace,
    view: &'a View,
    /// The clock, as it was read last.
    now: Timestamp,
    snapshot: Current<Snapshot>,
    exchange: Exchange,
    sharing: Sharing<'a>,
    facts: Facts,
    upload: Upload,
    leg: Option<Leg<I::Stream>>,
    /// The attempt that runs, or ran last.
    attempt: Option<Attempt>,
    /// Where the connection of the attempt that runs (or ran last) came from.
    origin: Origin,
    /// Head and body of a response that is sent when nothing better comes.
    held: Option<Vec<u8>>,
    fault: Option<ClientFault>,
    /// Memory that bodies which are taken ahead have.
    share: Option<Share<'a>>,
    /// The request's id, where requests have one.
    id: Option<Box<str>>,
    record: Record,
}

/// What of the request decides on the answer's form.
#[derive(Clone, Copy)]
struct Facts {
    client: IpAddr,
    version: Version,
    kind: RequestKind,
    persistence: Persistence,
}

/// Serves the request whose head lies in `work`.
pub(crate) async fn serve<I: Io, R: Resolve>(
    local: &Local<I, R>,
    client: &mut Client<I>,
    work: &mut Workspace,
    view: &View,
) -> After {
    let now = local.io.now();
    let snapshot = local.board.snapshot();
    let sharing = Sharing::new(&local.board, &local.limits, now);
    let request = work.request.view(&work.head);
    let facts = Facts {
        client: client_address::client(&view.config, client.address, &request),
        version: request.version(),
        kind: if request.method() == Method::Head { RequestKind::Head } else { RequestKind::Other },
        persistence: request.persistence(),
    };
    if view.is_self_check(&request) {
        return Box::pin(answer::self_check(local, client, work, view, facts, now)).await;
    }
    let (exchange, step) = Exchange::begin(
        now,
        &RequestFacts {
            method: request.method(),
            method_name: request.method_name(),
            scheme: client.scheme(),
            host: request.host(),
            port: request.port().unwrap_or_else(|| client.scheme().default_port()),
            path: request.path(),
            query: request.query(),
            fields: &request,
            client: facts.client,
            body: request.body(),
            is_upgrade: request.offers_upgrade(),
            attempt: request.attempt(),
        },
        &snapshot,
        &mut local.picks.borrow_mut(),
        &sharing,
    );
    let placement = exchange.placement();
    if cross::is_wanted(&snapshot, placement, &step, &request) {
        let begun = Begun { now, snapshot, sharing, exchange, step, address: facts.client, kind: facts.kind };
        return cross::serve(local, client, work, view, begun).await;
    }
    let route = placement.route.and_then(|index| snapshot.routes.get(index.index()));
    let cluster = placement.cluster.and_then(|index| snapshot.clusters.get(index.index()));
    let most = route.and_then(|route| route.max_request_body).unwrap_or(view.config.limits.body);
    let is_too_large = matches!((request.framing(), most), (RequestFraming::Length(n), Some(most)) if n > most);
    let upload = Upload::new(&request, most, cluster.map_or(0, |cluster| cluster.retry.replay));
    let trust = client_address::trust(&view.config, client.address);
    let id = local.ids.of(&snapshot.config.answers.request_id, trust, &request);
    let record = Record::begin(now, client.sent);
    let mut turn = Turn {
        local,
        client,
        work,
        view,
        now,
        snapshot,
        exchange,
        sharing,
        facts,
        upload,
        leg: None,
        attempt: None,
        origin: Origin::Fresh,
        held: None,
        share: None,
        fault: is_too_large.then_some(ClientFault::TooLarge),
        id,
        record,
    };
    turn.walk(step).await
}

impl<I: Io, R: Resolve> Turn<'_, I, R> {
    async fn walk(&mut self, first: Step) -> After {
        if let (Some(fault), Step::Connect(_) | Step::Gather | Step::Wait { .. }) = (self.fault, &first) {
            return Box::pin(self.answer_fault(fault)).await;
        }
        let mut step = first;
        loop {
            step = match step {
                Step::Gather => match Box::pin(self.gather()).await {
                    Ok(step) => step,
                    Err(fault) => return Box::pin(self.answer_fault(fault)).await,
                },
                Step::Wait { until, wants } => Box::pin(self.wait(until, wants)).await,
                Step::Connect(attempt) => {
                    let input = self.attempt(attempt).await;
                    self.handle(input)
                }
                Step::HoldThenConnect(attempt) => {
                    Box::pin(self.hold()).await;
                    self.sharing.read();
                    let input = self.attempt(attempt).await;
                    self.handle(input)
                }
                Step::Forward => return self.forward().await,
                Step::AnswerHeld => return Box::pin(self.answer_held()).await,
                Step::Answer(answer) => return Box::pin(self.answer(&answer)).await,
                Step::Done => return After::Close,
            };
        }
    }

    /// Reads the clock and tells the machine.
    fn handle(&mut self, input: Input) -> Step {
        self.now = self.local.io.now();
        self.tell(input)
    }

    /// Tells the machine, and puts what it reports where it belongs.
    fn tell(&mut self, input: Input) -> Step {
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
}

/// Where an attempt goes. `None`: not in this snapshot, which the machine does not do.
fn place<'s>(snapshot: &'s Snapshot, attempt: &Attempt) -> Option<(&'s ClusterView, &'s DestinationView)> {
    let cluster = snapshot.clusters.get(attempt.cluster.index())?;
    Some((cluster, cluster.destinations.get(attempt.destination.index())?))
}
