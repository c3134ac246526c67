//! The connection to a destination while one exchange uses it.

use std::future::{Future, poll_fn};
use std::task::{Context, Poll};
use std::time::Duration;

use board::InFlight;
use exchange::snapshot::{ClusterView, DestinationView, Endpoint};
use exchange::step::TryLimit;
use http1::proxy_header::OnBehalf;
use io::Io;
use model::outcome::{AttemptEnd, FailureKind, Progress};
use model::time::Timestamp;
use model::upstream::{SendProxy, UpstreamHttp};
use upstream::pool::Keep;
use upstream::{Key, Resolve, Stream, Target};

use crate::client::Client;
use crate::local::Local;
use crate::transfer::poll_send_small;

/// A connection to a destination, in use.
pub(crate) struct Leg<S> {
    pub(crate) stream: Stream<S>,
    pub(crate) origin: Origin,
    /// Counted as in flight as long as the leg is there.
    pub(crate) in_flight: InFlight,
    /// Whether a byte of the request was taken.
    pub(crate) has_sent: bool,
    /// Whether a byte of a response came.
    pub(crate) has_answered: bool,
    /// A write failed. What the destination had to say may still be read.
    pub(crate) is_write_broken: bool,
    /// All that was to be sent was taken, but a TLS session holds some of it.
    pub(crate) is_unflushed: bool,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Made for this attempt.
    Fresh,
    /// From the pool.
    Reused,
}

/// Why there is no leg.
pub(crate) enum NoLeg {
    /// The destination, or our own side.
    Failed(FailureKind),
    /// The client went away meanwhile.
    ClientGone,
    /// The total deadline is over.
    Deadline,
}

impl<S: ::io::Stream> Leg<S> {
    /// Sends `bytes` from `at` on. A failure is remembered, not told: only reading says what became of the request.
    pub(crate) fn poll_send(&mut self, context: &mut Context<'_>, bytes: &[u8], at: &mut usize) -> Poll<()> {
        if self.is_write_broken {
            return Poll::Ready(());
        }
        let before = *at;
        let result = poll_send_small(&mut self.stream, context, bytes, at);
        self.has_sent |= *at > before;
        self.is_unflushed = result.is_pending() && *at >= bytes.len();
        match result {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => Poll::Ready(()),
            Poll::Ready(Err(_)) => {
                self.is_write_broken = true;
                Poll::Ready(())
            }
        }
    }

    /// The end of an attempt that failed before its response's head was complete.
    pub(crate) fn end(&self, failure: FailureKind) -> AttemptEnd {
        let reused = self.origin == Origin::Reused;
        let progress = if !self.has_sent {
            Progress::NotSent
        } else if reused && !self.has_answered && matches!(failure, FailureKind::Reset | FailureKind::Closed) {
            Progress::StaleReuse
        } else {
            Progress::Sent
        };
        AttemptEnd {
            progress,
            failure: Some(failure),
            status: None,
            call: None,
            retry_after: false,
            response_bytes_seen: self.has_answered,
            client_gone: failure == FailureKind::ClientGone,
            reused,
        }
    }
}

/// What a destination's HTTP/1.1 connections have in common.
pub(crate) fn key_of<'a>(cluster: &'a ClusterView, destination: &'a DestinationView) -> Key<'a> {
    Key {
        slot: destination.slot,
        address: &destination.address,
        literal: match &destination.endpoint {
            Endpoint::Address(address) => Some(*address),
            Endpoint::Name(..) => None,
        },
        tls: &cluster.config.tls,
        http: UpstreamHttp::Http1,
        outbound: &cluster.config.outbound,
    }
}

/// What a new connection to the cluster says of the client.
pub(crate) fn announced(cluster: &ClusterView, client: impl FnOnce() -> OnBehalf) -> Option<OnBehalf> {
    match cluster.config.outbound.proxy_protocol {
        SendProxy::Off => None,
        SendProxy::V2 => Some(client()),
    }
}

