//! From the first byte of an attempt to the complete head of its response; [`crate::await_head`] with the sides behind
//! their traits.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use http1::forward;
use http1::response::RequestKind;
use http1::upgrade;
use io::Io;
use model::outcome::FailureKind;
use model::time::Timestamp;

use super::side::{ClientSide, DestinationSide};
use super::upload::{Fault, Moved, Upload};
use crate::await_head::MAX_INTERIM;
use crate::drive::{Bounds, Late, Since};
use crate::local::{Local, Workspace};
use crate::timer::Timer;
use crate::upload::Wish;

/// What the wait comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// `work.response` is parsed from `work.reply`.
    Head,
    /// The pooled connection took not one byte: it was dead already, nothing has happened.
    NeverSent,
    /// The attempt failed.
    Failed(FailureKind),
    /// The client's body is at fault, or stalls.
    ClientFault(Fault),
    /// The total deadline is over.
    Deadline,
}

/// Everything that one exchange moves bytes between.
pub(super) struct Wires<'a, I: Io, R, C, D> {
    pub(super) local: &'a Local<I, R>,
    pub(super) client: &'a mut C,
    pub(super) destination: &'a mut D,
    pub(super) work: &'a mut Workspace,
    pub(super) upload: &'a mut Upload,
    pub(super) timer: &'a mut Timer<I>,
}

/// Sends the body, and the head before it, and waits for the response's head. Interim responses are passed on.
pub(super) async fn await_head<I: Io, R, C: ClientSide, D: DestinationSide>(
    wires: Wires<'_, I, R, C, D>,
    bounds: Bounds<'_>,
    kind: RequestKind,
) -> Awaited {
    let mut wait = Wait { wires, bounds, kind, interim: 0, moved: 0, progress: None };
    poll_fn(|context| wait.poll(context)).await
}

struct Wait<'a, I: Io, R, C, D> {
    wires: Wires<'a, I, R, C, D>,
    bounds: Bounds<'a>,
    kind: RequestKind,
    /// Interim responses so far.
    interim: usize,
    /// [`Wait::mark`] when it was looked at last.
    moved: u64,
    /// When a byte last moved; `None` before the second look.
    progress: Option<Timestamp>,
}

impl<I: Io, R, C: ClientSide, D: DestinationSide> Wait<'_, I, R, C, D> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Awaited> {
        let Wires { client, destination, upload, .. } = &mut self.wires;
        let moved = upload.poll_move(context, *client, *destination);
        if destination.is_unsent() {
            return Poll::Ready(Awaited::NeverSent);
        }
        // The answer comes first: one that is there already tells more than a client's fault.
        if let Poll::Ready(awaited) = self.poll_reply(context) {
            return Poll::Ready(awaited);
        }
        match moved {
            Moved::ClientGone => return Poll::Ready(Awaited::Failed(FailureKind::ClientGone)),
            Moved::Fault(fault) => return Poll::Ready(Awaited::ClientFault(fault)),
            Moved::Over | Moved::ByDestination | Moved::ByClient => {
                if self.wires.client.poll_gone(context).is_ready() {
                    return Poll::Ready(Awaited::Failed(FailureKind::ClientGone));
                }
            }
        }
        self.note_progress();
        self.poll_timer(context, moved)
    }

    /// The clock is read when something moved, and not for the first bytes, which leave when the attempt starts.
    fn note_progress(&mut self) {
        let mark = self.wires.destination.moved() + self.wires.upload.moved() + self.wires.client.sent();
        if mark == self.moved {
            return;
        }
        self.progress = Some(if self.moved == 0 { self.bounds.connected } else { self.wires.local.io.now() });
        self.moved = mark;
    }

    fn poll_reply(&mut self, context: &mut Context<'_>) -> Poll<Awaited> {
        loop {
            let Wires { local, client, destination, work, .. } = &mut self.wires;
            let Workspace { response, reply, .. } = &mut **work;
            let mut scratch = local.scratch.borrow_mut();
            match destination.poll_head(context, &mut scratch, response, reply, self.kind) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(failure)) => return Poll::Ready(Awaited::Failed(failure)),
                Poll::Ready(Ok(())) if !response.is_interim() => {
                    // Whoever asks for a tunnel at any other place must not get a destination blamed for it.
                    let is_told = client.takes_response(response.status());
                    return Poll::Ready(if is_told { Awaited::Head } else { Awaited::ClientFault(Fault::NoTunnel) });
                }
                Poll::Ready(Ok(())) => {}
            }
            let is_switch = response.status() == 101;
            drop(scratch);
            if is_switch {
                let is_good = self.is_switched();
                return Poll::Ready(if is_good { Awaited::Head } else { Awaited::Failed(FailureKind::Protocol) });
            }
            self.interim += 1;
            if self.interim > MAX_INTERIM {
                return Poll::Ready(Awaited::Failed(FailureKind::Protocol));
            }
            self.pass_interim();
        }
    }

    /// Whether a 101 may be believed: it accepts what was offered, and the request is over (RFC 9110 7.8).
    fn is_switched(&self) -> bool {
        let Wires { client, work, upload, .. } = &self.wires;
        let response = work.response.view(&work.reply);
        upload.is_sent()
            && upgrade::is_accepted(&work.request.view(&work.head), &response)
            && client.takes_switch(&response)
    }

    /// 100 goes to a client that waits for it, once; others (103) to all.
    fn pass_interim(&mut self) {
        let Wires { client, work, upload, .. } = &mut self.wires;
        let Workspace { response, reply, back, .. } = &mut **work;
        let is_continue = response.status() == 100;
        if !is_continue || upload.expectation() == Wish::Pending {
            back.clear();
            forward::interim(back, &response.view(reply));
            client.interim(back);
            back.clear();
        }
        if is_continue {
            upload.fulfil();
        }
    }

    fn poll_timer(&mut self, context: &mut Context<'_>, moved: Moved) -> Poll<Awaited> {
        loop {
            let Wires { local, destination, upload, timer, work, client, .. } = &mut self.wires;
            let (expectation, replay) = (upload.expectation(), upload.replayable());
            let is_client_asked = moved == Moved::ByClient;
            let since = Since { progress: self.progress, is_client_asked, expectation, replay };
            match ready!(self.bounds.poll(context, local, timer, destination.in_flight(), since)) {
                Late::Deadline => return Poll::Ready(Awaited::Deadline),
                Late::ClientDeadline => return Poll::Ready(Awaited::Failed(FailureKind::ClientDeadline)),
                Late::Client => return Poll::Ready(Awaited::ClientFault(Fault::Stalled)),
                Late::Try => return Poll::Ready(Awaited::Failed(FailureKind::TryTimeout)),
                Late::Destination => return Poll::Ready(Awaited::Failed(FailureKind::HeadTimeout)),
                Late::Continue => {}
            }
            upload.fulfil();
            let back = &mut work.back;
            back.clear();
            forward::write_status_line(back, 100, b"");
            back.extend_from_slice(b"\r\n");
            client.interim(back);
            back.clear();
        }
    }
}
