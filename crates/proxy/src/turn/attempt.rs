//! One attempt: a connection, the request over it, the head of its response.

use exchange::snapshot::{ClusterView, DestinationView};
use exchange::{Attempt, Connection, Input};
use io::Io;
use model::outcome::{AttemptEnd, FailureKind, Progress};
use model::time::Timestamp;
use upstream::Resolve;

use super::Turn;
use crate::await_head::ClientFault;
use crate::await_head::{Awaited, Wires, await_head};
use crate::changes;
use crate::drive::{Asker, Bounds, ClientTime, place, response_head, unsent};
use crate::front::Front;
use crate::leg::{self, Leg, NoLeg, Origin};
use crate::upload::Moved;

impl<I: Io, R: Resolve> Turn<'_, I, R> {
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
            let mut leg = match self.leg(connection, cluster, destination).await {
                Ok(leg) => leg,
                Err(NoLeg::Failed(kind)) => return self.failed(unsent(kind)),
                Err(NoLeg::ClientGone) => return Input::ClientGone,
                Err(NoLeg::Deadline) => return Input::DeadlineReached,
            };
            self.walked.origin = leg.origin;
            if let Err(moved) = self.prepare(destination, cluster) {
                return self.client_fault(fault_of(moved));
            }
            if leg.origin == Origin::Fresh {
                self.walked.now = self.local.io.now();
            }
            match self.exchange_heads(&mut leg, cluster, started).await {
                Awaited::Head => return self.head(leg),
                // Nothing was sent and nothing is lost: not an attempt that failed.
                Awaited::NeverSent => connection = Connection::Fresh,
                Awaited::Failed(kind) => {
                    let end = leg.end(kind);
                    drop(leg);
                    return self.failed(end);
                }
                Awaited::ClientFault(fault) => return self.client_fault(fault),
                Awaited::Deadline => return Input::DeadlineReached,
            }
        }
    }

    async fn leg(
        &mut self,
        connection: Connection,
        cluster: &ClusterView,
        destination: &DestinationView,
    ) -> Result<Leg<I::Stream>, NoLeg> {
        if connection == Connection::Any
            && let Some(leg) = leg::pooled(self.local, cluster, destination, self.walked.now)
        {
            return Ok(leg);
        }
        let deadline = self.walked.exchange.deadline();
        leg::connect(self.local, self.client, cluster, destination, self.walked.now, deadline, self.walked.limit())
            .await
    }

    /// Writes head and first bytes of the body.
    fn prepare(&mut self, destination: &DestinationView, cluster: &ClusterView) -> Result<(), Moved> {
        self.upload.take_ahead(&mut self.work.window, &mut self.client.input)?;
        let request = self.work.request.view(&self.work.head);
        let (peer, scheme) = (self.client.address, self.client.scheme());
        let asker = Asker { view: self.view, peer, client: self.facts.client, scheme };
        self.work.out.clear();
        self.work.reply.clear();
        self.work.front = Front::default();
        let (out, to) = (&mut self.work.out, (cluster, destination));
        self.walked.write_head(out, &request, to, asker, self.upload.expectation(), || {
            changes::ends(self.client.on_behalf(), self.local.ids.bits())
        });
        self.upload.rewind(&self.work.window, &mut self.work.out);
        Ok(())
    }

    async fn exchange_heads(&mut self, leg: &mut Leg<I::Stream>, cluster: &ClusterView, started: Timestamp) -> Awaited {
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
        let wires = Wires { local: self.local, client: self.client, leg, work: self.work, upload: &mut self.upload };
        await_head(wires, bounds, (self.facts.kind, self.facts.version)).await
    }

    fn head(&mut self, leg: Leg<I::Stream>) -> Input {
        let response = self.work.response.view(&self.work.reply);
        let input = response_head(&response, self.upload.replayable());
        self.leg = Some(leg);
        input
    }

    fn failed(&self, end: AttemptEnd) -> Input {
        Input::AttemptEnded { end, body_replayable: self.upload.replayable() }
    }

    fn client_fault(&mut self, fault: ClientFault) -> Input {
        self.fault = Some(fault);
        let end = AttemptEnd { progress: Progress::Sent, ..unsent(FailureKind::ClientBody) };
        self.failed(end)
    }
}

fn fault_of(moved: Moved) -> ClientFault {
    match moved {
        Moved::Fault(error) => ClientFault::Framing(error),
        Moved::TooLarge => ClientFault::TooLarge,
        Moved::Over | Moved::ByClient | Moved::ByDestination | Moved::ClientGone => ClientFault::Stalled,
    }
}
