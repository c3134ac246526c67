//! From the first byte of an attempt to the complete head of its response.
//!
//! ```text
//!            ┌── head and body ──> destination
//!   poll ────┼── response <─────── destination     1xx go on at once, the first head from 200 up ends the wait
//!            ├── body, or its end <── client       watched all the time: a client that goes cancels the attempt
//!            └── timer                             idle, per try, total, patience for a 100
//! ```
//! All of it is one poll function of the connection's task. It holds no state that is not in its arguments, so it may be
//! dropped at any time (a worker that ends).

use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use http1::connection::Version;
use http1::forward;
use http1::limits::HeadLimits;
use http1::request::Parsed;
use http1::response::RequestKind;
use http1::upgrade;
use io::Io;
use model::outcome::FailureKind;
use model::time::Timestamp;

use crate::client::Client;
use crate::drive::{Bounds, Late, Since};
use crate::front::{self, Front};
use crate::leg::{Leg, Origin};
use crate::local::{Local, Workspace};
use crate::transfer::{Wake, poll_read_woken};
use crate::upload::{Moved, Upload, Wish};

/// What the wait comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// `work.response` is parsed from `work.reply`. Bytes of the body may lie in the worker's buffer (`work.front`).
    Head,
    /// The pooled connection took not one byte: it was dead already, nothing has happened.
    NeverSent,
    /// The attempt failed.
    Failed(FailureKind),
    /// The client's body is at fault, or stalls.
    ClientFault(ClientFault),
    /// The total deadline is over.
    Deadline,
}

/// What a client does wrong while it sends its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientFault {
    /// Broken framing.
    Framing(http1::body::BodyError),
    /// More than it may send.
    TooLarge,
    /// Nothing for too long.
    Stalled,
}

/// Everything that one exchange moves bytes between.
pub(crate) struct Wires<'a, I: Io, R> {
    pub(crate) local: &'a Local<I, R>,
    pub(crate) client: &'a mut Client<I>,
    pub(crate) leg: &'a mut Leg<I::Stream>,
    pub(crate) work: &'a mut Workspace,
    pub(crate) upload: &'a mut Upload,
}

/// Sends `work.out`, then the body, and waits for the head. Interim responses are put into `work.back` and sent from
/// there; what of them is not sent yet stays there.
pub(crate) async fn await_head<I: Io, R>(
    wires: Wires<'_, I, R>,
    bounds: Bounds<'_>,
    (kind, version): (RequestKind, Version),
) -> Awaited {
    let (wake, progress) = (Wake::Same, None);
    let (out_sent, back_sent, interim, moved) = (0, 0, 0, 0);
    let mut wait = Wait { wires, bounds, kind, version, out_sent, back_sent, interim, moved, progress, wake };
    let awaited = poll_fn(|context| wait.poll(context)).await;
    let sent = wait.back_sent;
    wait.wires.work.back.drain(..sent);
    awaited
}

struct Wait<'a, I: Io, R> {
    wires: Wires<'a, I, R>,
    bounds: Bounds<'a>,
    kind: RequestKind,
    /// The client's.
    version: Version,
    out_sent: usize,
    back_sent: usize,
    /// Interim responses so far.
    interim: usize,
    /// [`Wait::mark`] when it was looked at last.
    moved: u64,
    /// When a byte last moved; `None` before the second look.
    progress: Option<Timestamp>,
    wake: Wake,
}

