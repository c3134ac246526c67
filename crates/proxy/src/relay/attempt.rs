//! One attempt: a connection, the request over it, the head of its response.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use exchange::snapshot::{ClusterView, DestinationView};
use exchange::{Attempt, Connection, Input};
use http2::error::Malformed;
use io::Io;
use model::address::Scheme;
use model::outcome::{AttemptEnd, FailureKind, Progress};
use model::time::Timestamp;
use model::upstream::UpstreamHttp;
use upstream::h2::{Care, Opened, Wanted};
use upstream::{Key, Resolve};

use super::await_head::{Awaited, Wires, await_head};
use super::http1::Http1;
use super::http2::Http2;
use super::outgoing::Outgoing;
use super::side::{ClientSide, DestinationSide};
use super::upload::Fault;
use super::walk::Relay;
use crate::changes;
use crate::drive::{Asker, Bounds, ClientTime, place, response_head, unsent};
use crate::leg::{self, NoLeg, Origin};

impl<I: Io, R: Resolve, C: ClientSide> Relay<'_, I, R, C> {
    /// Runs one attempt up to its head or its failure.
    pub(super) async fn attempt(&mut self, attempt: Attempt) -> Input {
        let snapshot = self.walked.snapshot.clone();
        self.walked.origin = Origin::Fresh;
        self.walked.attempt = Some(attempt);
        let Some((cluster, destination)) = place(&snapshot, &attempt) else {
            return self.failed(unsent(FailureKind::Cancelled));
        };
        let mut connection = attempt.connection;
        let started = self.walked.now;
        loop {
            let mut side = match self.connection(connection, cluster, destination).await {
                Ok(side) => side,
                Err(NoLeg::Failed(kind)) => return self.failed(unsent(kind)),
                Err(NoLeg::ClientGone) => return Input::ClientGone,
                Err(NoLeg::Deadline) => return Input::DeadlineReached,
            };
            if self.walked.origin == Origin::Fresh {
                self.walked.now = self.local.io.now();
            }
            if let Err(error) = self.prepare(&mut side, destination, cluster) {
                return self.client_fault(Fault::Head(error));
            }
            match self.exchange_heads(&mut side, cluster, started).await {
                Awaited::Head => return self.head(side),
                // Nothing was sent and nothing is lost: not an attempt that failed.
                Awaited::NeverSent => connection = Connection::Fresh,
                Awaited::Failed(kind) => {
                    let end = side.end(kind);
                    drop(side);
                    return self.failed(end);
                }
                Awaited::ClientFault(fault) => return self.client_fault(fault),
                Awaited::Deadline => return Input::DeadlineReached,
            }
        }
    }

    /// A connection to the destination, in the version that its cluster speaks.
    async fn connection(
        &mut self,
        connection: Connection,
        cluster: &ClusterView,
        destination: &DestinationView,
    ) -> Result<Outgoing<I::Stream>, NoLeg> {
        self.walked.origin = Origin::Fresh;
        let is_plain = destination.address.scheme == Scheme::Http;
        let offers_upgrade = self.work.request.view(&self.work.head).offers_upgrade();
        match cluster.http {
            UpstreamHttp::Http2 => self.stream(connection, cluster, destination).await,
            // What is to become a tunnel needs HTTP/1.1.
            UpstreamHttp::Http2OrHttp1 if !is_plain && !offers_upgrade => {
                // What chose HTTP/1.1 lies in the other pool.
                let key = Key { http: cluster.http, ..leg::key_of(cluster, destination) };
                if self.local.streams.is_http1(&key)
                    && let Some(side) = self.pooled(connection, cluster, destination)
                {
                    return Ok(side);
                }
                self.stream(connection, cluster, destination).await
            }
            UpstreamHttp::Http1 | UpstreamHttp::Http2OrHttp1 => {
                if let Some(side) = self.pooled(connection, cluster, destination) {
                    return Ok(side);
                }
                let deadline = self.walked.exchange.deadline().unwrap_or(Timestamp::MAX);
                let due = self.walked.now + leg::connect_within(cluster, self.walked.limit());
                let (client, timer) = (&mut *self.client, &mut *self.timer);
                let on_behalf = leg::announced(cluster, || self.peer.on_behalf);
                let leg = leg::connect_unless(self.local, cluster, destination, on_behalf, due, |context| {
                    if client.poll_gone(context).is_ready() {
                        return Poll::Ready(NoLeg::ClientGone);
                    }
                    timer.poll(context, deadline).map(|()| NoLeg::Deadline)
                });
                Ok(Outgoing::Http1(Http1::new(leg.await?)))
            }
        }
    }

    fn pooled(
        &mut self,
        connection: Connection,
        cluster: &ClusterView,
        destination: &DestinationView,
    ) -> Option<Outgoing<I::Stream>> {
        if connection != Connection::Any {
            return None;
        }
        let leg = leg::pooled(self.local, cluster, destination, self.walked.now)?;
        self.walked.origin = Origin::Reused;
        Some(Outgoing::Http1(Http1::new(leg)))
    }

    /// A stream of an HTTP/2 connection, or a connection of its own where ALPN chose HTTP/1.1. The client is watched
    /// meanwhile.
    async fn stream(
        &mut self,
        connection: Connection,
        cluster: &ClusterView,
        destination: &DestinationView,
    ) -> Result<Outgoing<I::Stream>, NoLeg> {
        let local = self.local;
        let key = Key { http: cluster.http, ..leg::key_of(cluster, destination) };
        let wanted = match connection {
            Connection::Any => Wanted::Any,
            Connection::Fresh => Wanted::Fresh,
        };
        let timeouts = &cluster.timeouts;
        let care = Care { idle: timeouts.pool_idle, ping: timeouts.http2_ping };
        let in_flight = local.board.start(destination.slot);
        let due = self.walked.now + leg::connect_within(cluster, self.walked.limit());
        let mut opening = pin!(local.streams.open(&local.connector, &key, wanted, care, due));
        let deadline = self.walked.exchange.deadline().unwrap_or(Timestamp::MAX);
        let (client, timer) = (&mut *self.client, &mut *self.timer);
        let opened = poll_fn(|context| {
            if let Poll::Ready(result) = opening.as_mut().poll(context) {
                return Poll::Ready(result.map_err(|error| NoLeg::Failed(error.kind)));
            }
            if client.poll_gone(context).is_ready() {
                return Poll::Ready(Err(NoLeg::ClientGone));
            }
            timer.poll(context, deadline).map(|()| Err(NoLeg::Deadline))
        })
        .await?;
        Ok(match opened {
            Opened::Http1(stream) => Outgoing::Http1(Http1::new(leg::fresh(stream, in_flight))),
            Opened::Http2(place) => {
                let side = Http2::new(place, in_flight, destination.address.scheme);
                self.walked.origin = if side.is_reused() { Origin::Reused } else { Origin::Fresh };
                Outgoing::Http2(side)
            }
        })
    }

    /// Hands over the head, and sets the body to its beginning.
    fn prepare(
        &mut self,
        side: &mut impl DestinationSide,
        destination: &DestinationView,
        cluster: &ClusterView,
    ) -> Result<(), Malformed> {
        let request = self.work.request.view(&self.work.head);
        let (peer, scheme) = (self.peer.address, self.peer.scheme);
        let asker = Asker { view: self.view, peer, client: self.address, scheme };
        self.work.out.clear();
        self.work.reply.clear();
        let (out, to) = (&mut self.work.out, (cluster, destination));
        self.walked.write_head(out, &request, to, asker, self.upload.expectation(), || {
            changes::ends(self.peer.on_behalf, self.local.ids.bits())
        });
        side.head(&mut self.work.out, request.framing())?;
        self.upload.rewind(self.client);
        Ok(())
    }

    async fn exchange_heads(
        &mut self,
        side: &mut Outgoing<I::Stream>,
        cluster: &ClusterView,
        started: Timestamp,
    ) -> Awaited {
        let limit = self.walked.limit();
        let may_be_cut =
            |now, replay| self.walked.exchange.may_be_cut(now, replay, &self.walked.snapshot, &self.walked.sharing);
        let bounds = Bounds {
            started,
            connected: self.walked.now,
            idle: cluster.timeouts.idle,
            per_try: limit,
            may_be_cut: &may_be_cut,
            deadline: self.walked.exchange.deadline(),
            client: ClientTime::default(),
        };
        let wires = Wires {
            local: self.local,
            client: &mut *self.client,
            destination: side,
            work: self.work,
            upload: &mut self.upload,
            timer: &mut *self.timer,
        };
        await_head(wires, bounds, self.kind).await
    }

    fn head(&mut self, side: Outgoing<I::Stream>) -> Input {
        let response = self.work.response.view(&self.work.reply);
        let input = response_head(&response, self.upload.replayable());
        self.destination = Some(side);
        input
    }

    fn failed(&self, end: AttemptEnd) -> Input {
        Input::AttemptEnded { end, body_replayable: self.upload.replayable() }
    }

    fn client_fault(&mut self, fault: Fault) -> Input {
        self.fault = Some(fault);
        let end = AttemptEnd { progress: Progress::Sent, ..unsent(FailureKind::ClientBody) };
        self.failed(end)
    }
}
