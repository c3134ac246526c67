//! The request's body, read before a destination is chosen, as [`crate::turn`] does it for HTTP/1.1.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use exchange::{Input, Step};
use http1::forward::write_status_line;
use http1::framing::RequestFraming;
use io::Io;
use model::time::Timestamp;
use upstream::Resolve;

use super::side::ClientSide;
use super::upload::{Fault, Moved};
use super::walk::Relay;
use crate::upload::Wish;

impl<I: Io, R: Resolve, C: ClientSide> Relay<'_, I, R, C> {
    /// Reads the body, if there is memory for it, and tells the machine; `Err`: the client's fault, to be answered.
    pub(super) async fn gather(&mut self) -> Result<Step, Fault> {
        let length = match self.work.request.view(&self.work.head).framing() {
            RequestFraming::Length(length) => usize::try_from(length).unwrap_or(usize::MAX),
            RequestFraming::None | RequestFraming::Chunked => 0,
        };
        let mut share = self.local.store.share(&self.local.metrics);
        let input = if share.resize(length) < length { Input::Gathered } else { self.read_body(length).await? };
        self.share = Some(share);
        self.walked.refresh(self.local);
        Ok(self.handle(input))
    }

    async fn read_body(&mut self, length: usize) -> Result<Input, Fault> {
        if self.upload.expectation() == Wish::Pending {
            let mut line = Vec::new();
            write_status_line(&mut line, 100, b"");
            line.extend_from_slice(b"\r\n");
            self.upload.fulfil();
            self.client.interim(&line);
        }
        let cluster = self.walked.cluster();
        let idle = cluster.map_or(Duration::ZERO, |cluster| cluster.timeouts.idle);
        let deadline = self.walked.exchange.deadline().unwrap_or(Timestamp::MAX);
        let (local, client, upload, timer) = (self.local, &mut *self.client, &mut self.upload, &mut *self.timer);
        let (mut moved, mut progress) = (upload.moved(), self.walked.now);
        poll_fn(|context| {
            match upload.poll_gather(context, client, length) {
                Moved::Over => return Poll::Ready(Ok(Input::Gathered)),
                Moved::ClientGone => return Poll::Ready(Ok(Input::ClientGone)),
                Moved::Fault(fault) => return Poll::Ready(Err(fault)),
                Moved::ByClient | Moved::ByDestination => {}
            }
            if upload.moved() != moved {
                moved = upload.moved();
                progress = local.io.now();
            }
            let due = deadline.min(progress + idle);
            timer.poll(context, due).map(
                |()| {
                    if due == deadline { Ok(Input::DeadlineReached) } else { Err(Fault::Stalled) }
                },
            )
        })
        .await
    }
}
