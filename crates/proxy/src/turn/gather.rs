//! The request's body, read before a destination is chosen: a client that sends slowly occupies nobody.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use exchange::{Input, Step};
use http1::forward::write_status_line;
use http1::framing::RequestFraming;
use io::Io;
use model::time::Timestamp;
use upstream::Resolve;

use super::Turn;
use crate::await_head::ClientFault;
use crate::upload::{Moved, Wish};

impl<I: Io, R: Resolve> Turn<'_, I, R> {
    /// Reads the body, if there is memory for it, and tells the machine; `Err`: the client's fault, to be answered.
    pub(super) async fn gather(&mut self) -> Result<Step, ClientFault> {
        let length = match self.work.request.view(&self.work.head).framing() {
            RequestFraming::Length(length) => usize::try_from(length).unwrap_or(usize::MAX),
            RequestFraming::None | RequestFraming::Chunked => 0,
        };
        let mut share = self.local.store.share(&self.local.metrics);
        let input = if share.resize(length) < length { Input::Gathered } else { self.read_body().await? };
        self.share = Some(share);
        self.walked.refresh(self.local);
        Ok(self.handle(input))
    }

    async fn read_body(&mut self) -> Result<Input, ClientFault> {
        if self.upload.expectation() == Wish::Pending && self.client.input.is_empty() {
            let mut line = Vec::new();
            write_status_line(&mut line, 100, b"");
            line.extend_from_slice(b"\r\n");
            self.upload.fulfil();
            let due = self.walked.now + self.idle();
            if self.client.send(&line, due).await.is_err() {
                return Ok(Input::ClientGone);
            }
        }
        let deadline = self.walked.exchange.deadline().unwrap_or(Timestamp::MAX);
        let idle = self.idle();
        let mut progress = self.walked.now;
        let (local, client, work, upload) = (self.local, &mut *self.client, &mut *self.work, &mut self.upload);
        let mut moved = upload.moved();
        poll_fn(|context| {
            match upload.poll_gather(context, client, &mut work.window, &mut local.scratch.borrow_mut()) {
                Moved::Over => return Poll::Ready(Ok(Input::Gathered)),
                Moved::ClientGone => return Poll::Ready(Ok(Input::ClientGone)),
                Moved::Fault(error) => return Poll::Ready(Err(ClientFault::Framing(error))),
                Moved::TooLarge => return Poll::Ready(Err(ClientFault::TooLarge)),
                Moved::ByClient | Moved::ByDestination => {}
            }
            if upload.moved() != moved {
                moved = upload.moved();
                progress = local.io.now();
            }
            let due = deadline.min(progress + idle);
            client
                .timer
                .poll(context, due)
                .map(|()| if due == deadline { Ok(Input::DeadlineReached) } else { Err(ClientFault::Stalled) })
        })
        .await
    }

    /// A client that sends nothing for so long has given up.
    fn idle(&self) -> Duration {
        let cluster = self.walked.cluster();
        cluster.map_or(Duration::ZERO, |cluster| cluster.timeouts.idle)
    }
}