impl<I: Io, R> Wait<'_, I, R> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Awaited> {
        let local = self.wires.local;
        let mut scratch = local.scratch.borrow_mut();
        let is_head_sent = self.poll_out(context).is_ready();
        if self.wires.leg.is_write_broken && !self.wires.leg.has_sent && self.wires.leg.origin == Origin::Reused {
            return Poll::Ready(Awaited::NeverSent);
        }
        // The answer comes first: one that is there already makes what we would still send pointless.
        if let Poll::Ready(awaited) = self.poll_reply(context, &mut scratch) {
            return Poll::Ready(awaited);
        }
        let moved = if is_head_sent { self.poll_body(context, &mut scratch) } else { Moved::ByDestination };
        match moved {
            Moved::ClientGone => return Poll::Ready(Awaited::Failed(FailureKind::ClientGone)),
            Moved::Fault(error) => return Poll::Ready(Awaited::ClientFault(ClientFault::Framing(error))),
            Moved::TooLarge => return Poll::Ready(Awaited::ClientFault(ClientFault::TooLarge)),
            Moved::Over | Moved::ByDestination => {
                if self.wires.client.poll_gone(context, &mut scratch).is_ready() {
                    return Poll::Ready(Awaited::Failed(FailureKind::ClientGone));
                }
            }
            Moved::ByClient => {}
        }
        drop(scratch);
        if self.poll_back(context).is_err() {
            return Poll::Ready(Awaited::Failed(FailureKind::ClientGone));
        }
        self.note_progress();
        self.poll_timer(context, moved)
    }

    /// The clock is read when something moved, and not for the first bytes, which leave when the attempt starts.
    fn note_progress(&mut self) {
        let mark = self.mark();
        if mark == self.moved {
            return;
        }
        self.progress = Some(if self.moved == 0 { self.bounds.connected } else { self.wires.local.io.now() });
        self.moved = mark;
    }

    fn mark(&self) -> u64 {
        let Wires { client, work, upload, .. } = &self.wires;
        self.out_sent as u64 + work.reply.len() as u64 + upload.moved() + client.sent
    }

    fn poll_out(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.out_sent == self.wires.work.out.len() {
            return Poll::Ready(());
        }
        self.wires.leg.poll_send(context, &self.wires.work.out, &mut self.out_sent)
    }

    fn poll_reply(&mut self, context: &mut Context<'_>, scratch: &mut [u8]) -> Poll<Awaited> {
        loop {
            let Wires { leg, work, .. } = &mut self.wires;
            let window = scratch.get_mut(front::ROOM..front::ROOM + front::MOST).unwrap_or_default();
            match poll_read_woken(&mut leg.stream, context, window, &mut self.wake) {
                Poll::Pending => {
                    self.wake = Wake::New;
                    return Poll::Pending;
                }
                Poll::Ready(Ok([])) => return Poll::Ready(Awaited::Failed(FailureKind::Closed)),
                Poll::Ready(Err(_)) => return Poll::Ready(Awaited::Failed(FailureKind::Reset)),
                Poll::Ready(Ok(bytes)) => {
                    leg.has_answered = true;
                    if work.reply.is_empty() && bytes.len() >= front::LEAST && Self::leave_body(work, bytes, self.kind)
                    {
                        return Poll::Ready(Awaited::Head);
                    }
                    work.reply.extend_from_slice(bytes);
                }
            }
            if let Some(awaited) = self.read_heads() {
                return Poll::Ready(awaited);
            }
        }
    }

    /// Parses as many heads as are there.
    fn read_heads(&mut self) -> Option<Awaited> {
        loop {
            let Workspace { response, reply, .. } = &mut *self.wires.work;
            match response.parse(reply, &HeadLimits::RESPONSE, self.kind) {
                Ok(Parsed::Partial) => return None,
                Err(error) if error.is_size() => return Some(Awaited::Failed(FailureKind::HeadTooLarge)),
                Err(_) => return Some(Awaited::Failed(FailureKind::Protocol)),
                Ok(Parsed::Complete) if !response.is_interim() => return Some(Awaited::Head),
                Ok(Parsed::Complete) => {}
            }
            if self.wires.work.response.status() == 101 {
                return Some(if self.is_switched() { Awaited::Head } else { Awaited::Failed(FailureKind::Protocol) });
            }
            self.interim += 1;
            if self.interim > MAX_INTERIM {
                return Some(Awaited::Failed(FailureKind::Protocol));
            }
            self.pass_interim();
        }
    }

    /// Whether a 101 may be believed: it accepts what was offered, and the request is over (RFC 9110 7.8).
    fn is_switched(&self) -> bool {
        let Wires { work, upload, .. } = &self.wires;
        let request = work.request.view(&work.head);
        upload.is_sent(&work.window) && upgrade::is_accepted(&request, &work.response.view(&work.reply))
    }

    /// 100 goes to a client that waits for it, once; others (103) to whom they were made for.
    fn pass_interim(&mut self) {
        let Wires { work, upload, .. } = &mut self.wires;
        let Workspace { response, reply, back, .. } = &mut **work;
        let is_wanted = if response.status() == 100 {
            upload.expectation() == Wish::Pending
        } else {
            self.version == Version::Http11
        };
        if response.status() == 100 {
            upload.fulfil();
        }
        if is_wanted {
            forward::interim(back, &response.view(reply));
        }
        let end = response.len();
        reply.drain(..end);
    }

    fn poll_body(&mut self, context: &mut Context<'_>, scratch: &mut [u8]) -> Moved {
        let Wires { client, leg, work, upload, .. } = &mut self.wires;
        upload.poll_move(context, client, leg, &mut work.window, scratch)
    }

    fn poll_back(&mut self, context: &mut Context<'_>) -> Result<(), ()> {
        if self.back_sent == self.wires.work.back.len() && !self.wires.client.is_unflushed {
            return Ok(());
        }
        match self.wires.client.poll_send(context, &self.wires.work.back, &mut self.back_sent) {
            Poll::Ready(Err(_)) => Err(()),
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }

    fn poll_timer(&mut self, context: &mut Context<'_>, moved: Moved) -> Poll<Awaited> {
        loop {
            let Wires { local, client, leg, upload, .. } = &mut self.wires;
            let (expectation, replay) = (upload.expectation(), upload.replayable());
            let is_client_asked = moved == Moved::ByClient;
            let since = Since { progress: self.progress, is_client_asked, expectation, replay };
            match ready!(self.bounds.poll(context, local, &mut client.timer, &leg.in_flight, since)) {
                Late::Deadline => return Poll::Ready(Awaited::Deadline),
                Late::ClientDeadline => return Poll::Ready(Awaited::Failed(FailureKind::ClientDeadline)),
                Late::Client => return Poll::Ready(Awaited::ClientFault(ClientFault::Stalled)),
                Late::Try => return Poll::Ready(Awaited::Failed(FailureKind::TryTimeout)),
                Late::Destination => return Poll::Ready(Awaited::Failed(FailureKind::HeadTimeout)),
                Late::Continue => {}
            }
            upload.fulfil();
            forward::write_status_line(&mut self.wires.work.back, 100, b"");
            self.wires.work.back.extend_from_slice(b"\r\n");
            if self.poll_back(context).is_err() {
                return Poll::Ready(Awaited::Failed(FailureKind::ClientGone));
            }
        }
    }

    /// Takes the head alone out of what was read first, when that begins with all of the answer's head; the body's bytes
    /// stay where they are.
    fn leave_body(work: &mut Workspace, bytes: &[u8], kind: RequestKind) -> bool {
        let parsed = work.response.parse(bytes, &HeadLimits::RESPONSE, kind);
        if parsed != Ok(Parsed::Complete) || work.response.is_interim() {
            return false;
        }
        let head = work.response.len();
        work.reply.extend_from_slice(bytes.get(..head).unwrap_or_default());
        work.front = Front::new(front::ROOM + head..front::ROOM + bytes.len());
        true
    }
}

/// A destination that sends more of them than this before its answer means no good.
pub(crate) const MAX_INTERIM: usize = 16;
