//! The end of an exchange that becomes a tunnel: the 101 goes to the client, the leg and all that is told of it go into
//! the tunnel, and the workspace becomes free.

use exchange::Input;
use exchange::snapshot::{ClusterView, DestinationView};
use http1::connection::Persistence;
use http1::forward::ResponseRewrite;
use io::Io;
use upstream::Resolve;

use super::{After, Turn};
use crate::changes;
use crate::drive::Delivered;
use crate::leg::Leg;
use crate::tunnel::pump::Pump;
use crate::tunnel::{Bounds, Tunnel};

impl<I: Io, R: Resolve> Turn<'_, I, R> {
    /// Switches to what the destination's 101 says. The attempt is Ok from here on; only a break is told later.
    pub(super) fn switch(
        &mut self,
        leg: Leg<I::Stream>,
        cluster: &ClusterView,
        destination: &DestinationView,
        cookies: &[String],
    ) -> After {
        let response = self.work.response.view(&self.work.reply);
        // Behind interim responses that wait there.
        let mut down = std::mem::take(&mut self.work.back);
        let (version, persistence) = (self.facts.version, Persistence::KeepAlive);
        let changes = changes::of_response(&self.walked.exchange, &self.walked.snapshot, self.walked.id.as_deref());
        let rewrite = ResponseRewrite { version, persistence, cookies, date: "", changes: changes.as_ref() };
        http1::forward::response(&mut down, &response, &rewrite);
        down.extend_from_slice(self.work.reply.get(self.work.response.len()..).unwrap_or_default());
        let up = std::mem::take(&mut self.client.input);
        let end = self.end_of(Delivered::Whole);
        let place = self.walked.sharing.keep();
        self.handle(Input::ResponseEnded { end });
        let told = self.walked.told(self.told());
        let kept = self.walked.record.keep(self.local, told);
        self.client.tunnel = Some(Box::new(Tunnel {
            leg,
            pump: Pump::new(up, down),
            kept,
            bounds: Bounds {
                idle: cluster.timeouts.tunnel_idle,
                tunnels: cluster.config.outbound.tunnels,
                cluster: cluster.id.clone(),
                destination: destination.id.clone(),
            },
            since: self.walked.now,
            permit: self.walked.sharing.permit(),
            place,
            open: self.local.metrics.tunnel(&cluster.id),
        }));
        After::Switched
    }
}
