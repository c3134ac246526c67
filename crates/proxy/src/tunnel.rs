//! A connection after its upgrade (RFC 9110 7.8): bytes both ways, until both ends are done.
//!
//! ```text
//!   turn ── 101 of the destination ──> Tunnel (boxed) ──> connection gives its workspace back ──> serve ──> both close
//!                                                                                                  │ pump, timer
//! ```
//! A tunnel holds what it needs for its end and nothing else: no buffer while nothing waits, no snapshot. The leg never
//! returns to the pool. A planned stop lets it live until the grace is over; the route's total limit ended with the 101.

pub(crate) mod pump;

use std::future::poll_fn;
use std::task::{Poll, ready};
use std::time::Duration;

use exchange::Snapshot;
use io::{Io, Stream as _};
use model::health::Health;
use model::id::{ClusterId, DestinationId, Revision};
use model::outcome::{FailureKind, OutcomeClass, Try};
use model::time::Timestamp;
use model::upstream::Tunnels;
use model::view::DestinationHealth;
use telemetry::metrics::OpenTunnel;
use tokio::io::{AsyncRead, AsyncWrite};

use self::pump::{Ended, Pump};
use crate::client::Client;
use crate::leg::Leg;
use crate::limits::Permit;
use crate::local::Local;
use crate::queue::Place;
use crate::record::{Kept, Outcome};
use crate::timer::Timer;

/// A connection that was switched, and what is told of it at its end.
pub(crate) struct Tunnel<S> {
    pub(crate) leg: Leg<S>,
    pub(crate) pump: Pump,
    pub(crate) kept: Kept,
    pub(crate) bounds: Bounds,
    /// When it was switched.
    pub(crate) since: Timestamp,
    /// The client's place among its requests in flight, where they are limited: a tunnel is one of them.
    #[expect(dead_code, reason = "holds the place for as long as it lives")]
    pub(crate) permit: Option<Permit>,
    /// Its place at the destination, where those are counted.
    #[expect(dead_code, reason = "holds the place for as long as it lives")]
    pub(crate) place: Option<Place>,
    #[expect(dead_code, reason = "counts the tunnel for as long as it lives")]
    pub(crate) open: OpenTunnel,
}

/// What ends a tunnel from our side.
#[derive(Clone)]
pub(crate) struct Bounds {
    /// No byte in either direction for so long.
    pub(crate) idle: Duration,
    pub(crate) tunnels: Tunnels,
    /// Whose verdict counts for `tunnels`, and who is charged with a break.
    pub(crate) cluster: ClusterId,
    pub(crate) destination: DestinationId,
}

/// How a tunnel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By one of its ends, in order or not.
    Pumped(Ended),
    /// Nothing moved for too long.
    Idle,
    /// Its destination was judged Unhealthy.
    Unhealthy,
    /// The process stops and the grace is over.
    Stopped,
}

impl End {
    /// The log's word; empty when all went well.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Pumped(Ended::Closed) => "",
            Self::Pumped(Ended::ClientGone) => "client-gone",
            Self::Pumped(Ended::DestinationGone) => "tunnel-cut",
            Self::Idle => "tunnel-idle",
            Self::Unhealthy => "tunnel-unhealthy",
            Self::Stopped => "tunnel-stopped",
        }
    }
}

/// Serves a tunnel to its end. Both connections are closed then.
pub(crate) async fn serve<I: Io, R>(local: &Local<I, R>, mut client: Box<Client<I>>, tunnel: Box<Tunnel<I::Stream>>) {
    let mut telling = Telling { local, tunnel, end: End::Stopped };
    let Tunnel { leg, pump, bounds, since, .. } = &mut *telling.tunnel;
    // Where nothing is said for hours, nobody would notice that a host has vanished.
    client.stream.watch_peer();
    leg.stream.watch_peer();
    let end = run(local, &mut client.timer, pump, &mut client.stream, &mut leg.stream, bounds).await;
    match end {
        // What was cut off on one side must not look whole on the other.
        End::Pumped(Ended::ClientGone) => leg.stream.reset_on_drop(),
        End::Pumped(Ended::DestinationGone) => {
            client.stream.reset_on_drop();
            charge(local, bounds, *since);
        }
        End::Pumped(Ended::Closed) | End::Idle | End::Unhealthy | End::Stopped => {}
    }
    telling.end = end;
}

