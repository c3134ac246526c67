//! One exchange: drives the machine of `exchange` and does what its steps say, as [`crate::turn`] does for HTTP/1.1 on
//! both sides.

use std::net::IpAddr;
use std::task::Poll;

use exchange::{Input, Step};
use http1::proxy_header::OnBehalf;
use http1::response::RequestKind;
use io::Io;
use model::address::Scheme;
use model::id::Slot;
use model::request::Method;
use model::time::Timestamp;
use upstream::Resolve;

use super::hold::Held as HeldResponse;
use super::outgoing::Outgoing;
use super::side::ClientSide;
use super::upload::{Fault, Upload};
use crate::buffering::Share;
use crate::client_address;
use crate::drive::{Asker, Walked};
use crate::listener::View;
use crate::local::{Local, Workspace};
use crate::record::{Outcome, Told};
use crate::timer::Timer;
use crate::waiting;

/// Who the client is, the same for all exchanges of its connection.
pub(crate) struct Peer {
    /// The peer's address, canonical.
    pub(crate) address: IpAddr,
    /// What its connection speaks.
    pub(crate) scheme: Scheme,
    /// It sits on this host.
    pub(crate) is_local: bool,
    /// Whom connections that serve it stand for.
    pub(crate) on_behalf: OnBehalf,
}

/// One exchange.
pub(super) struct Relay<'a, I: Io, R, C> {
    pub(super) local: &'a Local<I, R>,
    pub(super) client: &'a mut C,
    pub(super) peer: &'a Peer,
    pub(super) work: &'a mut Workspace,
    pub(super) view: &'a View,
    pub(super) timer: &'a mut Timer<I>,
    pub(super) walked: Walked<'a>,
    /// The client as trusted proxies name it.
    pub(super) address: IpAddr,
    pub(super) kind: RequestKind,
    pub(super) upload: Upload,
    pub(super) destination: Option<Outgoing<I::Stream>>,
    /// A response that is sent when nothing better comes.
    pub(super) held: Option<HeldResponse>,
    pub(super) fault: Option<Fault>,
    /// Memory of a body that was read ahead.
    pub(super) share: Option<Share<'a>>,
}

/// Serves the request whose head lies in `work`. What becomes of the client's side is its own to see, by what it was
/// told last.
pub(crate) async fn serve<I: Io, R: Resolve, C: ClientSide>(
    local: &Local<I, R>,
    client: &mut C,
    peer: &Peer,
    work: &mut Workspace,
    view: &View,
    timer: &mut Timer<I>,
) {
    let now = local.io.now();
    let request = work.request.view(&work.head);
    let address = client_address::client(&view.config, peer.address, &request);
    let kind = if request.method() == Method::Head { RequestKind::Head } else { RequestKind::Other };
    if view.is_self_check(&request) {
        return super::answer::self_check(local, client, peer, request, view, kind).await;
    }
    let asker = Asker { view, peer: peer.address, client: address, scheme: peer.scheme };
    let (walked, step) = Walked::begin(local, now, &request, asker, 0);
    let begun = Begun { walked, step, address, kind };
    go_on(local, client, peer, work, view, timer, begun).await;
}

/// An exchange whose first step is known.
pub(crate) struct Begun<'a> {
    pub(crate) walked: Walked<'a>,
    pub(crate) step: Step,
    /// The client as trusted proxies name it.
    pub(crate) address: IpAddr,
    pub(crate) kind: RequestKind,
}

/// Serves an exchange that was begun elsewhere; its request's head lies in `work`.
pub(crate) async fn go_on<'a, I: Io, R: Resolve, C: ClientSide>(
    local: &'a Local<I, R>,
    client: &'a mut C,
    peer: &'a Peer,
    work: &'a mut Workspace,
    view: &'a View,
    timer: &'a mut Timer<I>,
    begun: Begun<'a>,
) {
    let Begun { walked, step, address, kind } = begun;
    let request = work.request.view(&work.head);
    let bounds = walked.body_bounds(&request, view);
    let upload = Upload::new(&request, bounds);
    let mut relay = Relay {
        local,
        client,
        peer,
        work,
        view,
        timer,
        walked,
        address,
        kind,
        upload,
        destination: None,
        held: None,
        share: None,
        fault: bounds.is_exceeded.then_some(Fault::TooLarge),
    };
    relay.walk(step).await;
}

impl<I: Io, R: Resolve, C: ClientSide> Relay<'_, I, R, C> {
    async fn walk(&mut self, first: Step) {
        if let (Some(fault), Step::Connect(_) | Step::Gather | Step::Wait { .. }) = (self.fault, &first) {
            return self.answer_fault(fault).await;
        }
        let mut step = first;
        loop {
            step = match step {
                Step::Gather => match self.gather().await {
                    Ok(step) => step,
                    Err(fault) => return self.answer_fault(fault).await,
                },
                Step::Wait { until, wants } => self.wait(until, wants).await,
                Step::Connect(attempt) => {
                    let input = self.attempt(attempt).await;
                    self.handle(input)
                }
                Step::HoldThenConnect(attempt) => {
                    self.hold().await;
                    self.walked.sharing.read();
                    let input = self.attempt(attempt).await;
                    self.handle(input)
                }
                Step::Forward => return self.forward().await,
                Step::AnswerHeld => return self.answer_held().await,
                Step::Answer(answer) => return self.answer(&answer).await,
                Step::Done => return,
            };
        }
    }

    /// Reads the clock and tells the machine.
    pub(super) fn handle(&mut self, input: Input) -> Step {
        self.walked.handle(self.local, input)
    }

    /// Waits until somebody can take the request.
    async fn wait(&mut self, until: Timestamp, wants: Option<Slot>) -> Step {
        let (client, timer) = (&mut *self.client, &mut *self.timer);
        waiting::wait(&mut self.walked, self.local, until, wants, |context, waiting, ends| {
            if client.poll_gone(context).is_ready() {
                return Poll::Ready(Input::ClientGone);
            }
            waiting.poll(context, timer, ends)
        })
        .await
    }

    /// Tells of the exchange's end.
    pub(super) fn end(&self, status: u16, reason: &'static str) {
        self.tell_end(Outcome { status, reason, bytes_in: self.upload.content() });
    }

    pub(super) fn tell_end(&self, outcome: Outcome) {
        let told = Told {
            listener: self.view.config.id.as_str(),
            client: self.address,
            protocol: self.client.protocol(),
            sent: self.client.sent(),
            request: Some(self.work.request.view(&self.work.head)),
            walked: None,
            id: None,
        };
        self.walked.end(self.local, told, outcome);
    }
}