/// How long connecting may take. A try's own time counts from its beginning: what would be sent once it is over is better
/// not sent, so that any request may go elsewhere. What was learnt of responses says nothing of connections.
pub(crate) fn connect_within(cluster: &ClusterView, limit: Option<TryLimit>) -> Duration {
    let connect = cluster.timeouts.connect;
    match limit {
        Some(TryLimit::Given(span)) => span.min(connect),
        Some(TryLimit::Learnt(_)) | None => connect,
    }
}

/// Whether connections may serve another client after this one.
fn is_shared(cluster: &ClusterView) -> bool {
    cluster.config.outbound.proxy_protocol == SendProxy::Off
}

/// A pooled connection, if there is a good one.
pub(crate) fn pooled<I: Io, R>(
    local: &Local<I, R>,
    cluster: &ClusterView,
    destination: &DestinationView,
    now: Timestamp,
) -> Option<Leg<I::Stream>> {
    let stream = local.pool.borrow_mut().take(&key_of(cluster, destination), now, ::io::Stream::is_known_quiet)?;
    Some(leg(stream, Origin::Reused, local.board.start(destination.slot)))
}

/// A new connection. The client is watched meanwhile. What it takes to connect is boxed: a pooled connection is the rule.
pub(crate) async fn connect<I: Io, R: Resolve>(
    local: &Local<I, R>,
    client: &mut Client<I>,
    cluster: &ClusterView,
    destination: &DestinationView,
    now: Timestamp,
    deadline: Option<Timestamp>,
    limit: Option<TryLimit>,
) -> Result<Leg<I::Stream>, NoLeg> {
    let on_behalf = announced(cluster, || client.on_behalf());
    let due = now + connect_within(cluster, limit);
    connect_unless(local, cluster, destination, on_behalf, due, |context| {
        if client.poll_gone(context, &mut local.scratch.borrow_mut()).is_ready() {
            return Poll::Ready(NoLeg::ClientGone);
        }
        client.timer.poll(context, deadline.unwrap_or(Timestamp::MAX)).map(|()| NoLeg::Deadline)
    })
    .await
}

/// A new connection by `due`, unless `stop` is ready before.
pub(crate) async fn connect_unless<I: Io, R: Resolve>(
    local: &Local<I, R>,
    cluster: &ClusterView,
    destination: &DestinationView,
    on_behalf: Option<OnBehalf>,
    due: Timestamp,
    mut stop: impl FnMut(&mut Context<'_>) -> Poll<NoLeg>,
) -> Result<Leg<I::Stream>, NoLeg> {
    let target = Target { on_behalf, ..key_of(cluster, destination).target() };
    let in_flight = local.board.start(destination.slot);
    let mut connecting = Box::pin(local.connector.connect(target, due));
    poll_fn(|context| {
        if let Poll::Ready(result) = connecting.as_mut().poll(context) {
            return Poll::Ready(result.map_err(|error| NoLeg::Failed(error.kind)));
        }
        stop(context).map(Err)
    })
    .await
    .map(|stream| fresh(stream, in_flight))
}

/// Puts a connection whose exchange is over, whole and clean, into the pool; one that names its client is closed.
pub(crate) fn keep<I: Io, R>(
    local: &Local<I, R>,
    cluster: &ClusterView,
    destination: &DestinationView,
    leg: Leg<I::Stream>,
    announced: Option<Duration>,
    now: Timestamp,
) {
    if !is_shared(cluster) {
        return;
    }
    let keep = Keep { idle: cluster.timeouts.pool_idle, most: cluster.timeouts.pool_size, announced };
    local.pool.borrow_mut().put(&key_of(cluster, destination), leg.stream, keep, now);
}

/// A connection that was made elsewhere, already counted.
pub(crate) fn fresh<S>(stream: Stream<S>, in_flight: InFlight) -> Leg<S> {
    leg(stream, Origin::Fresh, in_flight)
}

fn leg<S>(stream: Stream<S>, origin: Origin, in_flight: InFlight) -> Leg<S> {
    let (has_sent, has_answered, is_write_broken, is_unflushed) = (false, false, false, false);
    Leg { stream, origin, in_flight, has_sent, has_answered, is_write_broken, is_unflushed }
}
