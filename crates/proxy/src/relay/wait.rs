//! A request that nobody can take now waits for its turn, as [`crate::turn`] does it for HTTP/1.1.

use std::future::poll_fn;
use std::task::Poll;

use exchange::{Input, Step};
use io::Io;
use model::id::Slot;
use model::time::Timestamp;
use upstream::Resolve;

use super::side::ClientSide;
use super::walk::Relay;
use crate::waiting::{self, Waiting};

impl<I: Io, R: Resolve, C: ClientSide> Relay<'_, I, R, C> {
    /// Waits until there is something else to do. The line is left then, whatever it is.
    pub(super) async fn wait(&mut self, mut until: Timestamp, wants: Option<Slot>) -> Step {
        let cluster = self.exchange.placement().cluster.and_then(|index| self.snapshot.clusters.get(index.index()));
        // The machine waits for a cluster that is there.
        let Some(cluster) = cluster else { return self.handle(Input::WaitOver) };
        let waiting = Waiting::begin(self.local, cluster, wants);
        loop {
            let input = self.its_turn(&waiting, until).await;
            self.snapshot = waiting::newest(self.local, &mut self.exchange, &self.snapshot);
            let step = self.handle(input);
            let Step::Wait { until: next, wants } = step else {
                waiting.ended(&step);
                return step;
            };
            waiting.again(wants);
            until = next;
        }
    }

    async fn its_turn(&mut self, waiting: &Waiting, until: Timestamp) -> Input {
        let ends = waiting.ends(self.local.io.now(), until, &self.exchange);
        let (client, timer) = (&mut *self.client, &mut *self.timer);
        poll_fn(|context| {
            if client.poll_gone(context).is_ready() {
                return Poll::Ready(Input::ClientGone);
            }
            waiting.poll(context, timer, ends)
        })
        .await
    }
}
