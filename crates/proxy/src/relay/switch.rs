//! The end of an exchange that becomes a tunnel: what HTTP/1.1 destinations know as 101, in whatever form the client's
//! version has for it.

use exchange::Input;
use exchange::snapshot::{ClusterView, DestinationView};
use io::{Io, Stream as _};
use upstream::Resolve;

use super::outgoing::Outgoing;
use super::side::{Abort, ClientSide};
use super::walk::Relay;
use crate::drive::Delivered;
use crate::record::Outcome;
use crate::tunnel::pump::{Ended, Pump};
use crate::tunnel::{self, Bounds, End};

impl<I: Io, R: Resolve, C: ClientSide> Relay<'_, I, R, C> {
    /// Switches to what the destination's 101 says (it lies in `work.back` as the client's text), and serves the tunnel
    /// to its end. The attempt is Ok from here on; only a break is told later.
    pub(super) async fn switch(
        &mut self,
        side: Outgoing<I::Stream>,
        cluster: &ClusterView,
        destination: &DestinationView,
    ) {
        // HTTP/2 has no 101, and one is refused where heads are read.
        let Outgoing::Http1(side) = side else { return self.client.abort(Abort::Cut) };
        let (mut leg, ahead) = side.into_parts();
        // The client's connection is watched by pings.
        leg.stream.watch_peer();
        let end = self.end_of(Delivered::Whole);
        // Until the tunnel is over.
        let _place = self.walked.sharing.keep();
        self.handle(Input::ResponseEnded { end });
        let since = self.walked.now;
        let mut pump = Pump::new(Vec::new(), ahead);
        let bounds = Bounds {
            idle: cluster.timeouts.tunnel_idle,
            tunnels: cluster.config.outbound.tunnels,
            cluster: cluster.id.clone(),
            destination: destination.id.clone(),
        };
        let (local, timer) = (self.local, &mut *self.timer);
        let _open = local.metrics.tunnel(&cluster.id);
        let end = match self.client.switch(&self.work.back) {
            Err(_) => End::Pumped(Ended::ClientGone),
            Ok(mut client) => tunnel::run(local, timer, &mut pump, &mut client, &mut leg.stream, &bounds).await,
        };
        match end {
            // What was cut off on one side must not look whole on the other.
            End::Pumped(Ended::ClientGone) => leg.stream.reset_on_drop(),
            End::Pumped(Ended::DestinationGone) => {
                self.client.abort(Abort::Cut);
                tunnel::charge(local, &bounds, since);
            }
            End::Idle | End::Unhealthy => self.client.abort(Abort::Cut),
            End::Pumped(Ended::Closed) | End::Stopped => {}
        }
        self.walked.now = local.io.now();
        let outcome = Outcome { status: SWITCHED, reason: end.reason(), bytes_in: pump.sent_up() };
        self.tell_end(outcome);
    }
}

/// The log says what was agreed on, in the words of HTTP/1.1 for every version.
const SWITCHED: u16 = 101;