/// Pumps between any two ends, until they or the bounds end it.
pub(crate) async fn run<I, R, C, D>(
    local: &Local<I, R>,
    timer: &mut Timer<I>,
    pump: &mut Pump,
    client: &mut C,
    destination: &mut D,
    bounds: &Bounds,
) -> End
where
    I: Io,
    C: AsyncRead + AsyncWrite + Unpin,
    D: AsyncRead + AsyncWrite + Unpin,
{
    let mut progress = local.io.now();
    let mut moved = 0;
    let mut watch = Watch::new(bounds.tunnels, progress);
    poll_fn(|context| {
        loop {
            let ended = pump.poll(context, client, destination, &mut local.scratch.borrow_mut());
            if let Poll::Ready(ended) = ended {
                return Poll::Ready(End::Pumped(ended));
            }
            if pump.moved() != moved {
                moved = pump.moved();
                progress = local.io.now();
            }
            let silent_until = progress + bounds.idle;
            ready!(timer.poll(context, silent_until.min(watch.next)));
            let now = local.io.now();
            if now >= silent_until {
                return Poll::Ready(End::Idle);
            }
            if watch.is_unhealthy(now, bounds, &local.board.snapshot()) {
                return Poll::Ready(End::Unhealthy);
            }
        }
    })
    .await
}

/// Looks at the destination's verdict, now and then.
struct Watch {
    next: Timestamp,
    /// The snapshot that was looked at last.
    seen: Option<Revision>,
}

impl Watch {
    fn new(tunnels: Tunnels, now: Timestamp) -> Self {
        let next = match tunnels {
            Tunnels::Keep => Timestamp::MAX,
            Tunnels::CloseOnUnhealthy => now + LOOK,
        };
        Self { next, seen: None }
    }

    fn is_unhealthy(&mut self, now: Timestamp, bounds: &Bounds, snapshot: &Snapshot) -> bool {
        if now < self.next {
            return false;
        }
        self.next = now + LOOK;
        if self.seen.replace(snapshot.revision) == Some(snapshot.revision) {
            return false;
        }
        let health = destination(snapshot, bounds).map(|destination| destination.health);
        health.is_some_and(|health| health.active == Health::Unhealthy || health.passive == Health::Unhealthy)
    }
}

/// The destination as it stands now; `None`: it is not in the configuration any more.
fn destination<'s>(snapshot: &'s Snapshot, bounds: &Bounds) -> Option<&'s DestinationHealth> {
    let cluster = snapshot.health.clusters.iter().find(|cluster| cluster.id == bounds.cluster)?;
    cluster.destinations.iter().find(|destination| destination.id == bounds.destination)
}

/// The attempt was charged as Ok when its head came; a break is charged once more, as a cut.
pub(crate) fn charge<I: Io, R>(local: &Local<I, R>, bounds: &Bounds, since: Timestamp) {
    let snapshot = local.board.snapshot();
    // Its place among the records may be another's by now.
    let Some(destination) = destination(&snapshot, bounds) else { return };
    let outcome = model::outcome::Outcome {
        class: OutcomeClass::Cut,
        failure: Some(FailureKind::BodyCut),
        status: Some(SWITCHED),
        retryable: false,
        client_gone: false,
    };
    // An upgrade is repeated only where nothing was sent, so no request that fails wherever it goes has come this far.
    let which = Try::First;
    local.board.report(destination.slot, board::Ended { picked_at: since, ended_at: local.io.now(), which, outcome });
    local.metrics.attempt(&bounds.cluster, &bounds.destination, OutcomeClass::Cut);
}

/// Tells of the tunnel when it is dropped, however it ended.
struct Telling<'a, I: Io, R> {
    local: &'a Local<I, R>,
    tunnel: Box<Tunnel<I::Stream>>,
    end: End,
}

impl<I: Io, R> Drop for Telling<'_, I, R> {
    fn drop(&mut self) {
        let Tunnel { pump, kept, .. } = &*self.tunnel;
        let outcome = Outcome { status: SWITCHED, reason: self.end.reason(), bytes_in: pump.sent_up() };
        kept.end(self.local, outcome, pump.sent_down(), self.local.io.now());
    }
}

const SWITCHED: u16 = 101;
/// A verdict closes tunnels within this time.
const LOOK: Duration = Duration::from_secs(1);
