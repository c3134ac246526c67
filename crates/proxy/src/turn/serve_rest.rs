//! What was taken ahead of a slow client: it gets it from memory, when the destination has long had its connection back.

use std::future::poll_fn;
use std::task::Poll;

use io::Io;
use model::time::Timestamp;
use upstream::Resolve;

use super::Turn;
use crate::buffering;
use crate::download::{Ahead, Limits};
use crate::drive::Delivered;

impl<'a, I: Io, R: Resolve> Turn<'a, I, R> {
    /// What of the response may be taken ahead; `None`: nothing, as on nearly all routes.
    pub(super) fn ahead(&self) -> Option<Ahead<'a>> {
        let route = self.walked.route()?;
        let most = buffering::ahead(route.buffering, &self.work.response.view(&self.work.reply));
        (most > 0).then(|| Ahead { most, share: self.local.store.share(&self.local.metrics) })
    }

    /// Sends what waits in `work.back` after the destination's part has ended, well or badly.
    pub(super) async fn send_rest(&mut self, delivered: Delivered, limits: Limits, ahead: &mut Ahead<'_>) -> Delivered {
        match delivered {
            Delivered::ClientGone | Delivered::Deadline => return delivered,
            Delivered::Whole | Delivered::Broken(_) => {}
        }
        ahead.share.resize(self.work.back.len());
        let deadline = limits.deadline.unwrap_or(Timestamp::MAX);
        let (local, client, back) = (self.local, &mut *self.client, &self.work.back);
        let (mut at, mut moved, mut progress) = (0, client.sent, self.walked.now);
        let sent = poll_fn(|context| {
            if let Poll::Ready(result) = client.poll_send(context, back, &mut at) {
                return Poll::Ready(result.map_err(|_| Delivered::ClientGone));
            }
            if client.sent != moved {
                moved = client.sent;
                progress = local.io.now();
            }
            let due = deadline.min(progress + limits.idle);
            let late = if due == deadline { Delivered::Deadline } else { Delivered::ClientGone };
            client.timer.poll(context, due).map(|()| Err(late))
        })
        .await;
        self.walked.now = local.io.now();
        match (sent, delivered) {
            (Err(late), Delivered::Whole) => late,
            // The destination's fault is what is told of it.
            (Ok(()) | Err(_), delivered) => delivered,
        }
    }
}
